// How a run that waits hears what others write on its branch.

import { expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import type { Store } from "../../src/log/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock } from "../../src/testing/index.ts";
import { settle, until } from "../agent/kit.ts";
import { anAgent, questions, removesThenTells, removing, s } from "./asking-kit.ts";

/** A store whose watch is the test's. */
function watched(store: Store, watch: (next: () => Promise<void>) => Promise<void>): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const method = target[name];
      if (typeof method !== "function") return method;
      if (name === "watch") return (...args: Parameters<Store["watch"]>) => watch(() => target.watch(...args));
      return method.bind(target);
    },
  });
}

test("a run that waits for answers has one ear on its branch, also once it is a while old", async () => {
  const clock = manualClock();
  const ears = { now: 0, most: 0 };
  const store = watched(memoryStore({ clock }), async (next) => {
    ears.most = Math.max(ears.most, ++ears.now);
    await next();
    ears.now--;
  });
  const { ran, tools } = removing();
  const agent = await anAgent({ model: removesThenTells("a", "b"), tools, store, clock });
  const run = agent.run("go", { ...s, questions: "wait" });
  const [a, b] = await questions(agent, 2);
  for (let i = 0; i < 5; i++) {
    clock.advance(100);
    await settle();
  }
  await agent.answer(s, a!.id, { approved: true });
  await agent.answer(s, b!.id, { approved: true });
  expect((await run.result).status).toBe("completed");
  expect(ran.toSorted()).toEqual(["a", "b"]);
  expect(ears.most).toBe(1);
});

test("an answer comes also when the log can't be looked at for a while, which is not asked for in a hurry", async () => {
  const clock = manualClock();
  let looks = 0;
  const store = watched(memoryStore({ clock }), (next) => {
    looks++;
    return looks <= 3 ? Promise.reject(new BoughError("store_unavailable", "Not now.")) : next();
  });
  const { ran, tools } = removing();
  const agent = await anAgent({ model: removesThenTells("a"), tools, store, clock });
  const run = agent.run("go", { ...s, questions: "wait" });
  const [a] = await questions(agent, 1);
  await until(() => looks === 1);
  await agent.answer(s, a!.id, { approved: true });
  await settle();
  expect([looks, ran]).toEqual([1, []]);
  for (let i = 0; i < 3; i++) {
    clock.advance(1000);
    await settle();
  }
  expect((await run.result).status).toBe("completed");
  expect([ran, looks < 8]).toEqual([["a"], true]);
});
