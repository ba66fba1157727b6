// Strategies and summarisers that misbehave. Each costs its time-out at most: the run goes on as it is, nothing is written, and
// after three failures in a row it is no longer tried.

import { describe, expect, test } from "vitest";
import { type CompactionStrategy, defineTool, summary } from "../../src/index.ts";
import type { ScriptedReply } from "../../src/scripted/index.ts";
import { expectLegal, factTypes, main, ofType, pass, s, settle } from "../agent/kit.ts";
import { callsOfModel, collect, compacting, filler, type Voices } from "./kit.ts";

const window = 4_000;
const compaction = { window, keep: { turns: 2 } };
/** Long enough for the share of the window to be reached. */
const turns = 16;

const tooLong = { error: { statusCode: 400, message: "prompt is too long: 5000 tokens > 4000 maximum" } };
const loop = "The user wants the report and then the user asks for it again. ".repeat(40);

const summarisers: Record<string, { summary: NonNullable<Voices["summary"]>; why: RegExp; perAttempt: number }> = {
  throws: { summary: () => ({ error: new Error("No summary today.") }), why: /No summary today/, perAttempt: 1 },
  "says nothing": { summary: () => "", why: /empty/, perAttempt: 1 },
  "only calls tools": {
    summary: () => ({ calls: [{ name: "look", input: {} }] }),
    why: /empty/,
    perAttempt: 2,
  },
  "writes more than it was given": { summary: () => filler("word", 9_000), why: /repeats|smaller/, perAttempt: 1 },
  "repeats itself": { summary: () => loop, why: /repeats itself/, perAttempt: 1 },
  "is refused as too long": { summary: () => tooLong, why: /context window/, perAttempt: 3 },
  "is refused as too large (413)": {
    summary: () => ({ error: { statusCode: 413, message: "Request too large" } }),
    why: /larger than the provider accepts/,
    perAttempt: 3,
  },
  "is told to wait for ever (429)": {
    summary: () => ({ error: { statusCode: 429, message: "Too many requests", isRetryable: true } }),
    why: /Too many requests/,
    perAttempt: 3,
  },
  "is cut off": { summary: () => ({ text: "They agreed", cutAfter: 2 }), why: /cut off/, perAttempt: 3 },
};

describe.each(Object.entries(summarisers))("a summariser that %s", (_, { summary: write, why, perAttempt }) => {
  test("changes nothing, and is given up after three failures", async () => {
    const tools = { look: defineTool({ input: {}, execute: () => "nothing" }) };
    const { agent, model } = await compacting({ summary: write }, { compaction, tools, retry: { baseMs: 0 } });
    const events = collect(agent);
    for (let i = 1; i <= turns; i++) {
      expect(await agent.run(filler(`question ${i}`, 300), s).text()).toBe("Yes.");
    }
    await settle();
    expect(await factTypes(agent)).not.toContain("history.compacted");
    const skips = ofType(events, "compaction-skip");
    expect(skips.length).toBeGreaterThan(3);
    for (const skip of skips.slice(0, 3)) expect(skip.why).toMatch(why);
    for (const skip of skips.slice(3)) expect(skip.why).toMatch(/three times/);
    const { summaries, replies } = callsOfModel(model);
    expect(summaries).toHaveLength(3 * perAttempt);
    expect(replies).toHaveLength(turns);
    for (const { prompt } of summaries) expectLegal(prompt);
    // The breaker is the branch's, so a new process knows it.
    expect((await agent.loadBranch("s")).state).toMatchObject({ "@compaction": { data: { count: 3 } } });
  });
});

test("a summariser that hangs costs its time-out, by the run's clock", async () => {
  const never = () => new Promise<ScriptedReply>(() => {});
  const { agent, clock, model } = await compacting(
    { summary: never },
    { compaction: { ...compaction, strategy: summary({ timeoutMs: 5_000 }) } },
  );
  const events = collect(agent);
  for (let i = 1; i <= 7; i++) await agent.run(filler(`question ${i}`, 300), s).result;
  expect(callsOfModel(model).summaries).toHaveLength(0);
  const run = agent.run(filler("question 8", 1_200), s);
  await pass(clock, 4_750);
  expect(callsOfModel(model).summaries).toHaveLength(1);
  expect(callsOfModel(model).replies).toHaveLength(7);
  await pass(clock, 500);
  expect(await run.text()).toBe("Yes.");
  expect(ofType(events, "compaction-skip")[0]!.why).toMatch(/took more than 5000 ms/);
});

