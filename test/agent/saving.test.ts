// What a run asks of the store, and turns that wait for their caller to save them.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { add, adding, counted, eventsOf, expectLegal, factTypes, gate, given, main, refused, s, said } from "./kit.ts";

describe("how often a run writes", () => {
  async function appendsOf(script: Parameters<typeof given>[0], options: Parameters<typeof given>[1] = {}) {
    const counts: Record<string, number> = {};
    const { agent } = await given(script, { store: counted(memoryStore(), counts), ...options });
    const run = agent.run("Go", s);
    counts.append = 0;
    await run.result;
    return { counts, agent };
  }

  test("a turn without tools is two appends", async () => {
    const { counts } = await appendsOf(["Hi."]);
    expect(counts.append).toBe(2);
    expect([counts.releaseRun, counts.renewRun]).toEqual([undefined, undefined]);
  });

  test("an iteration with tools adds two when the results arrive together", async () => {
    const calls = [1, 2, 3].map((a) => ({ name: "add", input: { a, b: 1 } }));
    const { counts } = await appendsOf([{ calls }, "Done."], { tools: { add } });
    expect(counts.append).toBe(4);
    const twice = await appendsOf([{ calls }, { calls: calls.slice(1) }, "Done."], { tools: { add } });
    expect(twice.counts.append).toBe(6);
  });

  test("results that arrive one by one are written one by one", async () => {
    const steps = [gate(), gate(), gate()];
    const step = defineTool({
      description: "Waits for its turn.",
      input: z.object({ n: z.number() }),
      async execute({ n }) {
        await steps[n]!.passed;
        return n;
      },
    });
    const calls = [0, 1, 2].map((n) => ({ name: "step", input: { n } }));
    const counts: Record<string, number> = {};
    const { agent } = await given([{ calls }, "Done."], { store: counted(memoryStore(), counts), tools: { step } });
    const run = agent.run("Go", s);
    counts.append = 0;
    let returned = 0;
    steps[2]!.open();
    await eventsOf(run, (event) => event.type === "tool.returned" && steps[[1, 0][returned++]!]?.open());
    expect(counts.append).toBe(6);
    const { messages } = await run.result;
    expect(said(messages)[2]).toBe("tool: 0 1 2");
  });

  test("without pending writes a batch is one append, however its results arrive", async () => {
    const steps = [gate(), gate()];
    const step = defineTool({
      description: "Waits for its turn.",
      input: z.object({ n: z.number() }),
      async execute({ n }) {
        await steps[n]!.passed;
        steps[0]!.open();
        return n;
      },
    });
    const calls = [0, 1].map((n) => ({ name: "step", input: { n } }));
    const counts: Record<string, number> = {};
    const durable = { checkpoints: "manual", pendingWrites: false } as const;
    const options = { store: counted(memoryStore(), counts), tools: { step }, durable };
    const { agent } = await given([{ calls }, "Done."], options);
    const run = agent.run("Go", s);
    counts.append = 0;
    steps[1]!.open();
    const { messages } = await run.result;
    expect(counts.append).toBe(4);
    expect(said(messages)[2]).toBe("tool: 0 1");
  });

  test("without pending writes an interrupted batch has no results in the log, and is legal", async () => {
    const never = defineTool({
      description: "Waits.",
      input: z.object({}),
      execute: () => new Promise<never>(() => {}),
    });
    const calls = [...adding().calls, { name: "never", input: {} }];
    const durable = { checkpoints: "manual", pendingWrites: false } as const;
    const { agent } = await given([{ calls }, "Next."], { tools: { add, never }, durable });
    const run = agent.run("Go", s);
    let begun = 0;
    await eventsOf(run, (event) => void (event.type === "tool-start" && ++begun === 2 && run.interrupt()));
    expect(await factTypes(agent)).not.toContain("tool.returned");
    expectLegal((await agent.loadBranch("s")).messages);
  });

  test("a turn costs the same late in a conversation", async () => {
    const counts: Record<string, number> = {};
    const { agent } = await given(() => "ok", { store: counted(memoryStore(), counts) });
    const costs: string[] = [];
    for (let i = 0; i < 30; i++) {
      for (const name of Object.keys(counts)) counts[name] = 0;
      await agent.run(`input ${i}`, s).result;
      const { getBranch, append, read = 0, listBranches } = counts;
      costs.push(JSON.stringify({ getBranch, append, read, listBranches }));
    }
    expect(new Set(costs.slice(1)).size).toBe(1);
  });
});

