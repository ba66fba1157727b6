import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createAgent, defineTool, lastN, type Middleware, type RunConfig } from "../../src/index.ts";
import { type ScriptedCall, scriptedModel } from "../../src/testing/index.ts";
import { add, adding, eventsOf, given, ofType, refused, s, said } from "./kit.ts";

/** What the model got, without what every call has. */
function asked({ prompt: _prompt, abortSignal: _signal, ...options }: ScriptedCall): Record<string, unknown> {
  return options;
}

/** What the model gets when a run is configured so. */
async function askedWith(config: RunConfig, options: Parameters<typeof given>[1] = {}): Promise<ScriptedCall> {
  const { agent, model } = await given(["ok"], options);
  await agent.run("Hi", { ...s, config }).result;
  return model.calls[0]!;
}

describe("what a run asks of the model", () => {
  test("every setting arrives under the specification's own name, and nothing else does", async () => {
    const providerOptions = { openai: { store: false } };
    const call = await askedWith({
      temperature: 0.3,
      topP: 0.9,
      topK: 40,
      maxOutputTokens: 99,
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      stop: ["END"],
      seed: 7,
      reasoning: "low",
      headers: { "x-team": "a" },
      providerOptions,
    });
    expect(asked(call)).toEqual({
      temperature: 0.3,
      topP: 0.9,
      topK: 40,
      maxOutputTokens: 99,
      presencePenalty: 0.1,
      frequencyPenalty: 0.2,
      stopSequences: ["END"],
      seed: 7,
      reasoning: "low",
      headers: { "x-team": "a" },
      providerOptions,
    });
  });

  test("a setting that is undefined leaves the agent's as it is", async () => {
    const config = { temperature: undefined, seed: 0 } as unknown as RunConfig;
    const call = await askedWith(config, { settings: { temperature: 0.3, topP: 0.9 } });
    expect(asked(call)).toEqual({ temperature: 0.3, topP: 0.9, seed: 0 });
  });

  test("what is said to the run is not said to the model", async () => {
    const config = {
      instructions: "Be brief.",
      addInstructions: "Very.",
      toolChoice: "none",
      permissionMode: "allow",
      limits: { iterations: 2 },
      middleware: [{ name: "nothing" }],
      sendReasoning: "all",
      model: scriptedModel(["ok"]),
    } as const;
    const { agent } = await given(["never"]);
    await agent.run("Hi", { ...s, config }).result;
    expect(asked(config.model.calls[0]!)).toEqual({});
  });

  test("nothing is asked when nothing is said", async () => {
    expect(asked(await askedWith({}))).toEqual({});
  });

  test("the agent's settings hold for every run, and a run's own go before them", async () => {
    const { agent, model } = await given(["1", "2"], { settings: { temperature: 0.1, seed: 3 } });
    await agent.run("Hi", s).result;
    await agent.run("Hi", { ...s, config: { temperature: 0.9 } }).result;
    expect(model.calls.map(asked)).toEqual([
      { temperature: 0.1, seed: 3 },
      { temperature: 0.9, seed: 3 },
    ]);
  });

  test("settings hold for every call of the turn", async () => {
    const { agent, model } = await given([adding(), "Three."], { tools: { add } });
    await agent.run("1 and 2?", { ...s, config: { temperature: 0.5 } }).result;
    expect(model.calls.map(({ temperature }) => temperature)).toEqual([0.5, 0.5]);
  });

  test("reasoning effort is left out for a model of the older specification", async () => {
    const older = scriptedModel(["ok"], { specificationVersion: "v3" });
    const { agent } = await given(["never"]);
    await agent.run("Hi", { ...s, config: { model: older, reasoning: "high", topP: 1 } }).result;
    expect(asked(older.calls[0]!)).toEqual({ topP: 1 });
  });
});

describe("which model", () => {
  test("a run's own is asked instead of the agent's, for that run only", async () => {
    const { agent, model } = await given(["mine"]);
    const other = scriptedModel(["theirs"]);
    expect(await agent.run("Hi", { ...s, config: { model: other } }).text()).toBe("theirs");
    expect(await agent.run("Hi", s).text()).toBe("mine");
    expect([model.calls.length, other.calls.length]).toEqual([1, 1]);
  });

  test.each([
    ["nonsense", "invalid_argument"],
    ["nobody/gpt", "invalid_argument"],
    ["togetherai/some", "dependency_missing"],
  ] as const)("the name %s is refused before anything is written", async (name, code) => {
    const { agent, store } = await given(["never"]);
    await refused(agent.run("Hi", { ...s, config: { model: name } }).result, code);
    expect((await store.getBranch({ sessionId: "s", branchId: "main" }))!.seq).toBe(1);
    expect(await store.listRuns()).toEqual([]);
  });

  test("an object that is no model is refused", async () => {
    const { agent } = await given(["never"]);
    await refused(agent.run("Hi", { ...s, config: { model: {} as never } }).result, "invalid_argument");
  });
});

