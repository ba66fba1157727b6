// The messages of queued inputs, as the turn that takes them adds them.

import { BoughError } from "../base/errors.ts";
import type { AnyDraft } from "../events/codec.ts";
import { type DraftSource, messageAdded } from "../events/drafts.ts";
import type { Draft, NewMessage, QueuedInput } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import { messagesOfInput, sourceOfInput } from "../projection/queue.ts";
import type { Context } from "./context.ts";

/**
 * Each message names its input. Hooks may have rewritten the messages: what has no id of an input's message is said to be of the
 * input before it. An input of which nothing is left has no message; the turn that takes it says so.
 */
export function takenMessages(
  source: DraftSource,
  turnId: string,
  inputs: readonly QueuedInput[],
  messages: readonly NewMessage[] = inputs.flatMap(messagesOfInput),
  { isSteering = false }: { isSteering?: boolean } = {},
): Draft<"message.added">[] {
  const owners = new Map(inputs.flatMap((input) => messagesOfInput(input).map(({ id }) => [id, input])));
  let owner = inputs[0]!;
  return messages.map((message) => {
    owner = (message.id === undefined ? undefined : owners.get(message.id)) ?? owner;
    return messageAdded(source, turnId, message, { source: sourceOfInput(owner, isSteering), inputId: owner.id });
  });
}

/**
 * Whether facts were refused because the view they were decided on, up to `seq`, is not the newest. Of two turns that take the
 * same input, the later one meets the ids of the input's messages before it meets the sequence numbers.
 */
export async function isOutdated(
  { store }: Context,
  ref: BranchRef,
  { error, drafts, seq }: { error: unknown; drafts: readonly AnyDraft[]; seq: number },
): Promise<boolean> {
  if (BoughError.is(error, "sequence_conflict")) return true;
  const { eventId } = BoughError.is(error, "event_conflict") ? error.data : {};
  const isTaken = drafts.some(
    ({ id, ...draft }) => id === eventId && "inputId" in draft && draft.inputId !== undefined,
  );
  return isTaken && (await store.getBranch(ref))?.seq !== seq;
}
