// A store driven beside the model. Stores number their epochs as they like, so a replica learns which of its epochs is
// which of the model's, and holds the store to what the port does promise: they only grow.

import { expect } from "vitest";
import type { BranchRef, SessionQuery } from "../../src/log/index.ts";
import { listPages } from "../../src/testing/check-log.ts";
import { type StoreSnapshot, snapshotStore } from "../../src/testing/index.ts";
import { askStore, type Call, claimIn, mapCallEpochs, mapOutcomeEpochs, type Outcome, outcomeOf } from "./calls.ts";
import type { OpenStore } from "./stores.ts";

export class Replica {
  readonly #under: OpenStore;
  readonly #theirs = new Map<number, number>();
  readonly #ours = new Map<string, number>();
  readonly #newest = new Map<string, number>();

  constructor(under: OpenStore) {
    this.#under = under;
  }

  get name(): string {
    return this.#under.name;
  }

  reopen(): Promise<void> {
    return this.#under.reopen();
  }

  /** Asks the store; the answer must be the one expected of the model. */
  async expect(call: Call, expected: Outcome): Promise<void> {
    const theirs = mapCallEpochs(call, (epoch) => this.#theirs.get(epoch) ?? epoch);
    const outcome = await outcomeOf(call.method, askStore(this.#under.store, theirs));
    this.#learn(claimIn(call, expected), claimIn(call, outcome));
    const ours = mapOutcomeEpochs(call, outcome, (ref, epoch) => this.#ours.get(keyOf(ref, epoch)) ?? epoch);
    const what = `${this.name}: ${call.method}`;
    if ("refused" in expected && "refused" in ours) {
      expect(ours.refused, what).toBe(expected.refused);
      expect(expected.data, what).toContainEqual(ours.data[0]);
    } else {
      expect(ours, what).toEqual(expected);
    }
  }

  async expectSnapshot(expected: StoreSnapshot): Promise<void> {
    const { sessions, runs } = await snapshotStore(this.#under.store);
    const ours = runs.map((run) => ({ ...run, epoch: this.#ours.get(keyOf(run, run.epoch)) ?? run.epoch }));
    expect({ sessions, runs: ours }, this.name).toEqual(expected);
  }

  /** Pages through a search; the ids must be these, in this order. */
  async expectSearch(query: SessionQuery, expected: readonly string[]): Promise<void> {
    const pages = await listPages(this.#under.store, query);
    for (const page of pages) expect(page.length, this.name).toBeLessThanOrEqual(query.limit ?? 50);
    const ids = pages.flat().map((session) => session.id);
    expect(ids, `${this.name}: listSessions`).toEqual(expected);
  }

  #learn(ours: { epoch: number } | undefined, theirs: (BranchRef & { epoch: number }) | undefined): void {
    if (!ours || !theirs || this.#theirs.has(ours.epoch)) return;
    const branch = keyOf(theirs);
    expect(theirs.epoch, `${this.name}: the epoch of a new claim`).toBeGreaterThan(this.#newest.get(branch) ?? 0);
    this.#newest.set(branch, theirs.epoch);
    this.#theirs.set(ours.epoch, theirs.epoch);
    this.#ours.set(keyOf(theirs, theirs.epoch), ours.epoch);
  }
}

function keyOf({ sessionId, branchId }: BranchRef, epoch?: number): string {
  return JSON.stringify([sessionId, branchId, epoch]);
}
