import { describeError } from "../../models/index.ts";
import type { ActiveTurn } from "./active-turn.ts";

/** What was shown of the answer that failed is not the beginning of the next one. */
export function voidPartial(turn: ActiveTurn, error: unknown): void {
  const { partial, plan, emitter } = turn;
  if (!partial) return;
  turn.partial = undefined;
  const again = { attempt: 1, attempts: 2, delayMs: 0, error: describeError(error, plan.redact) };
  emitter.live({ type: "model-retry", messageId: partial.id, ...again });
}
