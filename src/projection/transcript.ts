import type { Message } from "../events/index.ts";
import { answerDangling } from "./tools.ts";
import type { BranchView } from "./view.ts";

/**
 * What a model sees: the messages with soft compactions in force, then those of turns not closed yet. Always legal: every call has
 * exactly one result.
 */
export function transcript(view: BranchView): readonly Message[] {
  const closed = view.compactions.some(({ retention }) => retention === "soft") ? compacted(view) : view.messages;
  const unclosed = view.open ? [...view.staged, view.open] : view.staged;
  if (unclosed.length === 0) return closed;
  return [...closed, ...unclosed.flatMap(({ messages }) => answerDangling(messages, "interrupted", view.updatedAt))];
}

function compacted(view: BranchView): Message[] {
  let messages = view.messages;
  for (const { retention, first, last, replacements } of view.compactions) {
    if (retention === "hard") continue;
    const from = messages.findIndex(({ id }) => id === first);
    const to = messages.findIndex(({ id }) => id === last);
    if (from < 0 || to < from) continue;
    messages = [...messages.slice(0, from), ...replacements, ...messages.slice(to + 1)];
  }
  return messages;
}
