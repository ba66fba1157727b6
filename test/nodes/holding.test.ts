// Holding a branch while a run works on it, and giving it back.

import { expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import { defineTool, type Store } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock } from "../../src/testing/index.ts";
import { endless, eventsOf, factTypes, gate, given, ofType, s, settle, until } from "../agent/kit.ts";

const input = { type: "object" } as const;

test("a run that goes on with its turn after an answer holds the branch, and shows every fact once", async () => {
  const calls = [
    { name: "ask", input: {} },
    { name: "slow", input: {} },
  ];
  const all = await given((prompt) => (prompt.length > 1 ? "Done." : { calls }), {
    tools: {
      ask: defineTool({ input, permission: true, execute: () => clock.sleep(60_000).then(() => "asked") }),
      slow: defineTool({ input, execute: () => clock.sleep(5000).then(() => "slow") }),
    },
  });
  const { agent, clock, store } = all;
  const run = agent.run("Go", { ...s, questions: "park" });
  const opened: string[] = [];
  const events = eventsOf(run, (event) => event.type === "interaction.opened" && opened.push(event.id));
  await until(() => opened.length === 1);
  await agent.answer(s, opened[0]!, { approved: true });
  for (let ms = 0; ms < 70_000; ms += 1000) {
    clock.advance(1000);
    await settle();
  }
  expect(await run.result).toMatchObject({ status: "completed", text: "Done." });
  const numbers = (await events).flatMap(({ seq }) => seq ?? []);
  expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
  expect(ofType(await events, "interaction.answered")).toHaveLength(1);
  expect(await store.listRuns()).toEqual([]);
});

/** The store, with renewals that go through the test's hands. */
function withRenewRun(store: Store, renew: (go: () => Promise<unknown>) => Promise<unknown>): Store {
  const renewRun: Store["renewRun"] = async (ref, claim) => {
    const go = () => store.renewRun(ref, claim);
    return (claim.leaseMs > 0 ? renew(go) : go()) as ReturnType<typeof go>;
  };
  return new Proxy(store, {
    get(target, name: keyof Store) {
      if (name === "renewRun") return renewRun;
      const method = target[name];
      return typeof method === "function" ? method.bind(target) : method;
    },
  });
}

/** A run in the middle of a call, on such a store. */
async function withRenewals(renew: (go: () => Promise<unknown>) => Promise<unknown>) {
  const clock = manualClock();
  const store = memoryStore({ clock });
  const held = withRenewRun(store, renew);
  const begun = { count: 0 };
  const script = [{ calls: [{ name: "wait", input: {} }] }];
  const { agent } = await given(script, { clock, store: held, tools: { wait: endless(begun) } });
  const run = agent.run("Go", s);
  await until(() => begun.count === 1);
  return { agent, clock, store, run };
}

test("a process does not take over its own run, although its lease is over because the store was not to be reached", async () => {
  const { agent, clock, run } = await withRenewals(() =>
    Promise.reject(new BoughError("store_unavailable", "Not now.")),
  );
  const stop = agent.keepRecovering();
  for (let ms = 0; ms < 70_000; ms += 500) {
    clock.advance(500);
    await settle();
  }
  expect(await factTypes(agent)).not.toContain("turn.resumed");
  await stop();
  await run.interrupt();
  expect((await run.result).status).toBe("interrupted");
});

test("a run that is handed over is free at once, also when a sign of life was under way", async () => {
  const arrives = gate();
  const { agent, clock, store, run } = await withRenewals((go) => arrives.passed.then(go));
  clock.advance(10_000);
  await settle();
  clock.advance(1000);
  await settle();
  const closing = agent.close();
  await settle();
  arrives.open();
  await closing;
  expect((await run.result).reason).toBe("handed-over");
  const [claim] = await store.listRuns();
  expect(claim!.expiresAt).toBeLessThanOrEqual(clock.now());
});

test("a run whose lease is over does not act on an answer that another one has acted on", async () => {
  const clock = manualClock();
  const store = memoryStore({ clock });
  const executed: string[] = [];
  const tools = (who: string) => ({ pay: defineTool({ input, permission: true, execute: () => executed.push(who) }) });
  const script = (prompt: readonly unknown[]) =>
    prompt.length > 1 ? "Done." : { calls: [{ name: "pay", input: {} }] };
  const awake = gate();
  const paused = withRenewRun(store, (go) => awake.passed.then(go));
  const one = await given(script, { clock, store: paused, tools: tools("one") });
  const other = one.again({ store, owner: "other/1", tools: tools("other") });
  const opened: string[] = [];
  const run = one.agent.run("Go", s);
  const events = eventsOf(run, (event) => event.type === "interaction.opened" && opened.push(event.id));
  await until(() => opened.length === 1);
  clock.advance(31_000);
  await settle();
  const taken = await other.respond(s, opened[0]!, { approved: true });
  expect(await taken!.result).toMatchObject({ status: "completed" });
  awake.open();
  expect(await run.result).toMatchObject({ status: "failed", error: { code: "epoch_stale" } });
  await events;
  expect(executed).toEqual(["other"]);
});

test("a run whose turn is committed is completed, although its branch is deleted before others' facts are read", async () => {
  const clock = manualClock();
  const store = memoryStore({ clock });
  let isRenamed = false;
  const append: Store["append"] = async (ref, events, options) => {
    if (!options?.release) return store.append(ref, events, options);
    // Once: a turn that closes is decided again on what others wrote.
    if (!isRenamed) await other.updateBranch({ sessionId: "s", branchId: "main" }, { name: "Renamed" });
    isRenamed = true;
    const appended = await store.append(ref, events, options);
    await other.deleteSession("s");
    return appended;
  };
  const raced = new Proxy(store, {
    get(target, name: keyof Store) {
      const method = name === "append" ? append : target[name];
      return typeof method === "function" ? method.bind(target) : method;
    },
  });
  const { agent, again } = await given(() => "Done.", { clock, store: raced });
  const other = again({ store });
  expect(await agent.run("Go", s).result).toMatchObject({ status: "completed", text: "Done." });
  expect(await store.getSession("s")).toBeUndefined();
});
