// A call that failed because of its files, made again with something else in their places. No request is sent twice as it is.

import { BoughError } from "../../base/errors.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import { voidPartial } from "../turn/void-partial.ts";
import { budgetState, modelName } from "./budget.ts";

/** Whether the files of the failed call can be sent in another form, or fewer of them. */
export async function sendOtherwise(turn: ActiveTurn, error: unknown): Promise<boolean> {
  const { files, plan, state } = turn;
  // Nothing was sent: the provider's package refused a file.
  if (files.learnRefusal(error, plan.model)) return true;
  if (await files.forgetLost(error, plan.model)) {
    voidPartial(turn, error);
    return true;
  }
  if (!BoughError.is(error, "context_overflow") || error.data.isTooLarge !== true) return false;
  const perCall = files.sendLess();
  if (perCall === undefined) return false;
  await state.set(budgetState, { perCall, model: modelName(plan.model) });
  voidPartial(turn, error);
  return true;
}
