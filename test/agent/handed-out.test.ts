// What is handed out is its receiver's: changing it changes neither what later calls send nor what the log and the caches
// hold. Two agents run the same conversation; on one of them everything that is handed out is changed in every way.

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Agent, Middleware } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { add, adding, eventsOf, given, main, s, settle } from "./kit.ts";

/** Changes a value in place wherever that is possible: adds, overwrites, removes, empties. */
function spoil(value: unknown, pick: () => number, seen = new Set<unknown>()): void {
  if (typeof value !== "object" || value === null || seen.has(value) || value instanceof AbortSignal) return;
  if (seen.size > 500) return;
  seen.add(value);
  const keys = Reflect.ownKeys(value).filter((key) => key !== "length");
  for (const key of keys) spoil(Reflect.get(value, key), pick, seen);
  const key = keys[pick() % Math.max(1, keys.length)] ?? "new";
  const ways = [
    () => Reflect.set(value, key, "spoilt"),
    () => Reflect.deleteProperty(value, key),
    () => Reflect.set(value, "spoilt", { spoilt: true }),
    () => Reflect.set(value, "providerOptions", { spoilt: { cacheControl: true } }),
    () => Array.isArray(value) && Reflect.set(value, "length", 0),
    () => Array.isArray(value) && Reflect.set(value, String(value.length), { role: "user", content: "spoilt" }),
  ];
  ways[pick() % ways.length]!();
}

type Spoiler = (value: unknown) => void;

/** A middleware that hands everything its hooks are given to the spoiler, after the work that must still go on. */
function hooks(spoilt: Spoiler): Middleware {
  return {
    name: "spoiling",
    afterTurn: (_, turn) => spoilt({ ...turn, error: undefined }),
    afterIteration: (_, iteration) => spoilt(iteration),
    afterTools: (_, outputs) => spoilt(outputs),
  };
}

async function converse(spoilt: Spoiler): Promise<unknown> {
  const model = scriptedModel((_, i) =>
    i % 3 === 0 ? { reasoning: "Well.", text: "Let me see.", ...adding(i, 1) } : `answer ${i}`,
  );
  const looking = {
    ...add,
    execute: ({ a, b }: { a: number; b: number }, context: { messages: unknown }) => {
      spoilt(context.messages);
      return { sum: a + b, parts: [a, b] };
    },
  };
  const { agent, store } = await given([], {
    model,
    name: "Bo",
    tools: { add: looking },
    middleware: [hooks(spoilt)],
    settings: { providerOptions: { test: { on: true } }, stop: ["never"] },
  });
  agent.subscribe("*", spoilt);
  const prompts: string[] = [];
  for (let turn = 0; turn < 4; turn++) {
    const run = agent.run([{ role: "user", content: `question ${turn}` }], s);
    await eventsOf(run, spoilt);
    spoilt(await run.result);
    await spoilAll(agent, spoilt);
  }
  await settle();
  for (const call of model.calls) prompts.push(JSON.stringify(call));
  const branch = await agent.loadBranch("s");
  const events = await agent.events(main, { limit: 1000 });
  return {
    prompts,
    branch: JSON.stringify([branch, branch.transcript()]),
    events: JSON.stringify(events),
    facts: await store.read(main),
  };
}

async function spoilAll(agent: Agent, spoilt: Spoiler): Promise<void> {
  spoilt((await agent.loadBranch("s")).transcript());
  for (const part of ["messages", "turns", "runs", "state", "metadata", "tags", "interactions"] as const) {
    spoilt((await agent.loadBranch("s"))[part]);
  }
  spoilt(await agent.events(main, { limit: 1000 }));
  spoilt(await agent.messages(main));
  spoilt(await agent.getSession("s"));
  spoilt(await agent.listBranches("s"));
}

