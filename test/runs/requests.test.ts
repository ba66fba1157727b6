// How a turn was asked is a fact: whoever takes it up, in whatever way, goes on as it began. Each way to leave a turn open meets
// each way to take it up; the killed processes are in request-matrix.test.ts.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentOptions,
  defineTool,
  type HookContext,
  type RunOptions,
  type Store,
} from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { given, refused, s } from "../agent/kit.ts";

const quiet = { warn: () => {} };

/** A tool that asks a person first, so that a run parks before it. */
const ask = defineTool({
  input: z.object({}),
  execute: async (_input, context) => context.ask("Go on?"),
});

const asks = (prompt: readonly unknown[]) =>
  prompt.some((message) => (message as { role: string }).role === "tool")
    ? "Done."
    : { calls: [{ name: "ask", input: {} }] };

type Call = Record<string, unknown>;

/** What a model call is made of, without what only this call has. */
function callOf({ abortSignal: _signal, ...call }: Call): unknown {
  return JSON.parse(JSON.stringify(call));
}

/** Parks a turn that was asked with these options and takes it up with a new agent; gives the second model call of each way. */
async function bothWays(asked: RunOptions, options: Partial<AgentOptions> = {}) {
  const more = { tools: { ask }, logger: quiet, ...options };
  const whole = await given(asks, more);
  const run = whole.agent.run("Go", { ...s, ...asked, questions: "wait" });
  for await (const event of run) {
    if (event.type === "interaction.opened") void run.respond(event.id, { answer: "yes" });
  }
  const parked = await given(asks, more);
  const { interactions } = await parked.agent.run("Go", { ...s, ...asked, questions: "park" }).result;
  const model = scriptedModel(asks);
  const later = parked.again({ ...more, model });
  const resumed = await later.respond(s, interactions![0]!.id, { answer: "yes" });
  await resumed!.result;
  return {
    expected: callOf(whole.model.calls[1] as Call),
    resumed: callOf(model.calls[0] as Call),
    later,
    result: resumed,
  };
}

