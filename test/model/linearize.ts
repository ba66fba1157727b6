// Whether what several writers saw could have been seen one after another: a search for an order of the calls that fits
// their overlaps in time and in which the reference model answers every one as the store did. For short histories.

import type { RunClaim } from "../../src/log/index.ts";
import type { StoreSnapshot } from "../../src/testing/index.ts";
import { askModel, claimIn, mapCallEpochs, mapOutcomeEpochs, type Outcome, refOf } from "./calls.ts";
import type { Observed } from "./history.ts";
import type { Model } from "./model.ts";

/** Which of the store's epochs is which of the model's, on one path of the search. */
type Epochs = readonly { readonly branch: string; readonly model: number; readonly store: number }[];

/** True when some order explains the history and ends in what the store shows. */
export function isLinearizable(start: Model, history: readonly Observed[], end: StoreSnapshot): boolean {
  const dead = new Set<string>();
  const goal = canonical(end);

  function search(model: Model, epochs: Epochs, left: readonly Observed[]): boolean {
    if (left.length === 0) return canonical(withStoreEpochs(model.snapshot(), epochs)) === goal;
    const state = canonical([left.map((each) => history.indexOf(each)), model.snapshot(), epochs]);
    if (dead.has(state)) return false;
    const earliestEnd = Math.min(...left.map((each) => each.end));
    for (const next of left.filter((each) => each.start < earliestEnd)) {
      const future = model.clone();
      const learned = take(future, epochs, next);
      if (!learned) continue;
      const rest = left.filter((each) => each !== next);
      if (search(future, learned, rest)) return true;
    }
    dead.add(state);
    return false;
  }

  return search(start, [], history);
}

/** Does the call on the model; nothing when the model would have answered otherwise. */
function take(model: Model, epochs: Epochs, { call, outcome }: Observed): Epochs | undefined {
  const branch = canonical(refOf(call));
  const ours = mapCallEpochs(call, (epoch) => epochs.find((e) => e.branch === branch && e.store === epoch)?.model ?? 0);
  const answer = askModel(model, ours);
  const learned = learn(epochs, branch, claimIn(call, answer), claimIn(call, outcome));
  const expected = mapOutcomeEpochs(call, answer, (_, epoch) => storeEpoch(learned, epoch));
  return agrees(expected, outcome) ? learned : undefined;
}

function learn(epochs: Epochs, branch: string, model: RunClaim | undefined, store: RunClaim | undefined): Epochs {
  if (!model || !store || epochs.some((each) => each.model === model.epoch)) return epochs;
  const grows = epochs.every((each) => each.branch !== branch || each.store < store.epoch);
  // An epoch that does not grow is learned as one that no answer can agree with.
  return [...epochs, { branch, model: model.epoch, store: grows ? store.epoch : -1 }];
}

function agrees(expected: Outcome, observed: Outcome): boolean {
  if ("ok" in expected || "ok" in observed) return canonical(expected) === canonical(observed);
  // A stale epoch is told as it was asked; the model may know it as one that never was.
  const told = ({ epoch, ...data }: Record<string, unknown>) =>
    canonical(observed.refused === "epoch_stale" ? data : { ...data, epoch });
  return expected.refused === observed.refused && expected.data.some((data) => told(data) === told(observed.data[0]!));
}

function withStoreEpochs(snapshot: StoreSnapshot, epochs: Epochs): StoreSnapshot {
  return { ...snapshot, runs: snapshot.runs.map((run) => ({ ...run, epoch: storeEpoch(epochs, run.epoch) })) };
}

function storeEpoch(epochs: Epochs, model: number): number {
  return epochs.find((each) => each.model === model)?.store ?? model;
}

/** The same text for equal values, whatever the order of their keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each) =>
    each && typeof each === "object" && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}
