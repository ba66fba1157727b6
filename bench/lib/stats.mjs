// Medians, and ways of measuring that keep a noisy machine from favouring one candidate.

import { seeded } from "./words.mjs";

export function median(values) {
  return quantile(values, 0.5);
}

export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  const at = (sorted.length - 1) * share;
  const low = Math.floor(at);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

/** How long it took, in milliseconds. */
async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/**
 * Runs every candidate once a round, each round in another order, so that whatever disturbs the machine disturbs them
 * alike. Gives the times of each, in milliseconds, without the first rounds. A candidate that runs in another process
 * takes its time itself: then `time` is `(work) => work()`.
 */
export async function interleave(candidates, { rounds, warmUp = 10, random = seeded(7), time = timed, progress }) {
  const names = Object.keys(candidates);
  const times = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -warmUp; round < rounds; round++) {
    for (const name of shuffled(names, random)) {
      const took = await time(() => candidates[name](round));
      if (round >= 0) times[name].push(took);
    }
    if (round % 50 === 49) progress?.(`round ${round + 1} of ${rounds}`);
  }
  return times;
}

export function shuffled(items, random = seeded(7)) {
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [copy[i], copy[j]] = [copy[j], copy[i]];
  }
  return copy;
}