describe("a parked turn that another agent resumes", () => {
  test.each<[string, RunOptions]>([
    ["settings", { config: { temperature: 0.3, topP: 0.5, maxOutputTokens: 99, seed: 7, stop: ["END"] } }],
    ["provider options and headers", { config: { providerOptions: { x: { y: 1 } }, headers: { "x-trace": "1" } } }],
    ["instructions", { config: { instructions: "Be another." } }],
    ["added instructions", { config: { addInstructions: "Be brief." } }],
    ["tool choice", { config: { toolChoice: { tool: "ask" } } }],
    ["an output schema", { output: z.object({ sum: z.number() }) }],
    ["an output by tool", { output: { schema: z.object({ sum: z.number() }), mode: "tool" } }],
    ["a union", { output: { union: { a: z.object({ x: z.number() }), b: z.object({ y: z.string() }) } } }],
    [
      "a client tool",
      { config: { tools: { pick: { description: "Picks.", inputSchema: z.object({ of: z.string() }) } } } },
    ],
    ["a provider's tool", { config: { tools: { search: { type: "provider", id: "x.search", args: { n: 1 } } } } }],
    ["bounds", { config: { tighten: { maxOutputTokens: 10 } } }],
  ])("asks the model as it was asked with %s", async (_name, asked) => {
    const { expected, resumed } = await bothWays(asked, { instructions: "You are a test.", settings: { topK: 3 } });
    expect(resumed).toEqual(expected);
  });

  test("asks the model that the run chose by name", async () => {
    for (const byName of [true, false]) {
      const fast = scriptedModel(asks);
      const models = { fast };
      const { agent, model, again } = await given(asks, { tools: { ask }, models });
      const config = { model: byName ? "fast" : fast };
      const { interactions } = await agent.run("Go", { ...s, config, questions: "park" }).result;
      await (await again({ models }).respond(s, interactions![0]!.id, { answer: "yes" }))!.result;
      expect(fast.calls).toHaveLength(2);
      expect(model.calls).toEqual([]);
    }
  });

  test("keeps to the permission mode, the limits and the bounds of the run", async () => {
    const ran: string[] = [];
    const guarded = defineTool({ input: z.object({}), permission: true, execute: () => void ran.push("guarded") });
    const script = (prompt: readonly unknown[]) => {
      const results = prompt.filter((message) => (message as { role: string }).role === "tool").length;
      return { calls: [{ name: results === 0 ? "ask" : "guarded", input: {} }] };
    };
    for (const config of [
      { permissionMode: "deny", limits: { iterations: 3 } },
      { tighten: { permissionMode: "deny", limits: { iterations: 3 } } },
    ] as const) {
      const { agent, again } = await given(script, { tools: { ask, guarded }, permissions: { mode: "allow" } });
      const { interactions } = await agent.run("Go", { ...s, config, questions: "park" }).result;
      const run = await again().respond(s, interactions![0]!.id, { answer: "yes" });
      expect(await run!.result).toMatchObject({ status: "completed", iterations: 3 });
    }
    expect(ran).toEqual([]);
  });

  test("tells tools and hooks who asked and with what", async () => {
    const seen: unknown[] = [];
    const whoami = defineTool({
      input: z.object({}),
      execute: async (_input, context) => {
        await context.ask("Sure?");
        const { by, identity, metadata } = context;
        seen.push({ context: context.context, by, identity, metadata, session: await context.sessionMetadata() });
      },
    });
    const script = (prompt: readonly unknown[]) =>
      prompt.length > 2 ? "Done." : { calls: [{ name: "whoami", input: {} }] };
    const hook = {
      name: "watch",
      afterTurn({ context, by }: { context: unknown; by?: string }) {
        seen.push({ hook: context, by });
      },
    };
    const schema = z.object({ since: z.coerce.date() });
    const options = { tools: { whoami }, context: schema, middleware: [hook] };
    const { agent, again } = await given(script, options);
    await agent.updateSession("s", { metadata: { team: "red" } });
    const identity = { tenant: "acme", user: "ada", scopes: ["run"] };
    const asked = { context: { since: "2026-01-02" }, identity, metadata: { from: "test" } };
    const { interactions } = await agent.run("Who?", { ...s, ...asked, questions: "park" }).result;
    await (await again(options).respond(s, interactions![0]!.id, { answer: "yes" }, { by: "bob" }))!.result;
    const context = { since: new Date("2026-01-02") };
    expect(seen).toEqual([
      { context, by: "ada", identity, metadata: { from: "test" }, session: { team: "red" } },
      { hook: context, by: "ada" },
    ]);
    const events = await agent.events(s);
    expect(events.find(({ type }) => type === "turn.resumed")).toMatchObject({ by: "bob" });
  });

  test("goes on after a fork inside the turn as the turn was asked", async () => {
    const { agent, model } = await given(asks, { tools: { ask } });
    const { interactions, messages } = await agent.run("Go", {
      ...s,
      config: { temperature: 0.3 },
      questions: "park",
    }).result;
    expect(interactions).toHaveLength(1);
    await agent.forkBranch(s, { from: messages[0]!.id, newBranchId: "fork" });
    await agent.run(undefined, { ...s, branchId: "fork", questions: "park" }).result;
    expect(model.calls.map(({ temperature }) => temperature)).toEqual([0.3, 0.3]);
  });
});

test("a turn that was cut by a revert goes on as it was asked", async () => {
  const { agent, model } = await given(asks, { tools: { ask } });
  const { messages } = await agent.run("Go", { ...s, config: { temperature: 0.3 }, questions: "park" }).result;
  await agent.revertBranch(s, { to: messages[0]!.id });
  await agent.run(undefined, { ...s, questions: "park" }).result;
  expect(model.calls.map(({ temperature }) => temperature)).toEqual([0.3, 0.3]);
});

