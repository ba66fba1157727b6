// Automatic compaction in a run: when it happens, what the model sees afterwards, and what it costs.

import { describe, expect, test } from "vitest";
import { defineTool, summary } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { expectLegal, factTypes, main, ofType, s, said, settle } from "../agent/kit.ts";
import { asksForSummary, callsOfModel, collect, compacting, filler, tokensIn } from "./kit.ts";

const window = 4_000;

describe("before a call whose prompt fills its share of the window", () => {
  test("the older part is shown as a summary, and the run goes on", async () => {
    const { agent, model } = await compacting(
      {},
      { compaction: { window, keep: { turns: 2 } }, instructions: "Be brief." },
    );
    const events = collect(agent);
    for (let i = 1; i <= 12; i++) {
      expect(await agent.run(filler(`question ${i}`, 300), s).text()).toBe("Yes.");
    }
    const { summaries, replies } = callsOfModel(model);
    expect(summaries.length).toBeGreaterThan(0);
    for (const { prompt } of replies) {
      expectLegal(prompt);
      expect(tokensIn(prompt)).toBeLessThan(window);
    }
    const last = said(replies.at(-1)!.prompt);
    expect(last[0]).toBe("system: Be brief.");
    expect(last[1]).toMatch(
      /^user: Earlier conversation, summarised; \d+ messages from \S+ to \S+\.\n\nThey agreed on blue\.$/,
    );
    // People see all of it.
    expect((await agent.loadBranch("s")).messages).toHaveLength(24);
    const starts = ofType(events, "compaction-start");
    const ends = ofType(events, "compaction-end");
    expect(ends).toHaveLength(starts.length);
    for (const { before, after, reason } of ends) {
      expect(reason).toBe("share");
      expect(before).toBeGreaterThanOrEqual(0.8 * window);
      expect(after).toBeLessThanOrEqual(0.7 * before);
    }
    expect(ofType(events, "history.compacted").map(({ id }) => id)).toEqual(
      ends.map(({ compactionId }) => compactionId),
    );
  });

  test("the estimate is close to what the provider counts", async () => {
    const { agent, model } = await compacting({}, { compaction: { window, keep: { turns: 2 } } });
    const events = collect(agent);
    for (let i = 1; i <= 12; i++) await agent.run(filler(`question ${i}`, 300), s).result;
    const [end] = ofType(events, "compaction-end");
    const at = model.calls.findIndex(({ prompt }) => asksForSummary(prompt));
    const next = tokensIn(model.calls[at + 1]!.prompt);
    expect(end!.after).toBeGreaterThan(next * 0.6);
    expect(end!.after).toBeLessThan(next * 1.4);
  });

  test("the summary's request is the next call's, with one more message", async () => {
    const tools = { look: defineTool({ input: {}, execute: () => "nothing" }) };
    const { agent, model } = await compacting(
      {},
      { compaction: { window, keep: { turns: 2 } }, instructions: "Be brief.", tools, settings: { temperature: 0.5 } },
    );
    for (let i = 1; i <= 12; i++) await agent.run(filler(`question ${i}`, 300), s).result;
    const at = model.calls.findIndex(({ prompt }) => asksForSummary(prompt));
    const [before, summary] = [model.calls[at - 1]!, model.calls[at]!];
    expect(summary.tools).toEqual(before.tools);
    expect(summary.toolChoice).toEqual(before.toolChoice);
    expect(summary.temperature).toBe(0.5);
    expect(summary.prompt.slice(0, before.prompt.length)).toEqual(before.prompt);
    // The reply to the call before, the new input, and the question.
    expect(summary.prompt).toHaveLength(before.prompt.length + 3);
    expect(said([summary.prompt.at(-2)!])[0]).toMatch(/^user: question/);
    expect(summary.maxOutputTokens).toBe(4096);
  });

  test("the turn's usage has the summary's, and says so", async () => {
    const { agent } = await compacting({}, { compaction: { window, keep: { turns: 2 } } });
    const results = [];
    for (let i = 1; i <= 12; i++) results.push(await agent.run(filler(`question ${i}`, 300), s).result);
    const summed = results.filter(({ summaries }) => summaries);
    expect(summed.length).toBeGreaterThan(0);
    for (const { usage, summaries } of summed) {
      expect(summaries!.inputTokens).toBeGreaterThan(0.7 * window);
      expect(usage.inputTokens).toBeGreaterThan(summaries!.inputTokens!);
    }
    const committed = ofType((await agent.events(main, { limit: 1000 })) as never, "turn.committed");
    expect(committed.filter(({ summaries }) => summaries)).toHaveLength(summed.length);
    expect(committed.every(({ context }) => context!.model === "bough/scripted")).toBe(true);
  });
});

