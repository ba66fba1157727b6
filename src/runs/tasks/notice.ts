// Notices: what a branch is told of the end of a background task, and whether.

import type { OpenTask, Part, QueuedMessage } from "../../events/index.ts";
import type { TaskEnd, TaskNotice, TaskNotify } from "../../tools/index.ts";
import type { NotifyRule } from "../children/port.ts";
import { taskCancelled } from "./answer.ts";

/** How much of an answer a notice has: the rest is read with `check_task`. */
const longestText = 50_000;

/** The rule as the log keeps it. */
export function keptRule(notify: TaskNotify = "all"): NonNullable<OpenTask["notify"]> {
  return typeof notify === "function" ? "custom" : notify;
}

/** The message that begins a turn; undefined when none is to begin. A rule that throws, or is gone with its process, is "all". */
export async function noticeOf(
  { notify = "all" }: Pick<OpenTask, "notify">,
  end: TaskEnd,
  { rule, unseen }: { rule: NotifyRule | undefined; unseen: number },
): Promise<QueuedMessage | undefined> {
  if (notify === "custom" && rule) {
    try {
      const said = await rule(end);
      return said === undefined || said.length === 0 ? undefined : messageOf(said);
    } catch {
      // What the program can't decide is told.
    }
  }
  return isTold(notify, end) ? messageOf(noticeText(end, unseen)) : undefined;
}

function isTold(notify: NonNullable<OpenTask["notify"]>, { status, reason }: TaskEnd): boolean {
  if (notify === "completed" || notify === "failed") return status === notify;
  return notify !== "none" && reason !== taskCancelled;
}

function messageOf(said: TaskNotice): QueuedMessage {
  const content: readonly Part[] = typeof said === "string" ? [{ type: "text", text: said }] : said;
  return { role: "user", content: content.slice() };
}

/** The words of a notice. */
function noticeText({ taskId, name, status, text, reason, error }: TaskEnd, unseen = 0): string {
  const lines: string[] = [];
  if (status !== "completed") lines.push(whyOf(error?.message ?? reason));
  if (text !== "") lines.push(text.slice(0, longestText));
  if (text.length > longestText) {
    lines.push(`(The first ${longestText} of ${text.length} characters; check_task has the rest.)`);
  }
  if (unseen > 0) lines.push(`(${unseen === 1 ? "One message" : `${unseen} messages`} to the task came too late.)`);
  return `<task id="${taskId}" name="${name}" status="${status}">\n${lines.join("\n")}\n</task>`;
}

function whyOf(reason: string | undefined): string {
  return reason === undefined ? "No reason was given." : `Reason: ${reason}`;
}
