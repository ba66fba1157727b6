import { expect, test } from "vitest";
import { z } from "zod";
import type { Script } from "../../src/testing/index.ts";
import { add, adding, endless, eventsOf, given, ofType, s } from "./kit.ts";

test("usage is that of the whole turn, also of what runs before used that did not come to its end", async () => {
  const usage = { inputTokens: 3, outputTokens: 2 };
  const { agent, again } = await given([{ ...adding(), usage }], { tools: { add: endless() } });
  const first = agent.run("1 and 2?", s);
  for await (const { type } of first) if (type === "tool-start") break;
  await first.park();
  const script: Script = [
    { ...adding(), usage },
    { text: "Three.", usage },
  ];
  const second = await again({ script, tools: { add } }).run(undefined, s).result;
  expect(second).toMatchObject({ iterations: 3, usage: { inputTokens: 9, outputTokens: 6 } });
  const [turn] = (await agent.loadBranch("s")).turns;
  expect(turn).toMatchObject({ iterations: 3, usage: { inputTokens: 9, outputTokens: 6 } });
});

test("usage counts an answer that had to be said again, also when another run reads the better one", async () => {
  const usage = { inputTokens: 3, outputTokens: 2 };
  const hangs = new Promise<never>(() => {});
  const script: Script = (_, call) => (call === 0 ? { text: "no JSON", usage } : hangs);
  const output = z.object({ n: z.number() });
  const { agent, again } = await given(script);
  const first = agent.run("A number", { ...s, output });
  let asked = 0;
  for await (const { type } of first) if (type === "iteration-start" && ++asked === 2) break;
  await first.park();
  const second = again({ script: [{ text: '{"n":1}', usage }] }).run(undefined, { ...s, output });
  expect((await second.result).usage).toMatchObject({ inputTokens: 6, outputTokens: 4 });
});

test("usage and iterations are those of the whole turn, in the result and in the log", async () => {
  const usage = { inputTokens: 3, outputTokens: 2 };
  const { agent } = await given(
    [
      { ...adding(), usage },
      { text: "Three.", usage },
    ],
    { tools: { add } },
  );
  const { usage: used, iterations, reason } = await agent.run("1 and 2?", s).result;
  expect(used).toMatchObject({ inputTokens: 6, outputTokens: 4 });
  expect({ iterations, reason }).toEqual({ iterations: 2, reason: "stop" });
  const [turn] = (await agent.loadBranch("s")).turns;
  expect(turn).toMatchObject({ iterations: 2, reason: "stop", usage: { inputTokens: 6, outputTokens: 4 } });
});

test("cache writes are summed over a turn and kept in its facts", async () => {
  const { agent } = await given(
    [
      { ...adding(), usage: { inputTokens: 50, outputTokens: 1, cacheWriteTokens: 40 } },
      { text: "Three.", usage: { inputTokens: 60, outputTokens: 2, cachedInputTokens: 40, cacheWriteTokens: 12 } },
    ],
    { tools: { add } },
  );
  const run = agent.run("Hi", s);
  const events = await eventsOf(run);
  const total = { inputTokens: 110, outputTokens: 3, totalTokens: 113, cachedInputTokens: 40, cacheWriteTokens: 52 };
  expect((await run.result).usage).toEqual(total);
  expect(ofType(events, "turn.committed")[0]?.usage).toEqual(total);
  expect(ofType(events, "message.added")[1]?.usage).toMatchObject({ inputTokens: 50, cacheWriteTokens: 40 });
  expect((await agent.loadBranch("s")).turns[0]?.usage).toEqual(total);
});