test("whatever is done to what was handed out, the next calls and the log are those of an undisturbed twin", async () => {
  const undisturbed = await converse(() => {});
  const anyNumbers = fc.array(fc.nat({ max: 1000 }), { minLength: 50, maxLength: 200 });
  await fc.assert(
    fc.asyncProperty(anyNumbers, async (numbers) => {
      let at = 0;
      const pick = () => numbers[at++ % numbers.length]!;
      expect(await converse((value) => spoil(value, pick))).toEqual(undisturbed);
    }),
    { numRuns: 20 },
  );
});

describe("what a hook does to its request", () => {
  const mark = { provider: { cacheControl: { type: "ephemeral" } } };
  /** Marks the whole request in place, as far as a hook can reach. */
  function markAll(request: object): void {
    const { prompt, tools, settings } = request as Record<"prompt" | "tools", Record<string, unknown>[]> & {
      settings: Record<string, unknown>;
    };
    for (const message of prompt) {
      message.providerOptions = mark;
      if (Array.isArray(message.content)) for (const part of message.content) part.providerOptions = mark;
    }
    for (const tool of tools) {
      tool.providerOptions = mark;
      (tool.inputSchema as Record<string, unknown>).title = "marked";
    }
    Object.assign(settings.providerOptions as object, mark);
    settings.temperature = 1;
  }

  const marking: [string, (when: () => boolean) => Middleware][] = [
    [
      "before the iteration",
      (when) => ({ name: "marking", beforeIteration: ({ request }) => void (when() && markAll(request)) }),
    ],
    [
      "around the call",
      (when) => ({
        name: "marking",
        wrapModelCall(_, request, next) {
          if (when()) markAll(request);
          return next(request);
        },
      }),
    ],
  ];

  test.each(marking)("%s holds for that request, and for no other", async (_, middleware) => {
    const passing = Object.assign(new Error("overloaded"), { statusCode: 529 });
    async function calls(when: (call: number) => boolean) {
      let call = 0;
      const script = [{ reasoning: "Hm.", ...adding() }, "one", { error: passing }, "two", "three"];
      const settings = { providerOptions: { test: { on: true } } };
      const options = { tools: { add }, middleware: [middleware(() => when(call++))], settings };
      const { agent, model, clock } = await given(script, options);
      const goOn = ({ type }: { type: string }) => void (type === "model-retry" && clock.advance(60_000));
      for (const input of ["1", "2", "3"]) await eventsOf(agent.run(input, s), goOn);
      // What was sent is in the log, so it tells of the marks.
      const events = (await agent.events(main, { limit: 1000 })).map((event) => ({ ...event, prompt: undefined }));
      const log = JSON.stringify(events);
      return { log, sent: model.calls.map((each) => JSON.stringify(each)) };
    }
    const plain = await calls(() => false);
    const marked = await calls((call) => call === 1 || call === 2);
    expect(marked.log).toBe(plain.log);
    expect(marked.sent.length).toBe(plain.sent.length);
    const isMarked = marked.sent.map((sent) => sent.includes("cacheControl") && sent.includes('"title":"marked"'));
    // Around the call each attempt has its own; before the iteration both attempts have what the hook made of theirs.
    expect(isMarked).toEqual([false, true, true, _ === "before the iteration", false]);
    for (const [i, sent] of marked.sent.entries()) if (!isMarked[i]) expect(sent).toBe(plain.sent[i]);
  });
});

test("subscribers and iteration each have their own event", async () => {
  const { agent } = await given(["one two three four"]);
  const seen: string[] = [];
  agent.subscribe("text-delta", (event) => void Object.assign(event, { text: "spoilt", channel: "spoilt" }));
  agent.subscribe(
    "*",
    (event) => void seen.push(`${event.type} ${event.channel} ${"text" in event ? event.text : ""}`),
  );
  const events = await eventsOf(agent.run("Go", s), (event) => void Object.assign(event, { branchId: "spoilt" }));
  await settle();
  expect(seen.filter((line) => line.includes("spoilt"))).toEqual([]);
  expect(seen.filter((line) => line.startsWith("text-delta streaming"))).toHaveLength(4);
  expect(events.length).toBeGreaterThan(8);
});