describe("a store that fails", () => {
  /** A store whose appends fail from one on, for as long as a test wants. */
  function failingStore() {
    const store = memoryStore();
    const append = store.append.bind(store);
    const fails = { from: Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY };
    let count = 0;
    store.append = (...args) => {
      const n = count++;
      return n >= fails.from && n < fails.to ? Promise.reject(new Error("disk full")) : append(...args);
    };
    return { store, fails };
  }

  test("before anything is written fails the run, and holds nothing", async () => {
    const { store, fails } = failingStore();
    const { agent } = await given(["ok"], { store });
    Object.assign(fails, { from: 0, to: 1 });
    await expect(agent.run("Go", s).result).rejects.toThrow("disk full");
    expect(await agent.run("Go", s).text()).toBe("ok");
  });

  test.each([1, 2, 3])("once, at append %i, fails the turn and leaves a legal log", async (from) => {
    const { store, fails } = failingStore();
    const { agent } = await given([adding(), "Three.", "Next."], { store, tools: { add } });
    Object.assign(fails, { from, to: from + 1 });
    const run = agent.run("Go", s);
    const events = await eventsOf(run);
    expect(await run.result).toMatchObject({ status: "failed", error: { message: "disk full" } });
    expect(events.at(-1)).toMatchObject({ type: "run-end", status: "failed" });
    const { messages, turns } = await agent.loadBranch("s");
    expect(turns).toMatchObject([{ status: "failed" }]);
    expectLegal(messages);
    expect((await agent.run("Go on", s).result).status).toBe("completed");
  });

  test.each([1, 2, 3])(
    "for good from append %i on leaves the turn open; once it is back, it is taken up",
    async (from) => {
      const { store, fails } = failingStore();
      let runs = 0;
      const counting = { ...add, execute: () => ++runs };
      const { agent } = await given((prompt) => (prompt.length === 1 ? adding() : "Done."), {
        store,
        tools: { add: counting },
      });
      Object.assign(fails, { from });
      expect(await agent.run("Go", s).result).toMatchObject({ status: "failed", error: { message: "disk full" } });
      fails.from = Number.POSITIVE_INFINITY;
      expect(await agent.run(undefined, s).text()).toBe("Done.");
      expect(runs).toBe(from === 2 ? 2 : 1);
      expectLegal((await agent.loadBranch("s")).messages);
    },
  );
});

test("a message id that is taken is refused, and the branch is free", async () => {
  const { agent, store } = await given(["one", "two"]);
  await agent.run([{ role: "user", content: "x", id: "mine" }], s).result;
  await refused(agent.run([{ role: "user", content: "y", id: "mine" }], s).result, "event_conflict");
  expect(await store.listRuns()).toEqual([]);
  expect(await agent.run("z", s).text()).toBe("two");
});

describe("turns that the caller saves", () => {
  const persistAfterTurn = false;

  test("wait, can be built on, and are saved together", async () => {
    const { agent, model, again } = await given(["one", "two"], { persistAfterTurn });
    const { session, branch } = await agent.loadSessionAndBranch("s");
    await agent.run("1", { branch }).result;
    await agent.run("2", { branch }).result;
    expect(said(model.calls[1]!.prompt)).toEqual(["user: 1", "assistant: one", "user: 2"]);
    expect(await factTypes(agent)).not.toContain("turn.committed");
    const saved = await agent.saveSessionAndBranch(session, branch);
    expect(saved.branch.messages).toHaveLength(4);
    expect((await again().loadBranch("s")).messages).toHaveLength(4);
  });

  test("are discarded by a load when nobody saved them before the agent was closed", async () => {
    const { agent, again } = await given(["one", "two"], { persistAfterTurn });
    expect((await agent.run("1", s).result).status).toBe("completed");
    await agent.close();
    const next = again({ script: (prompt) => said(prompt).join() });
    const branch = await next.loadBranch("s");
    expect([branch.messages, branch.stagedTurns, branch.uncommittedTurn]).toEqual([[], [], undefined]);
    expect((await factTypes(next)).at(-1)).toBe("turn.discarded");
    expect((await next.run("2", s).result).text).toBe("user: 2");
  });

  test("are not discarded by others who look at the branch while the agent may still save them", async () => {
    const { agent, again, model } = await given(["one", "two"], { persistAfterTurn });
    const { session, branch } = await agent.loadSessionAndBranch("s");
    await agent.run("1", { branch }).result;
    for (const looking of [agent, again()]) expect((await looking.loadBranch("s")).stagedTurns).toHaveLength(1);
    await agent.run("2", { branch }).result;
    expect(said(model.calls[1]!.prompt)).toEqual(["user: 1", "assistant: one", "user: 2"]);
    const saved = await agent.saveSessionAndBranch(session, branch);
    expect(saved.savedTurns).toEqual(saved.branch.turns.map(({ id }) => id));
    expect(saved.branch.messages).toHaveLength(4);
    expect((await agent.saveSessionAndBranch(saved.session, saved.branch)).savedTurns).toEqual([]);
  });

  test("that fail or are interrupted wait for nobody", async () => {
    const { agent } = await given([{ error: new Error("gone") }], { persistAfterTurn });
    await agent.run("1", s).result;
    expect((await factTypes(agent)).at(-1)).toBe("turn.ended");
    expect((await agent.loadBranch("s")).turns).toMatchObject([{ status: "failed" }]);
  });

  test("have nothing to resume", async () => {
    const { agent } = await given(["one"], { persistAfterTurn });
    await agent.run("1", s).result;
    await expect(agent.run(undefined, s).result).rejects.toMatchObject({ code: "nothing_to_resume" });
    expect(await agent.events(main)).not.toHaveLength(0);
  });
});
