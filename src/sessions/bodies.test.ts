import { expect, test } from "vitest";
import type { Store } from "../log/store.ts";
import { memoryStore } from "../stores/memory/index.ts";
import { momentOf } from "./bodies.ts";
import { createContext } from "./context.ts";
import { Sessions, type TurnWriter } from "./index.ts";

const ref = { sessionId: "s", branchId: "main" };

/** A store that tells of no claims at first, and on which something happens before it is asked again. */
function racing(store: Store, happen: () => Promise<unknown>): Store {
  let looks = 0;
  const listRuns: Store["listRuns"] = async (options) => {
    if (++looks === 1) return [];
    if (looks === 2) await happen();
    return store.listRuns(options);
  };
  return new Proxy(store, {
    get(target, name: keyof Store) {
      if (name === "listRuns") return listRuns;
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function givenTurn() {
  const store = memoryStore();
  const sessions = new Sessions(createContext(store, {}));
  await sessions.createSession("s");
  const turn: TurnWriter = await sessions.beginTurn(ref, "Hi", { runId: "r" });
  return { store, turn };
}

test("a moment with a run shows the turn it works on", async () => {
  const { store, turn } = await givenTurn();
  const { branch, active } = await momentOf(createContext(store, {}), ref);
  expect(active).toMatchObject({ runId: "r", status: "active", turnId: branch.uncommittedTurn?.id });
  await turn.commit();
});

test("a run that ends while it is looked at is not shown as a turn that nobody works on", async () => {
  const { store, turn } = await givenTurn();
  const context = createContext(
    racing(store, () => turn.commit()),
    {},
  );
  const { branch, active } = await momentOf(context, ref);
  expect(active).toBeNull();
  expect(branch.uncommittedTurn).toBeUndefined();
  expect(branch.turns).toHaveLength(1);
});

test("a turn that was left open is shown without a run", async () => {
  const { store, turn } = await givenTurn();
  const [claim] = await store.listRuns();
  await store.releaseRun(ref, { epoch: claim!.epoch });
  const { branch, active } = await momentOf(createContext(store, {}), ref);
  expect(active).toBeNull();
  expect(branch.uncommittedTurn?.id).toBe(turn.turnId);
});