test("a turn that was cut is still that of who asked first, with the turn's metadata", async () => {
  const seen: unknown[] = [];
  const watch = { name: "watch", beforeIteration: ({ by, metadata }: HookContext) => void seen.push({ by, metadata }) };
  const { agent } = await given(asks, { tools: { ask }, middleware: [watch] });
  const asked = { by: "ada", metadata: { from: "test" } };
  const { messages } = await agent.run("Go", { ...s, ...asked, questions: "park" }).result;
  await agent.forkBranch(s, { from: messages[0]!.id, newBranchId: "fork" });
  await agent.run(undefined, { ...s, branchId: "fork", questions: "park" }).result;
  const main = { ...s, branchId: "main" };
  await agent.revertBranch(main, { to: messages[0]!.id });
  await agent.run(undefined, { ...main, by: "bob", metadata: { again: true }, questions: "park" }).result;
  expect(seen).toEqual([asked, asked, { by: "bob", metadata: { from: "test", again: true } }]);
  expect((await agent.loadBranch(main)).uncommittedTurn).toMatchObject({ by: "bob", metadata: { from: "test" } });
});

test("a bound of the run meets the policy of the agent that goes on, not of the one that began", async () => {
  const ran: string[] = [];
  const guarded = defineTool({ input: z.object({}), permission: true, execute: () => void ran.push("guarded") });
  const script = (prompt: readonly unknown[]) => {
    const results = prompt.filter((message) => (message as { role: string }).role === "tool").length;
    return results === 2 ? "Done." : { calls: [{ name: results === 0 ? "ask" : "guarded", input: {} }] };
  };
  const config = { tighten: { permissionMode: "allow" } } as const;
  const { agent, again } = await given(script, { tools: { ask, guarded }, permissions: { mode: "allow" } });
  const { interactions } = await agent.run("Go", { ...s, config, questions: "park" }).result;
  const stricter = again({ permissions: { mode: "deny" } });
  expect((await (await stricter.respond(s, interactions![0]!.id, { answer: "yes" }))!.result).status).toBe("completed");
  expect(ran).toEqual([]);
});

describe("what the log can't keep", () => {
  const model = scriptedModel(asks);
  const tool = defineTool({ input: z.object({}), execute: () => "mine" });
  const middleware = [{ name: "audit", afterTurn() {} }];
  const missing: [string, RunOptions["config"] & object, string[]][] = [
    ["a model object", { model }, ["config.model"]],
    ["a tool of this process", { tools: { mine: tool } }, ["config.tools.mine"]],
    ["middleware", { middleware }, ["config.middleware.audit"]],
    ["a credential", { headers: { Authorization: "Bearer x" } }, ["config.headers.Authorization"]],
  ];

  test.each(missing)("%s is named, and the turn is taken up only with it", async (_name, config, names) => {
    const { agent, again, store } = await given(asks, { tools: { ask } });
    const { interactions } = await agent.run("Go", { ...s, config, questions: "park" }).result;
    const warned: unknown[] = [];
    const later = again({ logger: { warn: (...words: unknown[]) => void warned.push(words) } });
    expect(await later.respond(s, interactions![0]!.id, { answer: "yes" })).toBeUndefined();
    expect(String(warned)).toContain(names[0]);
    const [left] = await later.recover();
    expect(left).toMatchObject({ missing: names });
    expect(left!.run).toBeUndefined();
    const error = await refused(later.run(undefined, s).result, "request_incomplete", { missing: names });
    expect(error.message).toContain(names[0]);
    expect(await text(store)).not.toContain("Bearer x");
    const [found] = await later.recover({ run: { config } });
    expect((await found!.run!.result).status).toBe("completed");
  });

  test("a name that the resuming agent does not give a model is missing", async () => {
    const { agent, again } = await given(asks, { tools: { ask }, models: { fast: scriptedModel(asks) } });
    await agent.run("Go", { ...s, config: { model: "fast" }, questions: "park" }).result;
    await refused(again({ models: {} }).run(undefined, s).result, "request_incomplete", { missing: ["models.fast"] });
    const run = again({ models: {} }).run(undefined, { ...s, config: { model: scriptedModel(asks) } });
    expect((await run.result).status).toBe("parked");
  });

  test("what cannot be stored at all is refused before anything is written", async () => {
    const { agent } = await given(asks, { tools: { ask } });
    const bad: RunOptions[] = [
      { context: { at: new Date() } },
      { config: { providerOptions: { x: { big: 1n as unknown as number } } } },
    ];
    for (const options of bad) await refused(agent.run("Go", { ...s, ...options }).result, "invalid_argument");
    expect((await agent.loadBranch("s")).seq).toBe(1);
  });
});

