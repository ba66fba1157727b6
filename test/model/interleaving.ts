// Two properties: several writers on one store, in every order a scheduler can think of. Short histories must be explained
// by some order of their calls (linearizability); long ones must keep the invariants of history.ts.

import fc from "fast-check";
import { expect } from "vitest";
import type { NewBranch, Store } from "../../src/log/index.ts";
import { checkLogs, manualClock, snapshotStore } from "../../src/testing/index.ts";
import { checkHistory, historyOf, type Observed } from "./history.ts";
import { isLinearizable } from "./linearize.ts";
import { Model } from "./model.ts";
import type { StoreKind } from "./stores.ts";
import { runWriters, scripts } from "./writers.ts";

const sessionId = "s";
const main: NewBranch = {
  id: "main",
  header: {},
  events: [
    { id: "first1", data: "1" },
    { id: "first2", data: "2" },
  ],
};
const session = { id: sessionId, metadata: {}, state: {}, branch: main };
const fork = { id: "fork", header: {}, events: [], parent: { branchId: "main", seq: 1 } };

const shortScripts = scripts(3, 4, {
  append: 6,
  again: 1,
  claim: 3,
  release: 1,
  fork: 2,
  delete: 2,
  update: 2,
  read: 1,
});
const longScripts = scripts(6, 14, { append: 10, again: 2, claim: 3, release: 2, fork: 2, delete: 1, read: 3 });

/** A short history has an order in which every answer is right. */
export function explained(kind: StoreKind): fc.IAsyncProperty<unknown> {
  return fc.asyncProperty(fc.scheduler(), shortScripts, async (scheduler, all) => {
    await withStore(kind, async (store, model) => {
      const world = { sessionId, branches: ["main", "fork", "x"], forkIds: ["x", "y"] };
      const history = await runWriters(scheduler, store, world, all);
      const found = isLinearizable(model, history, await snapshotStore(store));
      expect(found, `No order explains this:\n${tell(history)}`).toBe(true);
    });
  });
}

/** A long history keeps what was acknowledged, in order, and refuses only with reason. */
export function legal(kind: StoreKind): fc.IAsyncProperty<unknown> {
  return fc.asyncProperty(fc.scheduler(), longScripts, async (scheduler, all) => {
    await withStore(kind, async (store) => {
      const world = { sessionId, branches: ["main", "fork"] };
      const history = await runWriters(scheduler, store, world, all);
      expect(await checkLogs(store)).toEqual([]);
      expect(await problemsOf(store, history), tell(history)).toEqual([]);
    });
  });
}

async function withStore(kind: StoreKind, work: (store: Store, model: Model) => Promise<void>): Promise<void> {
  const clock = manualClock();
  const opened = await kind.open(clock);
  try {
    const model = new Model(clock.now);
    for (const target of [opened.store, model as unknown as Store]) {
      await target.createSession(structuredClone(session));
      await target.createBranch(sessionId, fork);
    }
    await work(opened.store, model);
  } finally {
    await opened.dispose();
  }
}

/** What can't have been, of every branch that ever was. */
async function problemsOf(store: Store, history: readonly Observed[]): Promise<string[]> {
  const bases = new Map([
    ["main", 2],
    ["fork", 1],
  ]);
  for (const { call, outcome } of history) {
    if (call.method === "createBranch" && "ok" in outcome) bases.set(call.args[1].id, call.args[1].parent.seq);
  }
  const problems: string[] = [];
  for (const [branchId, base] of bases) {
    const ref = { sessionId, branchId };
    const log = (await store.getBranch(ref)) && (await store.read(ref, { limit: 10_000 }));
    const found = checkHistory({ base, log, ...historyOf(history, branchId) });
    problems.push(...found.map((problem) => `${branchId}: ${problem}`));
  }
  return problems;
}

function tell(history: readonly Observed[]): string {
  const lines = [...history].sort((a, b) => a.start - b.start);
  return lines
    .map(({ start, end, call, outcome }) => {
      return `${start}-${end} ${call.method} ${JSON.stringify(call.args)} => ${JSON.stringify(outcome)}`;
    })
    .join("\n");
}
