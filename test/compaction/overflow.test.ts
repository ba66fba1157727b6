// Recovery from a prompt that is too long, which is on by default: the run compacts, calls again once, and otherwise fails with its
// history intact. The real provider packages against a mock server that refuses them, and the pairs with other features.

import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { defineTool, keepTurns, type LanguageModel, type Middleware } from "../../src/index.ts";
import { contextWindow } from "../../src/models/windows.ts";
import type { ScriptedReply } from "../../src/scripted/index.ts";
import { eventsOf, expectLegal, factTypes, given, main, ofType, s, said } from "../agent/kit.ts";
import { type ProviderName, providerModels, providerNames } from "../models/kit.ts";
import { callsOfModel, compacting, filler, tokensIn } from "./kit.ts";

const tooLong = (tokens: number) => ({
  statusCode: 400,
  message: `prompt is too long: ${tokens} tokens > 3000 maximum`,
});

/** Refuses what its provider would. */
const bounded = (most: number) => ({
  reply: (prompt: Parameters<typeof tokensIn>[0]): ScriptedReply =>
    tokensIn(prompt) > most ? { error: tooLong(tokensIn(prompt)) } : "Yes.",
});

describe("a prompt that the provider refuses", () => {
  test("is compacted once and sent again, without any option", async () => {
    const { agent, model } = await compacting(bounded(3_000));
    for (let i = 1; i <= 14; i++) {
      expect(await agent.run(filler(`question ${i}`, 300), s).text()).toBe("Yes.");
    }
    const { summaries, replies } = callsOfModel(model);
    // The next call is too long already, so the summary is asked for as text.
    for (const { prompt, tools } of summaries) {
      expect(prompt).toHaveLength(1);
      expect(tools).toBeUndefined();
      expect(tokensIn(prompt)).toBeLessThanOrEqual(3_000);
    }
    expect(summaries.length).toBeGreaterThan(0);
    expect(replies).toHaveLength(14 + summaries.length);
    for (const { prompt } of replies) expectLegal(prompt);
    expect(contextWindow(model)).toBe(3_000);
    const facts = ofType((await agent.events(main, { limit: 1000 })) as never, "history.compacted");
    expect(new Set(facts.map(({ reason }) => reason))).toEqual(new Set(["overflow"]));
    expect((await agent.loadBranch("s")).messages).toHaveLength(28);
  });

  test("a second time in the same call fails the run, with the history intact", async () => {
    const { agent, model } = await compacting({ reply: (_, i) => (i > 5 ? { error: tooLong(9_000) } : "Yes.") });
    for (let i = 1; i <= 6; i++) await agent.run(filler(`question ${i}`, 300), s).result;
    const result = await agent.run("And now?", s).result;
    expect(result).toMatchObject({ status: "failed", reason: "context_overflow" });
    expect(callsOfModel(model).replies).toHaveLength(6 + 2);
    expect((await agent.loadBranch("s")).messages).toHaveLength(13);
  });

  test.each([false, "off"] as const)("fails at once with compaction %s", async (choice) => {
    const { agent, model } = await compacting(bounded(1_000), choice === false ? { compaction: false } : {});
    const config = choice === "off" ? { compaction: choice } : {};
    for (let i = 1; i <= 3; i++) await agent.run(filler(`question ${i}`, 200), { ...s, config }).result;
    const { error } = await agent.run(filler("more", 400), { ...s, config }).result;
    expect(error?.code).toBe("context_overflow");
    expect(callsOfModel(model).summaries).toEqual([]);
  });

  test("of a first turn, where there is nothing to compact, fails as it is", async () => {
    const { agent, model } = await compacting(bounded(500));
    expect((await agent.run(filler("all", 900), s).result).error?.code).toBe("context_overflow");
    expect(model.calls).toHaveLength(1);
  });

  test("inside a turn with tools goes on with the turn, its task and its last batch", async () => {
    let reads = 0;
    const tools = { read: defineTool({ input: {}, execute: () => filler(`page ${++reads}`, 200) }) };
    const { reply } = bounded(2_000);
    const { agent, model } = await compacting(
      {
        reply: (prompt) => {
          const said = reply(prompt);
          return said === "Yes." && reads < 30 ? { calls: [{ name: "read", input: { n: reads } }] } : said;
        },
      },
      { tools, limits: { iterations: 100 } },
    );
    expect(await agent.run("Read thirty pages.", s).text()).toBe("Yes.");
    expect(reads).toBe(30);
    for (const { prompt } of callsOfModel(model).replies) {
      expectLegal(prompt);
      expect(JSON.stringify(prompt)).toContain("Read thirty pages.");
    }
  });

  test("hooks see the shorter request before it is sent", async () => {
    const lengths: number[] = [];
    const watch: Middleware = {
      name: "watch",
      beforeIteration: ({ request }) => void lengths.push(request.prompt.length),
    };
    const { agent } = await compacting(bounded(3_000), { middleware: [watch] });
    for (let i = 1; i <= 11; i++) await agent.run(filler(`question ${i}`, 300), s).result;
    expect(lengths.some((length, i) => i > 0 && length < lengths[i - 1]!)).toBe(true);
  });

  test("keepTurns drops the older part without asking a model", async () => {
    const { agent, model } = await compacting(bounded(3_000), {
      compaction: { strategy: keepTurns(4), window: 100_000 },
    });
    for (let i = 1; i <= 14; i++) expect(await agent.run(filler(`question ${i}`, 300), s).text()).toBe("Yes.");
    expect(callsOfModel(model).summaries).toEqual([]);
    expect(await factTypes(agent)).toContain("history.compacted");
  });
});

