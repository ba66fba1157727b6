// A property: random histories drive stores and the reference model side by side; after each step all of them must show
// the same.

import fc from "fast-check";
import type { BranchRef, NewEvent } from "../../src/log/index.ts";
import { type ManualClock, manualClock } from "../../src/testing/index.ts";
import { askModel, type Call, claimIn } from "./calls.ts";
import { Model } from "./model.ts";
import { replayOptions } from "./property.ts";
import { Replica } from "./replica.ts";
import { advances, type Past, resolve, type Step, searchOf, steps } from "./steps.ts";
import { type StoreKind, withStores } from "./stores.ts";

interface Real {
  clock: ManualClock;
  replicas: readonly Replica[];
}

class Command implements fc.AsyncCommand<Past, Real> {
  readonly #step: Step;

  constructor(step: Step) {
    this.#step = step;
  }

  check() {
    return true;
  }

  async run(past: Past, { clock, replicas }: Real) {
    const step = this.#step;
    if (step.do === "advance") clock.advance(advances[Number(step.by)]!);
    else if (step.do === "reopen") for (const replica of replicas) await replica.reopen();
    else if (step.do === "search") await search(past, replicas, step, clock.now());
    else await ask(past, replicas, resolve(past, step));
    const snapshot = past.model.snapshot();
    for (const replica of replicas) await replica.expectSnapshot(snapshot);
  }

  toString() {
    const { do: name, ...fields } = this.#step;
    return `${name}(${JSON.stringify(fields)})`;
  }
}

async function ask(past: Past, replicas: readonly Replica[], call: Call): Promise<void> {
  const expected = askModel(past.model, call);
  for (const replica of replicas) await replica.expect(call, expected);
  const claim = claimIn(call, expected);
  if (claim) past.claims.push({ ref: claim, epoch: claim.epoch });
  if (call.method === "append") {
    const [ref, events] = call.args as unknown as [BranchRef, NewEvent[]];
    past.appends.push({ ref, events });
  }
}

async function search(past: Past, replicas: readonly Replica[], step: Step, now: number): Promise<void> {
  const query = searchOf(step, now);
  const expected = past.model.search(query);
  for (const replica of replicas) await replica.expectSearch(query, expected);
}

const first: Call = {
  method: "createSession",
  args: [
    {
      id: "s",
      metadata: { k: "x" },
      state: {},
      branch: { id: "main", header: {}, events: [1, 2, 3].map((i) => ({ id: `first${i}`, data: `${i}` })) },
    },
  ],
};

export function sideBySide(kinds: readonly StoreKind[]): fc.IAsyncProperty<unknown> {
  const commands = fc.commands([steps.map((step) => new Command(step))], {
    maxCommands: 100,
    size: "max",
    ...replayOptions,
  });
  return fc.asyncProperty(commands, async (commands) => {
    const clock = manualClock();
    await withStores(kinds, clock, async (stores) => {
      const past: Past = { model: new Model(clock.now), appends: [], claims: [], count: 0 };
      const replicas = stores.map((store) => new Replica(store));
      await ask(past, replicas, first);
      await fc.asyncModelRun(() => ({ model: past, real: { clock, replicas } }), commands);
    });
  });
}
