import type { Message } from "../events/index.ts";
import { answerDangling, replaceMessages } from "./tools.ts";
import type { BranchView } from "./view.ts";

/**
 * What a model sees: the messages with soft compactions in force, then those of turns not closed yet. Always legal: every call has
 * exactly one result.
 */
export function transcript(view: BranchView): readonly Message[] {
  const closed = view.compactions.some(({ retention }) => retention === "soft") ? compacted(view) : view.messages;
  const unclosed = view.open ? [...view.staged, view.open] : view.staged;
  if (unclosed.length === 0) return closed;
  return [...closed, ...unclosed.flatMap(({ messages }) => answerDangling(messages))];
}

function compacted(view: BranchView): Message[] {
  let messages = view.messages;
  for (const compaction of view.compactions) {
    if (compaction.retention === "soft") messages = replaceMessages(messages, compaction) ?? messages;
  }
  return messages;
}
