import type { Message } from "../events/index.ts";
import { answerDangling, replaceMessages } from "./tools.ts";
import type { BranchView } from "./view.ts";

/**
 * What a model sees: the messages with soft compactions in force, then those of turns not closed yet. Always legal: every call has
 * exactly one result.
 */
export function transcript(view: BranchView): readonly Message[] {
  const unclosed = unclosedTranscript(view);
  return unclosed.length === 0 ? closedTranscript(view) : [...closedTranscript(view), ...unclosed];
}

/** The part of closed turns: the view's own array, which only grows in place, as long as nothing was compacted. */
export function closedTranscript(view: BranchView): readonly Message[] {
  return view.compactions.some(({ retention }) => retention === "soft") ? compacted(view) : view.messages;
}

/** The part of turns not closed yet. */
export function unclosedTranscript({ staged, open }: BranchView): readonly Message[] {
  if (staged.length === 0) return open ? answerDangling(open.messages) : [];
  const unclosed = open ? [...staged, open] : staged;
  return unclosed.flatMap(({ messages }) => answerDangling(messages));
}

function compacted(view: BranchView): Message[] {
  let messages = view.messages;
  for (const compaction of view.compactions) {
    if (compaction.retention === "soft") messages = replaceMessages(messages, compaction) ?? messages;
  }
  return messages;
}
