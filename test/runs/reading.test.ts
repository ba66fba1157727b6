// Calls of tools that only read begin before the message that asks for them is on the disk. Nobody can tell, but by the time
// it takes: what is shown, what is in the log and how a run ends are the same.

import { describe, expect, onTestFinished, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import { defineTool, type Middleware, type ToolSet } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { eventsOf, expectLegal, factTypes, gate, given, main, ofType, s, said, settle } from "../agent/kit.ts";
import { deadOwner } from "../sessions/kit.ts";

const input = { type: "object" } as const;
const asks = (...names: string[]) => ({ calls: names.map((name) => ({ name, input: {} })) });
const isFunction = (value: unknown): value is () => unknown => typeof value === "function";
const look = defineTool({ input, effect: "read", execute: () => "seen" });

/** A store that notes what is appended together, and does with an append what a test wants. */
function watched(meddle?: (types: readonly string[]) => Promise<void> | undefined) {
  const store = memoryStore();
  const append = store.append.bind(store);
  const appends: string[][] = [];
  store.append = async (...args) => {
    const types = args[1].map(({ data }) => JSON.parse(data).type);
    appends.push(types);
    await meddle?.(types);
    return append(...args);
  };
  return { store, appends };
}

/** What a turn that asks for these tools once appends between its first append and its last. */
async function appendsOf(tools: ToolSet, options: Parameters<typeof given>[1] = {}): Promise<string[][]> {
  const { store, appends } = watched();
  const { agent } = await given([asks(...Object.keys(tools)), "Done."], { store, tools, ...options });
  appends.length = 0;
  expect(await agent.run("Go", s).text()).toBe("Done.");
  return appends.slice(1, -1);
}

/** Whether the append has a message that asks for calls: every other one of a model ends the turn. */
const isAsking = (types: readonly string[]) => types[0] === "message.added" && !types.includes("turn.committed");

describe("what is written", () => {
  test("results that are there at once are in the append of the message", async () => {
    expect(await appendsOf({ look })).toEqual([["message.added", "tool.returned"]]);
    expect(await appendsOf({ look, glance: look })).toEqual([["message.added", "tool.returned", "tool.returned"]]);
    expect(await appendsOf({ look, glance: look }, { limits: { parallelTools: 1 } })).toHaveLength(1);
    const durable = { checkpoints: "manual", pendingWrites: false } as const;
    expect(await appendsOf({ look }, { durable })).toEqual([["message.added", "tool.returned"]]);
  });

  test("results that take longer are in an append of their own, and the message does not wait for them", async () => {
    const far = defineTool({ input, effect: "read", execute: () => settle() });
    expect(await appendsOf({ far })).toEqual([["message.added"], ["tool.returned"]]);
    expect(await appendsOf({ look, far })).toEqual([["message.added", "tool.returned"], ["tool.returned"]]);
  });

  test("what is shown is in the order of the log, after the store has acknowledged it", async () => {
    const { agent, store } = await given([asks("look"), "Done."], { tools: { look } });
    const events = await eventsOf(agent.run("Go", s), async ({ seq = 0 }) => {
      expect((await store.getBranch(main))?.seq).toBeGreaterThanOrEqual(seq);
    });
    const kept = events.filter(({ seq }) => seq !== undefined);
    expect(kept.map(({ seq }) => seq)).toEqual([2, 3, 4, 5, 6, 7]);
    expect(kept.map(({ type }) => type)).toEqual(await factTypes(agent));
  });
});

describe("a call begins", () => {
  /** Whether tools had begun when the message that asks was still being written. */
  async function beginsBefore(
    tools: ToolSet,
    { names = Object.keys(tools), middleware = [] as Middleware[] } = {},
  ): Promise<boolean> {
    let begun = 0;
    let begunBefore = 0;
    const counted = Object.entries(tools).map(([name, { execute, ...tool }]) => {
      return [name, { ...tool, ...(execute && { execute: () => ++begun }) }] as const;
    });
    const { store } = watched(async (types) => {
      if (!isAsking(types)) return;
      await settle();
      begunBefore = begun;
    });
    const options = { store, tools: Object.fromEntries(counted), middleware };
    const { agent } = await given([asks(...names), "Done."], options);
    await agent.run("Go", { ...s, questions: "deny" }).result;
    return begunBefore > 0;
  }

  test("while the message is being written, if all tools of the batch only read", async () => {
    expect(await beginsBefore({ look })).toBe(true);
    expect(await beginsBefore({ look, glance: look })).toBe(true);
  });

  test.each<[string, ToolSet]>([
    ["changes something", { look, note: { input, execute: look.execute } }],
    ["must not run twice", { look, pay: { ...look, effect: "once" } }],
    ["needs a permission", { look, guarded: { ...look, permission: true } }],
    ["may need a permission", { look, guarded: { ...look, permission: () => false } }],
    ["is run by the client", { look, client: { input, effect: "read" } }],
  ])("after it is written, if one of the tools %s", async (_, tools) => {
    expect(await beginsBefore(tools)).toBe(false);
  });

  test("after it is written, if a tool is asked for that there is none of", async () => {
    expect(await beginsBefore({ look }, { names: ["look", "missing"] })).toBe(false);
  });

  test.each(["beforeTools", "afterTools", "beforeToolCall", "wrapToolCall", "afterToolCall", "onError"])(
    "after it is written, if somebody's %s may have an effect of its own",
    async (hook) => {
      const hooked = { name: "own", [hook]: (_: unknown, next?: unknown) => (isFunction(next) ? next() : undefined) };
      const middleware = [hooked as unknown as Middleware];
      expect(await beginsBefore({ look }, { middleware })).toBe(false);
      const unrelated: Middleware = { name: "own", beforeIteration() {} };
      expect(await beginsBefore({ look }, { middleware: [unrelated] })).toBe(true);
    },
  );
});

describe("a tool that begins before its call is written", () => {
  test("sees the message that asks for it as the log will have it", async () => {
    const seen: unknown[] = [];
    const tool = { ...look, execute: (_: unknown, context: { messages: unknown }) => void seen.push(context.messages) };
    const { agent } = await given([{ text: "Let me see.", ...asks("look") }, "Done."], { tools: { look: tool } });
    const { messages } = await agent.run("Go", s).result;
    expect(said(messages).slice(0, 2)).toEqual(["user: Go", "assistant: Let me see. look()"]);
    expect(seen).toStrictEqual([messages.slice(0, 2)]);
  });

  test("can't change what is written", async () => {
    const passing = { jsonSchema: input, validate: (value: unknown) => ({ success: true, value }) as const };
    const meddler = defineTool({
      input: passing,
      effect: "read",
      execute(given, { messages }) {
        Object.assign(given as object, { limit: 10 });
        (messages as unknown[]).length = 0;
      },
    });
    const { agent } = await given([asks("meddler"), "Done."], { tools: { meddler } });
    const { messages } = await agent.run("Go", s).result;
    expect(messages[1]!.content).toMatchObject([{ type: "tool-call", input: {} }]);
    expect(JSON.stringify(messages)).not.toContain("limit");
    expectLegal(messages);
  });

  test("names a position that has the message", async () => {
    const tool = { ...look, execute: (_: unknown, context: { checkpoint(): Promise<string> }) => context.checkpoint() };
    const { agent } = await given([asks("look"), "Done."], { tools: { look: tool } });
    await agent.run("Go", s).result;
    expect(await agent.listCheckpoints(main)).toMatchObject([{ seq: 4, messageIndex: 2 }]);
  });

  test("asks behind the message, and the turn is taken up with the answer", async () => {
    const { store, appends } = watched();
    const ask = defineTool({ input, effect: "read", execute: (_, context) => context.ask("Which?") });
    const { agent } = await given([asks("ask"), "Done."], { store, tools: { ask } });
    appends.length = 0;
    const parked = await agent.run("Go", { ...s, questions: "park" }).result;
    expect(appends.slice(1)).toEqual([["message.added", "interaction.opened"]]);
    const run = await agent.respond(main, parked.interactions![0]!.id, { answer: "this" });
    expect(said((await run!.result).messages)[2]).toBe('tool: "this"');
  });

  test("needs permission all the same, if the agent says so", async () => {
    const { agent } = await given([asks("look"), "Done."], {
      tools: { look },
      permissions: { tools: { look: true } },
    });
    const run = agent.run("Go", s);
    await eventsOf(run, (e) => e.type === "interaction.opened" && run.respond(e.id, { approved: false }));
    expect(said((await run.result).messages)[2]).toContain("denied");
  });

  test("is stopped with the run, whose message is in the log", async () => {
    const slow = gate();
    const { store } = watched((types) => (isAsking(types) ? slow.passed : undefined));
    let signal: AbortSignal | undefined;
    const hang = (_: unknown, context: { signal: AbortSignal }) => {
      signal = context.signal;
      return new Promise<never>(() => {});
    };
    const { agent } = await given([asks("look"), "Done."], { store, tools: { look: { ...look, execute: hang } } });
    const run = agent.run("Go", s);
    await eventsOf(run, (event) => {
      if (event.type !== "tool-start") return;
      void run.interrupt("enough");
      slow.open();
    });
    expect(await run.result).toMatchObject({ status: "interrupted", reason: "enough" });
    expect(signal?.aborted).toBe(true);
    expect(await factTypes(agent)).toEqual(["turn.started", "message.added", "message.added", "turn.ended"]);
    expectLegal((await agent.loadBranch("s")).messages);
  });

  test("is run by whoever takes the turn up, when it was handed over", async () => {
    const hang = { ...look, execute: () => new Promise<never>(() => {}) };
    const { agent, again } = await given([asks("look")], { tools: { look: hang } });
    const run = agent.run("Go", s);
    await eventsOf(run, (event) => event.type === "tool-start" && void run.park());
    expect((await run.result).status).toBe("parked");
    expect((await factTypes(agent)).slice(2)).toEqual(["message.added", "turn.parked"]);
    const { messages } = await again({ script: ["Done."], tools: { look } }).run(undefined, s).result;
    expect(said(messages).slice(2)).toEqual(['tool: "seen"', "assistant: Done."]);
  });
});

describe("a message that can't be written", () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);

  const moments = ["before it is tried", "while it is tried", "after it was refused"] as const;

  /** The append of the message fails; the tools have their results and questions at that moment. */
  async function refusing(error: Error, when: (typeof moments)[number]) {
    process.on("unhandledRejection", note);
    onTestFinished(async () => {
      await settle();
      process.off("unhandledRejection", note);
      expect(unhandled).toEqual([]);
    });
    const answer = gate();
    const { store } = watched(async (types) => {
      if (!isAsking(types)) return;
      if (when === moments[1]) answer.open();
      await settle();
      throw error;
    });
    if (when === moments[0]) answer.open();
    const slow = defineTool({ input, effect: "read", execute: () => answer.passed });
    const ask = defineTool({
      input,
      effect: "read",
      execute: (_, context) => answer.passed.then(() => context.ask("Which?")),
    });
    // The turn is still open then.
    const afterTurn = () => {
      answer.open();
      return settle();
    };
    const options = { store, tools: { look, slow, ask }, middleware: [{ name: "last", afterTurn }] };
    const { agent } = await given([asks("look", "slow", "ask"), "Next."], options);
    const run = agent.run("Go", { ...s, questions: "wait" });
    return { agent, events: await eventsOf(run), result: await run.result };
  }

  test.each(moments)(
    "fails the turn with its error, and nothing of the batch is written (results come %s)",
    async (when) => {
      const { agent, events, result } = await refusing(new Error("disk full"), when);
      expect(result).toMatchObject({ status: "failed", error: { code: "run_failed", message: "disk full" } });
      expect(await factTypes(agent)).toEqual(["turn.started", "message.added", "turn.ended"]);
      expect(ofType(events, "tool.returned")).toEqual([]);
      expect(events.at(-1)).toMatchObject({ type: "run-end", status: "failed" });
      expect(await agent.run("Again", s).text()).toBe("Next.");
    },
  );

  test.each(moments)(
    "because another run has the branch leaves the turn to that one (results come %s)",
    async (when) => {
      const stale = new BoughError("epoch_stale", "Another run has it.");
      const { agent, result } = await refusing(stale, when);
      expect(result).toMatchObject({ status: "failed", error: { code: "epoch_stale" } });
      expect(await factTypes(agent)).toEqual(["turn.started", "message.added"]);
    },
  );

  test("because it is too large begins nothing", async () => {
    let begun = 0;
    const tool = { ...look, execute: () => ++begun };
    const calls = [{ name: "look", input: { text: "x".repeat(9_000_000) } }];
    const { agent } = await given([{ calls }, "Next."], { tools: { look: tool } });
    const { status, error } = await agent.run("Go", s).result;
    expect([status, error?.code]).toEqual(["failed", "limit_exceeded"]);
    expect(begun).toBe(0);
    expect(await factTypes(agent)).toEqual(["turn.started", "message.added", "turn.ended"]);
  });
});

test("a process that dies before the message is written leaves a turn in which the model is asked again", async () => {
  let asked = 0;
  const { store } = watched((types) => (isAsking(types) && ++asked === 1 ? new Promise<never>(() => {}) : undefined));
  let begun = 0;
  const tool = { ...look, execute: () => `seen ${++begun}` };
  const script = (prompt: readonly unknown[]) => (prompt.length === 1 ? asks("look") : "Done.");
  const { agent, again } = await given(script, { store, tools: { look: tool }, owner: deadOwner() });
  void agent.run("Go", s).result;
  await settle();
  expect([begun, asked]).toEqual([1, 1]);
  const { messages } = await again().run(undefined, s).result;
  expect(said(messages)).toEqual(["user: Go", "assistant: look()", 'tool: "seen 2"', "assistant: Done."]);
});