describe("and other features", () => {
  const compaction = { window: 4_000, keep: { turns: 2 } };
  const chat = async (agent: Awaited<ReturnType<typeof compacting>>["agent"], turns: number, scope: object = s) => {
    for (let i = 1; i <= turns; i++) await agent.run(filler(`question ${i}`, 300), scope).result;
  };

  test("restart: another process sees what the model saw", async () => {
    const { agent, model, again } = await compacting({}, { compaction });
    await chat(agent, 12);
    const before = callsOfModel(model).replies.at(-1)!.prompt;
    const restarted = again({ model });
    await restarted.run("Next.", s).result;
    const after = callsOfModel(model).replies.at(-1)!.prompt;
    expect(said(after).slice(0, before.length)).toEqual(said(before));
    expect(await restarted.contextUsage("s")).toMatchObject({ compactions: 1, isEstimate: false });
  });

  test("fork: the child has the overlay; uncompact gives it the words back and leaves the parent alone", async () => {
    const { agent, model } = await compacting({}, { compaction });
    await chat(agent, 12);
    await agent.forkBranch("s", { newBranchId: "child" });
    const child = { sessionId: "s", branchId: "child" };
    await agent.run("On the fork?", child).result;
    expect(said(callsOfModel(model).replies.at(-1)!.prompt)[0]).toMatch(/Earlier conversation, summarised/);
    await agent.uncompact(child);
    await agent.run("And now?", { ...child, config: { compaction: "off" } }).result;
    expect(said(callsOfModel(model).replies.at(-1)!.prompt)[0]).toMatch(/^user: question 1/);
    expect((await agent.contextUsage(main)).compactions).toBe(1);
  });

  test("revert to before the compaction takes it back", async () => {
    const { agent } = await compacting({}, { compaction });
    await chat(agent, 12);
    const [fact] = ofType((await agent.events(main, { limit: 1000 })) as never, "history.compacted");
    const { messages } = await agent.loadBranch("s");
    await agent.revertBranch(main, { to: messages[3]!.id });
    expect(fact!.seq).toBeGreaterThan(0);
    expect(await agent.contextUsage(main)).toMatchObject({ compactions: 0, messages: 4, visible: 4 });
  });

  test("staged turns: they are compacted around, and saved as they were", async () => {
    const { agent } = await compacting({}, { compaction, persistAfterTurn: false });
    const save = async () => agent.saveSessionAndBranch(await agent.getSession("s"), await agent.loadBranch("s"));
    await chat(agent, 6);
    await save();
    await chat(agent, 6);
    await save();
    expect((await agent.loadBranch("s")).messages).toHaveLength(24);
    expect(await factTypes(agent)).toContain("history.compacted");
  });

  test("a parked turn goes on after a compaction inside it", async () => {
    let reads = 0;
    const tools = {
      read: defineTool({ input: {}, execute: () => filler(`page ${++reads}`, 300) }),
      ask: defineTool({ input: {}, permission: true, execute: () => "asked" }),
    };
    const reply = (): ScriptedReply =>
      reads < 20 ? { calls: [{ name: "read", input: { n: reads } }] } : { calls: [{ name: "ask", input: {} }] };
    const { agent, model, again } = await compacting(
      { reply: (prompt) => (JSON.stringify(prompt).includes("asked") ? "Done." : reply()) },
      { tools, compaction: { ...compaction, clear: false }, limits: { iterations: 100 } },
    );
    const parked = await agent.run("Read, then ask.", { ...s, questions: "park" }).result;
    expect(parked.status).toBe("parked");
    expect(await factTypes(agent)).toContain("history.compacted");
    const restarted = again({ model });
    const run = await restarted.respond("s", parked.interactions![0]!.id, { approved: true });
    expect(await run!.text()).toBe("Done.");
    for (const { prompt } of callsOfModel(model).replies) {
      expectLegal(prompt);
      expect(JSON.stringify(prompt)).toContain("Read, then ask.");
    }
  });

  test("a pin survives automatic compactions word for word", async () => {
    const { agent, model } = await compacting({}, { compaction });
    await agent.run("Never delete the table called ledger_2019.", s).result;
    const { messages } = await agent.loadBranch("s");
    await agent.pin(main, messages[0]!.id);
    await chat(agent, 24);
    const last = callsOfModel(model).replies.at(-1)!.prompt;
    expect(said(last)).toContain("user: Never delete the table called ledger_2019.");
    expectLegal(last);
  });

  test("outputs of old calls are cleared where that is enough, except retained ones and errors", async () => {
    let reads = 0;
    const tools = {
      read: defineTool({ input: {}, execute: () => filler(`page ${++reads}`, 600) }),
      rules: defineTool({ input: {}, retain: true, execute: () => "RULES: be kind" }),
    };
    const reply = (_: unknown, i: number): ScriptedReply => {
      if (i === 0) return { calls: [{ name: "rules", input: {} }] };
      return reads < 9 ? { calls: [{ name: "read", input: { n: reads } }] } : "Done.";
    };
    const { agent, model } = await compacting(
      { reply },
      { tools, compaction: { window: 6_000, clear: { gain: 500 } }, limits: { iterations: 50 } },
    );
    expect(await agent.run("Read nine pages.", s).text()).toBe("Done.");
    expect(callsOfModel(model).summaries).toEqual([]);
    expect(await factTypes(agent)).toContain("history.cleared");
    const last = JSON.stringify(model.calls.at(-1)!.prompt);
    expect(last).toContain("[Output of read cleared:");
    expect(last).toContain("RULES: be kind");
    expect(last).toContain("page 9 ");
    expect(last).toContain("page 7 ");
    const clearings = await agent.listCompactions(main);
    expect(clearings[0]).toMatchObject({ reason: "share", retention: "soft", inForce: true, replacements: [] });
    expect((await agent.contextUsage(main)).compactions).toBe(clearings.length);
    const { answers } = await agent.checkCompaction(main, { questions: ["What did page 1 say?"] });
    expect(answers).toHaveLength(1);
    const [without, cleared] = model.calls.slice(-2).map(({ prompt }) => tokensIn(prompt));
    expect(Math.abs(without! - cleared!)).toBeGreaterThan(500);
    for (const { cleared = 0 } of clearings) expect((await agent.uncompact(main)).cleared).toBe(cleared);
    expect(JSON.stringify((await agent.loadBranch(main)).transcript())).not.toContain("[Output of read cleared:");
  });

  test("force compacts before the first call; stopAfter ends the turn there; both survive a resumption", async () => {
    const { agent, model } = await compacting({}, {});
    await chat(agent, 8);
    const config = { compaction: { force: true, stopAfter: true, keep: { turns: 2 } } };
    const result = await agent.run("Shorten.", { ...s, config }).result;
    expect(result).toMatchObject({ status: "completed", reason: "compacted", text: "" });
    expect(callsOfModel(model).replies).toHaveLength(8);
    expect(await agent.contextUsage("s")).toMatchObject({ compactions: 1 });
    const started = ofType((await agent.events(main, { limit: 1000 })) as never, "turn.started").at(-1)!;
    expect(started.request?.config).toEqual({ compaction: config.compaction });
  });
});