test("an interrupted run does not wait for a summariser that hangs", async () => {
  const { agent, model } = await compacting({ summary: () => new Promise<ScriptedReply>(() => {}) }, { compaction });
  for (let i = 1; i <= 7; i++) await agent.run(filler(`question ${i}`, 300), s).result;
  const run = agent.run(filler("question 8", 1_200), s);
  for (let i = 0; i < 100 && callsOfModel(model).summaries.length === 0; i++) await settle();
  await run.interrupt("enough");
  expect(await run.result).toMatchObject({ status: "interrupted", reason: "enough" });
  expect(await factTypes(agent)).not.toContain("history.compacted");
});

const strategies: Record<string, CompactionStrategy["compact"]> = {
  "throws at once": () => {
    throw new Error("broken");
  },
  "returns nothing": async () => undefined as never,
  "returns no messages": async () => ({ replacements: [1] as never }),
  "returns a tool message": async () => ({ replacements: [{ role: "tool", content: "x" }] }),
  "keeps a message that is not there": async () => ({ replacements: [], keep: ["nowhere"] }),
  "keeps everything": async ({ messages }) => ({ replacements: [], keep: messages.map(({ id }) => id) }),
};

test.each(Object.entries(strategies))("a strategy that %s changes nothing", async (_, compact) => {
  const strategy = { name: "own", compact };
  const { agent } = await compacting({}, { compaction: { ...compaction, strategy } });
  const events = collect(agent);
  for (let i = 1; i <= turns; i++) {
    expect(await agent.run(filler(`question ${i}`, 300), s).text()).toBe("Yes.");
  }
  expect(await factTypes(agent)).not.toContain("history.compacted");
  expect(ofType(events, "compaction-skip").length).toBeGreaterThan(3);
});

test("the breaker closes when the model changes, and one success forgets the failures", async () => {
  let isBroken = true;
  const other = { ...(await compacting({})).model, modelId: "other" };
  const voices = { summary: () => (isBroken ? { error: new Error("no") } : "They agreed on blue.") };
  const { agent } = await compacting(voices, { compaction, models: { other } });
  for (let i = 1; i <= turns; i++) await agent.run(filler(`question ${i}`, 300), s).result;
  expect((await agent.loadBranch("s")).state).toMatchObject({ "@compaction": { data: { count: 3 } } });
  isBroken = false;
  await agent.run("Again?", s).result;
  expect(await factTypes(agent)).not.toContain("history.compacted");
  await agent.run("With another model?", { ...s, config: { model: "other" } }).result;
  expect(await factTypes(agent)).toContain("history.compacted");
  // Something was compacted since, so that the failures no longer count for any model.
  const before = (await factTypes(agent)).filter((type) => type === "history.compacted").length;
  for (let i = 1; i <= turns; i++) await agent.run(filler(`more ${i}`, 300), s).result;
  expect((await factTypes(agent)).filter((type) => type === "history.compacted").length).toBeGreaterThan(before);
});

test("a turn of 500 iterations stays within the window, and its task, its last batch and its pairs survive", async () => {
  const iterations = 500;
  const page = (n: number) => filler(`page ${n}`, 120);
  let reads = 0;
  const tools = { read: defineTool({ input: {}, execute: () => page(++reads) }) };
  const reply = (): ScriptedReply =>
    reads < iterations ? { calls: [{ name: "read", input: { page: reads } }] } : "Done.";
  const { agent, model } = await compacting(
    { reply },
    { compaction: { ...compaction, clear: false }, tools, limits: { iterations: iterations + 10 } },
  );
  const result = await agent.run("Read all five hundred pages.", s).result;
  expect(result).toMatchObject({ status: "completed", text: "Done." });
  const { summaries, replies } = callsOfModel(model);
  expect(summaries.length).toBeGreaterThan(10);
  for (const [i, { prompt }] of replies.entries()) {
    expectLegal(prompt);
    expect(JSON.stringify(prompt).length / 4).toBeLessThan(window);
    expect(JSON.stringify(prompt)).toContain("Read all five hundred pages.");
    if (i > 0) expect(JSON.stringify(prompt.at(-1))).toContain(`page ${i} `);
  }
  expect((await agent.loadBranch(main)).messages).toHaveLength(2 + 2 * iterations);
});
