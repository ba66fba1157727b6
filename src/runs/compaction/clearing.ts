// Clearing: outputs of old calls that a model need not read again are shown as a short note. Cheaper than a summary, and nothing
// is lost that a second call would not bring back; but every clearing costs the provider's cached prefix from there on, so it
// is done in one go, and only where it spares a summary.

import { describeFiles } from "../../events/files.ts";
import type { Message, ToolResultPart } from "../../events/index.ts";
import { countLedger, messageAt, outermost, unclosedMessages } from "../../projection/overlay.ts";
import type { BranchView } from "../../projection/view.ts";
import type { Tool } from "../../tools/index.ts";
import type { ClearOptions } from "./options.ts";

/** Results to clear, as the fact names them, and what that saves. */
export interface Clearing {
  readonly results: { readonly at: number; readonly callIds: string[] }[];
  readonly saved: number;
}

/** What a note in place of an output takes, in tokens, and each file that it names. */
const [noteTokens, fileTokens] = [25, 45];

/** Everything that may be cleared. */
export function findClearing(
  view: BranchView,
  { batches, except }: Required<ClearOptions>,
  {
    tools,
    sizeOf,
  }: { tools: ReadonlyMap<string, Tool>; sizeOf: (message: Pick<Message, "role" | "content">) => number },
): Clearing {
  const isRetained = (name: string) => except.includes(name) || tools.get(name)?.retain === true;
  const results: Clearing["results"] = [];
  let saved = 0;
  for (const { at, message } of visibleResults(view).slice(0, -batches || undefined)) {
    const cleared = new Set(view.cleared.filter((each) => each.at === at).flatMap(({ callIds }) => callIds));
    const callIds: string[] = [];
    for (const part of message.content as readonly ToolResultPart[]) {
      if (cleared.has(part.toolCallId) || isRetained(part.toolName) || isFailure(part)) continue;
      const gain = sizeOf({ role: "tool", content: [part] }) - noteTokens - fileTokens * describeFiles(part).length;
      if (gain <= 0) continue;
      callIds.push(part.toolCallId);
      saved += gain;
    }
    if (callIds.length > 0) results.push({ at, callIds });
  }
  return { results, saved };
}

/** The messages of results that a model sees, oldest first. */
function visibleResults(view: BranchView): { at: number; message: Message }[] {
  const unclosed = unclosedMessages(view);
  const total = countLedger(view) + unclosed.length;
  const found: { at: number; message: Message }[] = [];
  const covering = outermost(view.overlays);
  for (let at = 0; at < total; at++) {
    const over = covering.find(({ from, to }) => from <= at && at < to);
    if (over) {
      at = over.to - 1;
      continue;
    }
    const message = messageAt(view, at, unclosed);
    if (message.role === "tool" && typeof message.content !== "string") found.push({ at, message });
  }
  return found;
}

/** What went wrong is short, and what a model must not try again. */
function isFailure({ output }: ToolResultPart): boolean {
  return output.type.startsWith("error") || output.type === "execution-denied";
}
