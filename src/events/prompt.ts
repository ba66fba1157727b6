// What a reply was made from: a position in the log and hashes, never a copy of the history.

import * as v from "valibot";

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const hash = v.pipe(v.string(), v.nonEmpty());

/** The prompt behind a reply. A text is kept once, with the first reply that has it; later ones name it by its hash. */
export const promptSchema = v.strictObject({
  /** The position in the log up to which the model saw the branch. */
  upTo: count,
  /** The hash of the whole prompt as it was sent. */
  sha: hash,
  /** The hash of the instructions; absent without any. */
  system: v.optional(hash),
  /** The hash of the tool definitions; absent without any. */
  tools: v.optional(hash),
  /** The hash of the model's name and settings. */
  settings: hash,
  /** The hash of what hooks changed in the messages; absent when they changed nothing. */
  edits: v.optional(hash),
  /** The hash of the texts at the end of the prompt; absent without any. */
  reminders: v.optional(hash),
  /** Texts that no earlier reply of the branch has, by hash. Events carry none of them. */
  texts: v.optional(v.record(v.string(), v.string())),
});

/** What a reply was made from. */
export type PromptRecord = v.InferOutput<typeof promptSchema>;

/** The fact without the texts behind its hashes: they are instructions, which readers of events need not see. */
export function withoutTexts<F extends { readonly type: string }>(fact: F): F {
  const { prompt } = fact as { readonly prompt?: PromptRecord };
  if (fact.type !== "message.added" || !prompt?.texts) return fact;
  const { texts: _, ...rest } = prompt;
  return { ...fact, prompt: rest };
}