test("a summary by another model that the agent has a name for, in runs and by hand", async () => {
  const cheap = Object.assign(
    scriptedModel(() => "They agreed on green."),
    { modelId: "small" },
  );
  const { agent, model } = await compacting(
    {},
    { models: { cheap }, compaction: { messages: 8, keep: { turns: 1 }, strategy: summary({ model: "cheap" }) } },
  );
  for (let i = 1; i <= 5; i++) await agent.run(filler(`question ${i}`, 50), s).result;
  await agent.compact(main, { keep: { turns: 0 } });
  expect(await agent.listCompactions(main)).toMatchObject([
    { model: "bough/small", reason: "manual" },
    { model: "bough/small", reason: "messages" },
  ]);
  expect(callsOfModel(model).summaries).toEqual([]);
  expect(cheap.calls).toHaveLength(2);
});

test("nothing is compacted unless it is asked for", async () => {
  const { agent, model } = await compacting({});
  for (let i = 1; i <= 12; i++) await agent.run(filler(`question ${i}`, 300), s).result;
  expect(callsOfModel(model).summaries).toEqual([]);
  expect(await factTypes(agent)).not.toContain("history.compacted");
});

describe("other bounds", () => {
  test("a count of tokens, without a window", async () => {
    const { agent, model } = await compacting({}, { compaction: { tokens: 2_000, keep: { turns: 2 } } });
    const events = collect(agent);
    for (let i = 1; i <= 12; i++) await agent.run(filler(`question ${i}`, 300), s).result;
    expect(ofType(events, "compaction-end").map(({ reason }) => reason)).toContain("tokens");
    for (const { prompt } of callsOfModel(model).replies) expect(tokensIn(prompt)).toBeLessThan(2_500);
  });

  test("a count of turns", async () => {
    const { agent, model } = await compacting({}, { compaction: { turns: 6, keep: { turns: 2 } } });
    for (let i = 1; i <= 12; i++) await agent.run(filler(`question ${i}`, 50), s).result;
    const facts = ofType((await agent.events(main, { limit: 1000 })) as never, "history.compacted");
    expect(facts.map(({ reason }) => reason)).toEqual(["turns", "turns"]);
    for (const { prompt } of callsOfModel(model).replies) expect(prompt.length).toBeLessThanOrEqual(12);
  });

  test("a count of messages", async () => {
    const { agent, model } = await compacting({}, { compaction: { messages: 10, keep: { turns: 2 } } });
    for (let i = 1; i <= 12; i++) await agent.run(filler(`question ${i}`, 50), s).result;
    const facts = ofType((await agent.events(main, { limit: 1000 })) as never, "history.compacted");
    expect(facts.length).toBeGreaterThan(1);
    expect(new Set(facts.map(({ reason }) => reason))).toEqual(new Set(["messages"]));
    for (const { prompt } of callsOfModel(model).replies) expect(prompt.length).toBeLessThanOrEqual(10);
  });

  test("a smaller share, once the provider's cache is cold", async () => {
    const { agent, clock } = await compacting({}, { compaction: { window, keep: { turns: 1 } } });
    const events = collect(agent);
    for (let i = 1; i <= 7; i++) await agent.run(filler(`question ${i}`, 300), s).result;
    expect(ofType(events, "compaction-end")).toEqual([]);
    clock.advance(301_000);
    await agent.run("And now?", s).result;
    await settle();
    expect(ofType(events, "compaction-end")).toMatchObject([{ reason: "cold" }]);
  });
});

test("a compaction by hand asks the agent's model, heeds instructions, and closes the breaker", async () => {
  const seen: string[] = [];
  const summary = (prompt: Parameters<typeof tokensIn>[0]) => {
    seen.push(said(prompt).at(-1)!);
    return seen.length <= 3 ? "" : "They agreed on blue.";
  };
  const { agent } = await compacting({ summary }, { compaction: { window, keep: { turns: 2 } } });
  for (let i = 1; i <= 14; i++) await agent.run(filler(`question ${i}`, 300), s).result;
  expect(seen).toHaveLength(3);
  expect(await agent.contextUsage("s")).toMatchObject({ compactions: 0, breaker: { failures: 3, isOpen: true } });
  const made = await agent.compact("s", { keep: { turns: 2 }, instructions: "Keep every colour." });
  expect(made).toMatchObject({ strategy: "summary", model: "bough/scripted", reason: "manual" });
  expect(seen.at(-1)).toContain("Heed this above all: Keep every colour.");
  expect(await agent.contextUsage("s")).toMatchObject({ compactions: 1, breaker: { failures: 0, isOpen: false } });
});
