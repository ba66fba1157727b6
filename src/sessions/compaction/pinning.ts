// Pinning a message: a change of the branch's state.

import { BoughError } from "../../base/errors.ts";
import { stateChanged } from "../../events/drafts.ts";
import type { BranchRef } from "../../log/index.ts";
import type { BranchView } from "../../projection/index.ts";
import { countLedger, unclosedMessages } from "../../projection/overlay.ts";
import { pinsKey } from "../../projection/reserved-state.ts";
import { resolveBranch } from "../branches.ts";
import { whileFree } from "../claims.ts";
import type { Context, Scope } from "../context.ts";
import { messageMissing } from "../position.ts";
import { pinsOf } from "./pins.ts";

/** Keeps the message verbatim in every compaction from now on. */
export async function pin(context: Context, scope: Scope, messageId: string): Promise<void> {
  const ref = await resolveBranch(context, scope);
  await whileFree(context, ref, async (view) => {
    const position = await positionOf(context, ref, view, messageId);
    const pins = pinsOf(view);
    if (pins.get(messageId) === position) return [];
    return stateChanged(context, undefined, { [pinsKey]: Object.fromEntries(pins.set(messageId, position)) });
  });
}

/** The message may be compacted again; what keeps it already goes on keeping it. */
export async function unpin(context: Context, scope: Scope, messageId: string): Promise<void> {
  const ref = await resolveBranch(context, scope);
  await whileFree(context, ref, (view) => {
    const pins = pinsOf(view);
    if (!pins.delete(messageId)) return [];
    return stateChanged(context, undefined, { [pinsKey]: Object.fromEntries(pins) });
  });
}

/** The ids of the pinned messages that the branch has, in their order. */
export async function listPins(context: Context, scope: Scope): Promise<string[]> {
  const ref = await resolveBranch(context, scope);
  const { view } = await context.views.load(ref);
  const count = countLedger(view);
  const unclosed = unclosedMessages(view);
  const idAt = (position: number) => (position < count ? view.messages[position] : unclosed[position - count])?.id;
  const pins = [...pinsOf(view)].filter(([id, position]) => idAt(position) === id);
  return pins.sort(([, a], [, b]) => a - b).map(([id]) => id);
}

async function positionOf(context: Context, ref: BranchRef, view: BranchView, messageId: string): Promise<number> {
  const { ledger, messages } = context.views.indexOf(ref, view);
  const position = ledger.get(messageId);
  if (position !== undefined && messages.has(messageId)) return position;
  const open = unclosedMessages(view).findIndex(({ id }) => id === messageId);
  if (open >= 0) return countLedger(view) + open;
  if (!messages.has(messageId)) throw await messageMissing(context, ref, view, messageId);
  const sentence = `Message "${messageId}" stands for compacted messages; only messages of the conversation can be pinned.`;
  throw new BoughError("invalid_argument", sentence, { data: { ...ref, messageId } });
}
