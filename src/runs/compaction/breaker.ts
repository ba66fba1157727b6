// Breaker: stops automatic compaction on a branch where it keeps failing. Branch state, so it holds for every process and goes
// with forks and reverts.
//   Breaker-1. It opens after three failures in a row, and stays open until the model changes or something else changes what is
//       compacted: a compaction by hand, or one taken back. It remembers the newest such fact, so no command has to reset it.

import type { JsonObject } from "../../base/json.ts";
import { type BranchView, stateOf } from "../../projection/view.ts";
import type { StateHandle } from "../../tools/index.ts";

/** The failures in a row. */
interface Failures extends JsonObject {
  count: number;
  /** The model that they happened with. */
  model: string;
  /** The newest fact that changed what is compacted, at the time. */
  since: number;
}

/** Kept under the key `@compaction` of the branch's state. */
export const breakerState: StateHandle<Failures> = {
  key: "compaction",
  scope: "branch",
  version: 1,
  initial: { count: 0, model: "", since: 0 },
};

/** Failures in a row that stop it. */
const mostFailures = 3;

/** How often automatic compaction has failed in a row, and whether it is stopped. */
export interface BreakerStatus {
  readonly failures: number;
  readonly isOpen: boolean;
}

/** The breaker as these failures make it, for a model. */
export function breakerOf({ count, model, since }: Failures, view: BranchView, modelName: string): BreakerStatus {
  const failures = model === modelName && since === view.lastOverlay ? count : 0;
  return { failures, isOpen: failures >= mostFailures };
}

/** The failures after one more. */
export function addFailure(failures: Failures, view: BranchView, modelName: string): Failures {
  const { failures: before } = breakerOf(failures, view, modelName);
  return { count: before + 1, model: modelName, since: view.lastOverlay };
}

/** The breaker as it is stored on a branch. */
export function readBreaker(view: BranchView, modelName: string): BreakerStatus {
  const stored = (stateOf(view)[`@${breakerState.key}`] ?? {}) as { data?: Failures };
  return breakerOf(stored.data ?? breakerState.initial, view, modelName);
}