test("a process that has lost the branch writes no compaction", async () => {
  let isLate = false;
  const { agent, again, store } = await compacting(
    {
      summary: async () => {
        if (!isLate) {
          isLate = true;
          // As when the lease is over: while the summary is written, another process takes the branch.
          const [claim] = await store.listRuns();
          await store.releaseRun(claim!, claim!);
          expect(await again({ compaction: false }).run("Mine now.", s).text()).toBe("Yes.");
        }
        return "They agreed on blue.";
      },
    },
    { compaction: { window: 4_000, keep: { turns: 2 } } },
  );
  for (let i = 1; i <= 7; i++) await agent.run(filler(`question ${i}`, 300), s).result;
  const result = await agent.run(filler("question 8", 1_200), s).result;
  expect(result.status).not.toBe("completed");
  expect(await factTypes(again())).not.toContain("history.compacted");
  expect(await store.listRuns()).toEqual([]);
});

describe("the real provider packages", () => {
  const mock = new LLMock({ port: 0 });
  let models: Record<ProviderName, LanguageModel>;
  beforeAll(async () => {
    await mock.start();
    models = providerModels(mock);
  });
  beforeEach(() => mock.clearFixtures());
  afterAll(() => mock.stop());

  const refusals: Record<ProviderName, { message: string; type: string; code?: string }> = {
    "anthropic messages": {
      message: "prompt is too long: 213462 tokens > 200000 maximum",
      type: "invalid_request_error",
    },
    "openai chat": {
      message:
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
      type: "invalid_request_error",
      code: "context_length_exceeded",
    },
    "openai responses": {
      message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
      type: "invalid_request_error",
      code: "context_length_exceeded",
    },
  };

  test.each(providerNames)("%s: a run is saved by a compaction", async (name) => {
    const isSummary = (text: string) => text.includes("Write a summary of this conversation");
    const bodyOf = (request: unknown) => JSON.stringify(request);
    mock.on({ predicate: (request) => isSummary(bodyOf(request)) }, { content: "They agreed on blue." });
    const hasAll = (request: unknown) => bodyOf(request).includes("question 1 ") && bodyOf(request).includes("And now");
    mock.on({ predicate: hasAll }, { error: refusals[name], status: 400 });
    mock.on({ predicate: () => true }, { content: "Yes." });
    const { agent } = await given([], { model: models[name], retry: { baseMs: 0 } });
    for (let i = 1; i <= 6; i++) expect(await agent.run(filler(`question ${i}`, 200), s).text()).toBe("Yes.");
    const run = agent.run("And now?", s);
    const events = await eventsOf(run);
    expect(await run.result).toMatchObject({ status: "completed", text: "Yes." });
    expect(ofType(events, "compaction-end")).toMatchObject([{ reason: "overflow" }]);
    expect(ofType(events, "history.compacted")[0]!.replacements[0]!.content).toMatchObject([
      { text: expect.stringContaining("They agreed on blue.") },
    ]);
  });
});
