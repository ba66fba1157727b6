// Looking at a child: what its branch says is all that a parent needs to know, at whatever point either of them died.

import { BoughError } from "../../base/errors.ts";
import type { Asleep, BranchView, Interaction, TurnRecord } from "../../projection/index.ts";
import { findHolder } from "../../sessions/claims.ts";
import type { Context } from "../../sessions/context.ts";
import { openQuestions } from "../../sessions/interactions.ts";
import type { ChildAddress } from "./address.ts";

/** A child that came to its end, however. */
export interface ClosedChild {
  readonly turn: TurnRecord;
  readonly view: BranchView;
}

/** How far a child is. */
export type ChildState =
  | { readonly at: "missing" }
  /** Its branch is there, its turn was never begun. */
  | { readonly at: "unbegun" }
  /** The same, and another turn is open on the branch. */
  | { readonly at: "busy"; readonly seq: number }
  /** `isHeld`: a run works on it. */
  | {
      readonly at: "open";
      readonly seq: number;
      readonly isHeld: boolean;
      readonly questions: readonly Interaction[];
      /** Present while it sleeps. */
      readonly asleep?: Asleep;
    }
  | ({ readonly at: "closed" } & ClosedChild);

export async function lookAt(
  context: Context,
  { ref, turnId }: Pick<ChildAddress, "ref" | "turnId">,
): Promise<ChildState> {
  const { views } = context;
  const loaded = await views.loadForRun(ref).catch((error) => {
    if (isGone(error)) return undefined;
    throw error;
  });
  if (!loaded) return { at: "missing" };
  const { view } = loaded;
  const { open, seq } = view;
  if (open?.id === turnId) {
    const isHeld = (await findHolder(context, ref)) !== undefined;
    const questions = isHeld ? [] : await openQuestions(context, view);
    return { at: "open", seq, isHeld, questions, ...(open.asleep && { asleep: open.asleep }) };
  }
  const isClosed = (turn: TurnRecord) => turn.id === turnId;
  const turn = view.turns.find(isClosed);
  if (turn && view.skipped === 0) return { at: "closed", turn, view };
  // What a model no longer sees of a long branch may have it.
  const whole = turn || view.skippedTurns > 0 ? (await views.load(ref)).view : view;
  const found = whole.turns.find(isClosed);
  if (found) return { at: "closed", turn: found, view: whole };
  return open ? { at: "busy", seq } : { at: "unbegun" };
}

export function isGone(error: unknown): boolean {
  return BoughError.is(error, "branch_not_found") || BoughError.is(error, "session_not_found");
}
