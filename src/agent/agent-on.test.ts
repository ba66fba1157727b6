import { expect, test, vi } from "vitest";
import { scriptedModel } from "../scripted/index.ts";
import { createContext } from "../sessions/context.ts";
import { memoryStore } from "../stores/memory/index.ts";
import { manualClock } from "../testing/index.ts";
import { contextOf } from "./agent.ts";
import { agentOn } from "./agent-on.ts";
import { createAgent } from "./index.ts";

const scope = { sessionId: "s" };

test("Context-1: agents on one context share its views: what one wrote, the other need not read", async () => {
  const store = memoryStore();
  const context = createContext(store, {});
  const [one, two] = [1, 2].map((n) => agentOn(context, { id: `agent-${n}`, model: scriptedModel([`${n}`, `${n}`]) }));
  await one!.createSession("s");
  const reads = vi.spyOn(store, "read");
  for (const agent of [one, two, one]) await agent!.run("Hi", scope).result;
  expect((await two!.loadBranch("s")).messages).toHaveLength(6);
  expect(reads).not.toHaveBeenCalled();
  expect(context.views.cache.size).toBe(1);
});

test("Context-2: closing an agent on a given context leaves the store open for the others", async () => {
  const context = createContext(memoryStore(), {});
  const [one, two] = [1, 2].map(() => agentOn(context, { model: scriptedModel(["Hello."]) }));
  await one!.createSession("s");
  await one!.close();
  expect((await two!.run("Hi", scope).result).text).toBe("Hello.");
  await context.close();
  await expect(two!.getSession("s")).rejects.toMatchObject({ code: "store_closed" });
});

test("an agent on a context has the context's clock, ids and owner unless its options give others", async () => {
  const context = createContext(memoryStore(), { clock: manualClock(), owner: "context's" });
  const plain = contextOf(agentOn(context, { model: scriptedModel([]) }));
  expect([plain.clock, plain.ids, plain.owner()]).toEqual([context.clock, context.ids, "context's"]);
  const clock = manualClock();
  const own = contextOf(agentOn(context, { model: scriptedModel([]), clock, owner: "its own" }));
  expect([own.clock, own.owner()]).toEqual([clock, "its own"]);
  expect(own.staging).not.toBe(context.staging);
});

test("agents that users create on one store object keep views of their own, each within its own budget", () => {
  const store = memoryStore();
  const [one, two] = [1, 2].map(() => createAgent({ model: scriptedModel([]), store }));
  expect(contextOf(one!).views).not.toBe(contextOf(two!).views);
});
