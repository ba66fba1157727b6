// Steering: queued messages that join a turn between two of its model calls.
//   Steering-1. A message joins a turn only if a model call follows: none is left without a reply. Otherwise it begins the next turn.
//   Steering-2. What is in the log before the turn's end is looked at before the turn ends, unless hooks were told of the end.
//   Steering-3. Hooks that see a turn's input see what steers it, before a model does. What they refuse is withdrawn.

import { AbortReason } from "../../base/abort.ts";
import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import type { Draft, NewMessage, QueuedInput } from "../../events/index.ts";
import type { TurnContext } from "../../middleware/index.ts";
import type { BranchView } from "../../projection/index.ts";
import { messagesOfInput, steeringInputs } from "../../projection/queue.ts";
import { withdrawInput } from "../../sessions/queue.ts";
import { tellError } from "../redact-errors.ts";
import type { ActiveTurn } from "./active-turn.ts";

/** Whether the turn has room for another model call (Steering-1). */
function goesOn(turn: ActiveTurn): boolean {
  const { stopReason, iterations, plan, signal } = turn;
  const isOver = stopReason !== undefined || iterations >= plan.limits.iterations || signal.aborted;
  return !isOver && turn.tokenLimit() === undefined;
}

/** What keeps a complete turn from closing (Steering-2). */
export function unlessSteered(turn: ActiveTurn): (view: BranchView) => boolean {
  return (view) => turn.isSteerable && goesOn(turn) && !turn.isSummarised && steeringInputs(view).length > 0;
}

/**
 * Adds what steers the turn, behind `before`, in one append; false when nothing does, and then nothing is written. Costs nothing
 * unless something was queued.
 */
export async function takeSteering(turn: ActiveTurn, before: readonly Draft[] = []): Promise<boolean> {
  if (!goesOn(turn) || !turn.mayBeSteered) return false;
  turn.isSteered = false;
  let seen: readonly QueuedInput[] = [];
  const { beforeTurn } = turn.plan.pipeline;
  const rewrite = async (inputs: readonly QueuedInput[]) => {
    seen = inputs;
    return beforeTurn && rewritten(turn, inputs);
  };
  try {
    const facts = await turn.log.through(() => turn.held.steer(before, rewrite));
    if (facts.length === 0) return false;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    await withdraw(turn, seen, error.cause);
    return false;
  }
  failpoint("run.input.taken");
  return true;
}

/** What a hook threw. */
class Refused extends Error {}

/** Steering-3. */
async function rewritten(turn: ActiveTurn, inputs: readonly QueuedInput[]): Promise<readonly NewMessage[]> {
  const { held, plan, asked, signal, state } = turn;
  const input = inputs.flatMap(messagesOfInput);
  const context: TurnContext = { ...held.ref, ...asked, agent: plan.stamp, signal, state, input, isSteering: true };
  await plan.pipeline.beforeTurn!(context).catch((cause: unknown) => {
    throw cause instanceof AbortReason ? cause : new Refused("A hook refused what steers the turn.", { cause });
  });
  return context.input;
}

async function withdraw(turn: ActiveTurn, inputs: readonly QueuedInput[], cause: unknown): Promise<void> {
  const { context, held, emitter, plan } = turn;
  const error = tellError(plan, cause);
  emitter.live({ type: "error-report", source: "middleware", error });
  for (const { id } of inputs) {
    await withdrawInput(context, held.ref, id, { reason: `refused: ${error.message}` }).catch((failure) => {
      if (!BoughError.is(failure, "input_closed")) throw failure;
    });
  }
}
