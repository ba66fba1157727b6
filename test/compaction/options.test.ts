// What the option `compaction` may say, and what is refused with a sentence.

import { expect, test } from "vitest";
import { createAgent, keepTurns, summary } from "../../src/index.ts";
import { refused, s } from "../agent/kit.ts";
import { compacting, countingModel } from "./kit.ts";

const model = countingModel();

test.each([
  true,
  false,
  {},
  { window: 8_000, at: 0.7, coldAt: 0.4, target: 0.3, keep: { turns: 3, tokens: 0 } },
  { at: 0.3 },
  { tokens: 50_000, turns: 30, messages: 200, clear: false as const, retention: "hard" as const },
  { window: () => 8_000, clear: { batches: 0, gain: 0, except: ["read"] } },
  { strategy: summary({ via: "text", maxTokens: 500 }) },
  { strategy: keepTurns(20), turns: 25 },
  { turns: 1 },
  { strategy: async () => ({ replacements: [] }) },
])("an agent takes %j", (compaction) => {
  expect(() => createAgent({ model, compaction })).not.toThrow();
});

test.each([
  ["yes", /^compaction must be true, false or an object\.$/],
  [{ treshold: 1 }, /may not have the key "compaction\.treshold"\. Known keys/],
  [{ at: 1.5 }, /^compaction\.at must be a share > 0 and ≤ 1\.$/],
  [{ at: 0.4, coldAt: 0.6 }, /coldAt must not be larger than compaction\.at/],
  [{ at: 0.4, target: 0.4 }, /target must be smaller than compaction\.at/],
  [{ window: 0 }, /^compaction\.window must be a number of tokens or a function/],
  [{ messages: 2.5 }, /^compaction\.messages must be an integer ≥ 1\.$/],
  [{ turns: 5, keep: { turns: 5 } }, /^compaction\.turns must be larger than the 5 turns that are kept/],
  [{ turns: 15, strategy: keepTurns(20) }, /larger than the 20 turns/],
  [{ keep: { turn: 3 } }, /Did you mean "turns"/],
  [{ keep: { tokens: -1 } }, /^compaction\.keep\.tokens must be an integer ≥ 0\.$/],
  [{ clear: true }, /^compaction\.clear must be false or an object\.$/],
  [{ clear: { gains: 1 } }, /may not have the key "compaction\.clear\.gains"/],
  [{ strategy: "summary" }, /^compaction\.strategy must be a strategy/],
  [{ retention: "firm" }, /^compaction\.retention must be one of "soft", "hard"\.$/],
  [{ force: true }, /may not have the key "compaction\.force"/],
])("an agent refuses %j", (compaction, sentence) => {
  expect(() => createAgent({ model, compaction: compaction as never })).toThrow(sentence);
});

test.each([
  [{ maxTokens: 0 }, /^maxTokens must be an integer ≥ 1\.$/],
  [{ timeoutMs: 0 }, /^timeoutMs must be a number of milliseconds > 0\.$/],
  [{ via: "mail" }, /^via must be one of "cache", "text"\.$/],
  [{ promt: "x" }, /Did you mean "prompt"/],
])("summary refuses %j", (options, sentence) => {
  expect(() => summary(options as never)).toThrow(sentence);
});

test("a run's own is checked too, and kept with its turn only where it is JSON", async () => {
  const { agent } = await compacting({});
  await refused(agent.run("Hi", { ...s, config: { compaction: "on" as never } }).result, "invalid_argument");
  await refused(agent.run("Hi", { ...s, config: { compaction: { at: 2 } } }).result, "invalid_argument");
  await agent.run("Hi", { ...s, config: { compaction: { strategy: keepTurns(3) } } }).result;
  await agent.run("Hi", { ...s, config: { compaction: "off" } }).result;
  const started = (await agent.events(s)).filter((event) => event.type === "turn.started");
  expect(started.map(({ request }) => request)).toEqual([
    { missing: ["config.compaction"] },
    { config: { compaction: "off" } },
  ]);
});
