// Which files a prompt leaves out when they are too many bytes for one call.
//   Budget-1. It depends on the files of the prompt alone, so every call and every process decides alike.
//   Budget-2. A longer prompt leaves out what a shorter one did. When more has to go, it is the oldest, and so much of it that
//       the following calls change nothing: each change costs the provider's cached prefix.

import type { JsonObject } from "../../base/json.ts";
import type { LanguageModel } from "../../models/index.ts";
import type { StateAccess, StateHandle } from "../../tools/index.ts";

/** A budget that a provider made smaller by refusing a request as too large. */
export interface LoweredBudget extends JsonObject {
  perCall: number;
  model: string;
}

/**
 * Kept under the key `@file-budget` of the branch's state: later turns decide as the one that was refused did, and send no
 * request that is known to be too large.
 */
export const budgetState: StateHandle<LoweredBudget> = {
  key: "file-budget",
  scope: "branch",
  version: 1,
  initial: { perCall: Number.MAX_SAFE_INTEGER, model: "" },
};

/** What a call may carry by what providers refused on this branch before. */
export async function fileBudget(state: StateAccess, model: LanguageModel): Promise<number> {
  const lowered = await state.get(budgetState);
  return lowered.model === modelName(model) ? lowered.perCall : Number.POSITIVE_INFINITY;
}

export function modelName({ provider, modelId }: Pick<LanguageModel, "provider" | "modelId">): string {
  return `${provider}/${modelId}`;
}

/** The share of the budget that is left when older files had to go. */
const shareAfter = 0.5;

/**
 * How many files are left out, counted from the first. `messages` has the sizes of the files of each message, in bytes. Files of
 * the newest message go last, and only as many as have to.
 */
export function countLeftOut(messages: readonly (readonly number[])[], most: number): number {
  const sizes: number[] = [];
  let first = 0;
  let sum = 0;
  for (const own of messages) {
    const before = sizes.length;
    for (const size of own) {
      sizes.push(size);
      sum += size;
    }
    if (sum <= most) continue;
    while (first < before && sum > most * shareAfter) sum -= sizes[first++]!;
    while (first < sizes.length && sum > most) sum -= sizes[first++]!;
  }
  return first;
}
