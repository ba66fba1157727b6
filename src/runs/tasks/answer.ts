// What a background child came to, as its own log tells it: the same whoever asks, and when.

import { type Message, textOf } from "../../events/index.ts";
import { addUsage, type Usage } from "../../models/index.ts";
import type { TurnRecord } from "../../projection/index.ts";
import type { TaskEnding } from "../../sessions/tasks.ts";
import type { TaskEnd } from "../../tools/index.ts";
import type { ClosedChild } from "../children/look.ts";

/** The reason with which a task is cancelled as a task: who does that needs no notice. */
export const taskCancelled = "task-cancelled";

/** What the agent of a turn said last. A structured answer may be the input of the tool that takes it. */
export function lastWords(messages: readonly Message[], turnId: string): string {
  const replies = messages.filter((each) => each.turnId === turnId && each.role === "assistant" && !each.source);
  const last = replies.at(-1);
  if (!last) return "";
  const text = textOf(last);
  if (text !== "" || typeof last.content === "string") return text;
  const call = last.content.findLast((part) => part.type === "tool-call");
  return call?.type === "tool-call" ? JSON.stringify(call.input) : "";
}

/** How a closed child's task ended. */
export function endOf(
  task: { id: string; name: string },
  ref: { sessionId: string; branchId: string },
  closed: ClosedChild,
): TaskEnd {
  const { turn, view } = closed;
  const { message } = (turn.error ?? {}) as { message?: string };
  return {
    taskId: task.id,
    name: task.name,
    status: statusOf(turn),
    text: lastWords(view.messages, turn.id),
    ...(turn.status !== "committed" && turn.reason !== undefined && { reason: turn.reason }),
    ...(message !== undefined && { error: { message } }),
    ref: { sessionId: ref.sessionId, branchId: ref.branchId, turnId: turn.id, seq: turn.to },
  };
}

/** The same as a fact: without the text, which the child's log has. */
export function endingOf({ status, reason, error, ref }: TaskEnd, turn: TurnRecord | undefined): TaskEnding {
  const usage = turn && addUsage((turn.usage ?? {}) as Usage, (turn.children ?? {}) as Usage);
  const childStatus = turn?.status === "committed" ? ("completed" as const) : turn?.status;
  return {
    status,
    ...(reason !== undefined && { reason }),
    ...(error && { error: { ...error } }),
    ...(ref && childStatus && { child: { ...ref, status: childStatus } }),
    ...(usage && Object.keys(usage).length > 0 && { usage: { ...usage } }),
  };
}

function statusOf({ status }: TurnRecord): TaskEnd["status"] {
  if (status === "committed") return "completed";
  return status === "failed" ? "failed" : "cancelled";
}