describe("instructions", () => {
  const instructions = "You are a test.";

  test.each([
    ["the agent's come first", {}, ["You are a test."]],
    ["a run's replace them", { instructions: "Be another." }, ["Be another."]],
    ["more are added behind them", { addInstructions: "Be quick." }, ["You are a test.\n\nBe quick."]],
    ["both at once", { instructions: "Be another.", addInstructions: "Quick." }, ["Be another.\n\nQuick."]],
    ["none at all for a run that wants none", { instructions: "" }, []],
  ] as const)("%s", async (_, config, expected) => {
    const { prompt } = await askedWith(config, { instructions });
    expect(prompt.filter(({ role }) => role === "system").map(({ content }) => content)).toEqual(expected);
    expect(prompt.at(-1)!.role).toBe("user");
  });

  test("they are added to nothing when the agent has none, and never kept in the log", async () => {
    const { agent, model } = await given(["ok"]);
    await agent.run("Hi", { ...s, config: { addInstructions: "Be quick." } }).result;
    expect(said(model.calls[0]!.prompt)).toEqual(["system: Be quick.", "user: Hi"]);
    expect(said((await agent.loadBranch("s")).messages)).toEqual(["user: Hi", "assistant: ok"]);
  });
});

describe("tools", () => {
  const names = (call: ScriptedCall) => (call.tools as { name: string }[] | undefined)?.map(({ name }) => name);

  test("the model is told of the agent's and the run's, and both run", async () => {
    const twice = defineTool({
      description: "Doubles.",
      input: z.object({ a: z.number() }),
      execute: ({ a }) => a * 2,
    });
    const calls = [
      { name: "add", input: { a: 1, b: 2 } },
      { name: "twice", input: { a: 4 } },
    ];
    const { agent, model } = await given([{ calls }, "Done.", "Bye."], { tools: { add } });
    const { messages } = await agent.run("Go", { ...s, config: { tools: { twice } } }).result;
    expect(said(messages)[2]).toBe("tool: 3 8");
    await agent.run("Again", s).result;
    expect(model.calls.map(names)).toEqual([["add", "twice"], ["add", "twice"], ["add"]]);
    expect(model.calls[0]!.tools).toMatchObject([
      { type: "function", name: "add", description: "Adds.", inputSchema: { type: "object", required: ["a", "b"] } },
      { name: "twice" },
    ]);
  });

  test("a run's tool can't take the name of an agent's", async () => {
    const { agent } = await given(["never"], { tools: { add } });
    await refused(agent.run("Go", { ...s, config: { tools: { add } } }).result, "invalid_argument");
  });

  test.each([
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    ["required", { type: "required" }],
    [{ tool: "add" }, { type: "tool", toolName: "add" }],
  ] as const)("the choice %j arrives as the specification has it", async (toolChoice, expected) => {
    expect((await askedWith({ toolChoice }, { tools: { add } })).toolChoice).toEqual(expected);
  });

  test("a source is asked once for an agent, and again after it failed", async () => {
    let asks = 0;
    const source = {
      async tools() {
        asks++;
        if (asks === 1) throw new Error("not there yet");
        return { add };
      },
    };
    const { agent, model } = await given(["1", "2"], { tools: [source] });
    await expect(agent.run("Hi", s).result).rejects.toThrow("not there yet");
    await agent.run("Hi", s).result;
    await agent.run("Hi", s).result;
    expect([asks, names(model.calls[1]!)]).toEqual([2, ["add"]]);
  });
});

describe("permission mode", () => {
  const guarded = { add: { ...add, permission: true } };

  test.each([
    ["allow", "tool: 3"],
    ["deny", 'tool: {"type":"execution-denied","reason":"Calls to this tool are not permitted in this run."}'],
  ] as const)("%s settles every question of the run", async (permissionMode, expected) => {
    const { agent } = await given([adding(), "Done."], { tools: guarded });
    const run = agent.run("Go", { ...s, config: { permissionMode } });
    expect(ofType(await eventsOf(run), "interaction.opened")).toEqual([]);
    expect(said((await run.result).messages)[2]).toBe(expected);
  });

  test("ask stands above an agent that allows everything", async () => {
    const { agent } = await given([adding(), "Done."], { tools: guarded, permissions: { mode: "allow" } });
    const run = agent.run("Go", { ...s, config: { permissionMode: "ask" } });
    const events = await eventsOf(run, (event) => {
      if (event.type === "interaction.opened") return run.respond(event.id, { approved: true });
    });
    expect(ofType(events, "interaction.opened")).toHaveLength(1);
  });
});

