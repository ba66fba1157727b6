import { describe, expect, test } from "vitest";
import { z } from "zod";
import { PartialJson } from "../../src/base/partial-json.ts";
import type { BoughEvent } from "../../src/index.ts";
import { Partials } from "../../src/runs/structured-output/partials.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { eventsOf, given, ofType, s } from "./kit.ts";

const schema = z.object({ city: z.string(), sights: z.array(z.object({ name: z.string(), metres: z.number() })) });
const oslo = {
  city: "Oslo",
  sights: [
    { name: "Opera", metres: 32 },
    { name: "City Hall", metres: 66 },
  ],
};
const text = JSON.stringify(oslo);

const ways = [
  { mode: "native", reply: text },
  { mode: "tool", reply: { calls: [{ name: "return_output", input: oslo }] } },
] as const;

/** A plan whose schema takes anything. */
const anything = { jsonSchema: {}, parse: async (value: unknown) => ({ value }), partial: (value: never) => value };

describe.each(ways)("an output in $mode mode, while it is written", ({ mode, reply }) => {
  const output = { schema, mode };
  const setting = () => given([], { model: scriptedModel([reply], { chunks: 1_000 }) });

  test("is shown as an object that grows to the whole one, at most once for each delta", async () => {
    const { agent } = await setting();
    const run = agent.run("Where?", { ...s, output });
    const events = await eventsOf(run);
    const shown = ofType(events, "output-partial");
    expect(shown.length).toBeGreaterThan(10);
    expect(shown[0]!.output).toEqual({});
    expect(shown.map((event) => event.output)).toContainEqual({ city: "Os" });
    expect(shown.at(-1)!.output).toEqual(oslo);
    const texts = shown.map((event) => JSON.stringify(event.output));
    expect(new Set(texts).size).toBe(texts.length);
    const type = mode === "native" ? "text-delta" : "tool-input-delta";
    for (const [i, event] of events.entries()) {
      if (event.type === "output-partial") expect(events[i - 1]!.type).toBe(type);
    }
    const { messages } = await run.result;
    expect(new Set(shown.map(({ messageId }) => messageId))).toEqual(new Set([messages[1]!.id]));
  });

  test("reaches subscribers that nobody else reads along with", async () => {
    const { agent } = await setting();
    const seen: BoughEvent[] = [];
    agent.subscribe("output-partial", (event) => void seen.push(event));
    await agent.run("Where?", { ...s, output }).text();
    expect(seen.at(-1)).toMatchObject({ channel: "streaming", output: oslo });
    expect(seen.at(-1)!.seq).toBeUndefined();
  });
});

describe("what nobody looks at", () => {
  /** Counts how often an object was read of the text. */
  async function readings(look: (agent: Awaited<ReturnType<typeof given>>["agent"]) => Promise<unknown>) {
    const add = PartialJson.prototype.add;
    let count = 0;
    PartialJson.prototype.add = function (piece) {
      count++;
      add.call(this, piece);
    };
    try {
      const { agent } = await given([text, text]);
      await look(agent);
    } finally {
      PartialJson.prototype.add = add;
    }
    return count;
  }

  test("is not read", async () => {
    expect(await readings((agent) => agent.run("Where?", { ...s, output: schema }).result)).toBe(0);
    expect(await readings((agent) => agent.run("Where?", { ...s, output: schema }).text())).toBe(0);
    const other = (agent: Parameters<Parameters<typeof readings>[0]>[0]) => {
      agent.subscribe("turn.committed", () => {});
      return agent.run("Where?", { ...s, output: schema }).result;
    };
    expect(await readings(other)).toBe(0);
    expect(await readings((agent) => eventsOf(agent.run("Where?", s)))).toBe(0);
    expect(await readings((agent) => eventsOf(agent.run("Where?", { ...s, output: schema })))).toBeGreaterThan(0);
  });
});

describe("partial objects of one answer", () => {
  const delta = (piece: string) => ({ type: "text-delta", id: "t", delta: piece }) as const;

  test("are whole for one who comes in the middle", () => {
    const partials = new Partials({ mode: "native", form: anything as never });
    for (const char of '{"a":"1","b":') partials.add(delta(char));
    expect(partials.next()).toEqual({ a: "1" });
  });

  test("are none after words that only look like a beginning, and none when nothing changed", () => {
    const partials = new Partials({ mode: "native", form: anything as never });
    const next = (piece: string) => partials.add(delta(piece)) && partials.next();
    const pieces = ["Well, ", "{", "not}", ' {"a"', ":", "1", " ", "   ", "}", " Done. {}"];
    const none = undefined;
    expect(pieces.map(next)).toEqual([none, {}, none, {}, none, none, { a: 1 }, none, none, none]);
  });

  test("carry together no more than a multiple of the text, however long it is", () => {
    for (const count of [100, 1_000, 10_000]) {
      const partials = new Partials({ mode: "native", form: anything as never });
      const whole = JSON.stringify({ items: Array.from({ length: count }, (_, i) => ({ i, words: "some words" })) });
      let carried = 0;
      let last: unknown;
      for (let i = 0; i < whole.length; i += 4) {
        partials.add(delta(whole.slice(i, i + 4)));
        const shown = partials.next();
        if (shown === undefined) continue;
        carried += JSON.stringify(shown).length;
        last = shown;
      }
      expect(JSON.stringify(last)).toBe(whole);
      expect(carried / whole.length).toBeLessThan(40);
    }
  });

  test("follow the call that gives the output, and no other", () => {
    const partials = new Partials({ mode: "tool", forms: new Map([["return_output", anything as never]]) });
    const start = (id: string, toolName: string) => partials.add({ type: "tool-input-start", id, toolName });
    const input = (id: string, piece: string) => partials.add({ type: "tool-input-delta", id, delta: piece });
    start("1", "add");
    expect(input("1", '{"x":1')).toBe(false);
    start("2", "return_output");
    start("3", "return_output");
    expect(partials.add(delta('{"y":1}'))).toBe(false);
    expect([input("3", '{"z":1}'), input("2", '{"a":"b"'), input("1", "}")]).toEqual([false, true, false]);
    expect(partials.next()).toEqual({ a: "b" });
  });
});