describe("what the resumer says", () => {
  test("wins, and is recorded", async () => {
    const { agent, model, again } = await given(asks, { tools: { ask } });
    await agent.run("Go", { ...s, config: { temperature: 0.1, topP: 0.5 }, questions: "park" }).result;
    const later = again();
    const run = later.run(undefined, { ...s, config: { temperature: 0.9 }, questions: "park" });
    expect((await run.result).status).toBe("parked");
    const { uncommittedTurn } = await later.loadBranch("s");
    expect(uncommittedTurn!.request).toEqual({ config: { temperature: 0.9, topP: 0.5 }, questions: "park" });
    expect(model.calls).toHaveLength(1);
  });

  test("never loosens what only tightens", async () => {
    const { agent, again } = await given(asks, { tools: { ask } });
    const tighten = { permissionMode: "deny", limits: { iterations: 2 } } as const;
    await agent.run("Go", { ...s, config: { tighten }, questions: "park" }).result;
    const looser = { permissionMode: "ask", limits: { iterations: 9, turnMs: 5 } } as const;
    await again().run(undefined, { ...s, config: { tighten: looser }, questions: "park" }).result;
    expect((await agent.loadBranch("s")).uncommittedTurn!.request!.config).toEqual({
      tighten: { permissionMode: "deny", limits: { iterations: 2, turnMs: 5 } },
    });
  });
});

describe("tenants", () => {
  async function parkedFor(tenant: string | undefined): Promise<{ store: Store; again: Given["again"]; agent: Agent }> {
    const g = await given(asks, { tools: { ask }, logger: quiet });
    const identity = tenant === undefined ? {} : { identity: { tenant } };
    await g.agent.run("Go", { ...s, ...identity, questions: "park" }).result;
    return g;
  }
  type Given = Awaited<ReturnType<typeof given>>;

  test("an agent bound to one never takes up, or lists, another's turn", async () => {
    const { again } = await parkedFor("acme");
    for (const tenant of ["other", ""]) {
      expect(await again({ tenant }).recover()).toEqual([]);
      await refused(again({ tenant }).run(undefined, s).result, "turn_foreign");
    }
    expect(await again({ tenant: "acme" }).recover()).toHaveLength(1);
    expect(await again().recover()).toHaveLength(1);
  });

  test("an agent bound to one begins turns of that one only", async () => {
    const { agent } = await given(asks, { tools: { ask }, tenant: "acme" });
    await refused(agent.run("Go", { ...s, identity: { tenant: "other" } }).result, "invalid_argument");
    await agent.run("Go", { ...s, questions: "park" }).result;
    expect((await agent.loadBranch("s")).uncommittedTurn!.request!.identity).toEqual({ tenant: "acme" });
  });

  test("an agent bound to one takes no other's input from the queue, its own agent does", async () => {
    const { agent, again } = await parkedFor("acme");
    const { status } = await agent.submit("Next", { ...s, identity: { tenant: "acme" }, ifActive: "queue" });
    expect(status).toBe("queued");
    await agent.interrupt(s);
    await agent.close();
    const other = again({ tenant: "other" });
    expect(await other.recover()).toEqual([]);
    await other.close();
    const reader = again({ tenant: "nobody" });
    expect(await reader.listQueue(s)).toHaveLength(1);
    const own = again({ tenant: "acme" });
    const taken = new Promise((resolve) => own.subscribe("turn.started", resolve));
    await own.recover();
    expect(await taken).toMatchObject({ request: { identity: { tenant: "acme" } } });
    expect(await reader.listQueue(s)).toEqual([]);
    await own.close();
  });

  test("an agent on a server's store leaves the server's tenants alone", async () => {
    const store = memoryStore();
    const { agent } = await given(asks, { tools: { ask }, store });
    await agent.createSession("~sessions/acme~s");
    await agent.run("Go", { sessionId: "~sessions/acme~s", questions: "park" }).result;
    expect(await agent.recover()).toEqual([]);
  });
});

/** Everything that a store's logs say. */
async function text(store: Store): Promise<string> {
  return JSON.stringify(await store.read({ sessionId: "s", branchId: "main" }, {}));
}