describe("limits", () => {
  const busy = () => adding(Math.random());

  test("a turn ends after so many model calls, its calls answered and the next prompt legal", async () => {
    const { agent, model } = await given(
      (_, i) => (i < 3 ? { calls: [{ name: "add", input: { a: i, b: 1 } }] } : "Bye."),
      {
        tools: { add },
      },
    );
    const run = agent.run("Go", { ...s, config: { limits: { iterations: 2 } } });
    const events = await eventsOf(run);
    expect(await run.result).toMatchObject({ status: "completed", reason: "iteration-limit", iterations: 2 });
    expect(ofType(events, "limit-reach")).toMatchObject([{ limit: "iterations", value: 2 }]);
    expect(model.calls).toHaveLength(2);
    expect((await agent.loadBranch("s")).turns).toMatchObject([{ reason: "iteration-limit", iterations: 2 }]);
  });

  test("the agent's own limit is ten", async () => {
    const { agent, model } = await given(busy, { tools: { add } });
    expect((await agent.run("Go", s).result).reason).toBe("iteration-limit");
    expect(model.calls).toHaveLength(10);
  });

  test("at the limit a person can be asked, and the turn goes on", async () => {
    const { agent, model } = await given((_, i) => (i < 3 ? busy() : "Done."), {
      tools: { add },
      limits: { iterations: 2, onIterations: "ask" },
    });
    const run = agent.run("Go", s);
    await eventsOf(run, (event) => {
      if (event.type === "interaction.opened") return run.respond(event.id, { approved: true, iterations: 5 });
    });
    expect((await run.result).text).toBe("Done.");
    expect(model.calls).toHaveLength(4);
  });

  test("no more tools run at the same time than are allowed", async () => {
    let running = 0;
    let most = 0;
    const slow = defineTool({
      description: "Waits.",
      input: z.object({ n: z.number() }),
      async execute({ n }) {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        return n;
      },
    });
    const calls = Array.from({ length: 7 }, (_, n) => ({ name: "slow", input: { n } }));
    const { agent } = await given([{ calls }, "Done."], { tools: { slow } });
    const { messages } = await agent.run("Go", { ...s, config: { limits: { parallelTools: 3 } } }).result;
    expect(most).toBe(3);
    expect(said(messages)[2]).toBe("tool: 0 1 2 3 4 5 6");
  });
});

test.each([{ iterations: 0 }, { iterations: 1.5 }, { parallelTools: 0 }, { answerMs: Number.NaN }, { turnMs: -1 }])(
  "the limit %j is refused, by an agent and by a run",
  async (limits) => {
    expect(() => createAgent({ model: scriptedModel([]), limits })).toThrow(/limits/);
    const { agent } = await given(["never"]);
    await refused(agent.run("Hi", { ...s, config: { limits } }).result, "invalid_argument");
  },
);

test.each([
  { durable: { checkpoints: "perTurn" } },
  { durable: "per-iteration" },
  { durable: { retention: lastN } },
  { retry: { attempts: 0 } },
  { retry: { attempts: undefined } },
])("%j is refused when the agent is made", (options) => {
  expect(() => createAgent({ model: scriptedModel([]), ...(options as object) })).toThrow(/durable|retry/);
});

describe("middleware of a run", () => {
  const noting = (name: string, notes: string[]): Middleware => ({
    name,
    beforeIteration: () => void notes.push(`before ${name}`),
    afterIteration: () => void notes.push(`after ${name}`),
    async *wrapModelCall(_context, request, next) {
      notes.push(`in ${name}`);
      yield* next(request);
      notes.push(`out ${name}`);
    },
  });

  test("is outermost, before the agent's, and gone with the run", async () => {
    const notes: string[] = [];
    const { agent } = await given(["1", "2"], { middleware: [noting("agent", notes)] });
    await agent.run("Hi", { ...s, config: { middleware: [noting("run", notes)] } }).result;
    expect(notes).toEqual([
      "before run",
      "before agent",
      "in run",
      "in agent",
      "out agent",
      "out run",
      "after agent",
      "after run",
    ]);
    notes.length = 0;
    await agent.run("Hi", s).result;
    expect(notes).toEqual(["before agent", "in agent", "out agent", "after agent"]);
  });

  test("brings its tools along", async () => {
    const { agent } = await given([adding(), "Three."]);
    const middleware = [{ name: "adder", tools: { add } }];
    expect(said((await agent.run("Go", { ...s, config: { middleware } }).result).messages)[2]).toBe("tool: 3");
  });
});

test("reasoning of earlier turns goes back only to a model that is to get all of it", async () => {
  const script = [{ reasoning: "Hm.", text: "One." }, "Two.", "Three."];
  const { agent, model } = await given(script);
  await agent.run("1", s).result;
  await agent.run("2", s).result;
  await agent.run("3", { ...s, config: { sendReasoning: "all" } }).result;
  const thoughts = model.calls.map(({ prompt }) => JSON.stringify(prompt).includes("Hm."));
  expect(thoughts).toEqual([false, false, true]);
});
