import { describe, expect, test } from "vitest";
import type { Middleware, ToolOutput } from "../../src/index.ts";
import type { ModelPart } from "../../src/models/index.ts";
import { add, adding, eventsOf, expectLegal, given, main, ofType, s, said } from "./kit.ts";

/** Notes every hook it has, with what tells one call of it from another. */
function noting(name: string, notes: string[]): Middleware {
  return {
    name,
    beforeTurn: ({ input }) => void notes.push(`${name} beforeTurn ${said(input as never)[0]}`),
    afterTurn: (_, { status, text }) => void notes.push(`${name} afterTurn ${status} ${text}`),
    beforeIteration: ({ iteration }) => void notes.push(`${name} beforeIteration ${iteration}`),
    afterIteration: (_, { finishReason }) => void notes.push(`${name} afterIteration ${finishReason}`),
    async *wrapModelCall(_context, request, next) {
      notes.push(`${name} model ${request.prompt.length}`);
      yield* next(request);
      notes.push(`${name} model done`);
    },
    beforeTools: ({ calls }) => void notes.push(`${name} beforeTools ${calls.length}`),
    afterTools: (_, outputs) => void notes.push(`${name} afterTools ${outputs.length}`),
    beforeToolCall: ({ tool }) => void notes.push(`${name} beforeToolCall ${tool.name}`),
    async wrapToolCall(_context, next) {
      notes.push(`${name} tool`);
      const output = await next();
      notes.push(`${name} tool done`);
      return output;
    },
    afterToolCall: (_, { value }) => void notes.push(`${name} afterToolCall ${value}`),
  };
}

describe("hooks in a run", () => {
  test("are called each at its place: before in order, after in reverse, the first wrapper outermost", async () => {
    const notes: string[] = [];
    const { agent } = await given([adding(), "Three."], {
      tools: { add },
      middleware: [noting("a", notes), noting("b", notes)],
    });
    await agent.run("Go", s).result;
    expect(notes).toEqual([
      "a beforeTurn user: Go",
      "b beforeTurn user: Go",
      "a beforeIteration 1",
      "b beforeIteration 1",
      "a model 1",
      "b model 1",
      "b model done",
      "a model done",
      "a beforeTools 1",
      "b beforeTools 1",
      "a beforeToolCall add",
      "b beforeToolCall add",
      "a tool",
      "b tool",
      "b tool done",
      "a tool done",
      "b afterToolCall 3",
      "a afterToolCall 3",
      "b afterTools 1",
      "a afterTools 1",
      "b afterIteration tool-calls",
      "a afterIteration tool-calls",
      "a beforeIteration 2",
      "b beforeIteration 2",
      "a model 3",
      "b model 3",
      "b model done",
      "a model done",
      "b afterIteration stop",
      "a afterIteration stop",
      "b afterTurn completed Three.",
      "a afterTurn completed Three.",
    ]);
  });

  test("know which run they stand in, and can show something", async () => {
    const seen: object[] = [];
    const { agent } = await given(["ok"], {
      id: "a1",
      middleware: [
        {
          name: "looks",
          beforeIteration(context) {
            const { sessionId, branchId, turnId, runId, resumed, agent: stamp } = context;
            seen.push({ sessionId, branchId, turnId, runId, resumed, id: stamp.id, isAborted: context.signal.aborted });
            context.emit("note", { n: 1 });
          },
        },
      ],
    });
    const run = agent.run("Go", s);
    const events = await eventsOf(run);
    const { turnId, runId } = await run.result;
    expect(seen).toEqual([{ ...main, turnId, runId, resumed: false, id: "a1", isAborted: false }]);
    expect(ofType(events, "custom-emit")).toMatchObject([{ name: "note", data: { n: 1 }, turnId }]);
  });

  test("know that a turn was taken up; beforeTurn is not for those", async () => {
    const notes: string[] = [];
    const { agent } = await given(["ok"], {
      middleware: [
        {
          name: "looks",
          beforeTurn: () => void notes.push("beforeTurn"),
          beforeIteration: ({ resumed }) => void notes.push(`resumed ${resumed}`),
        },
      ],
    });
    await (await agent.beginTurn(main, "Hi")).release();
    await agent.run(undefined, s).result;
    expect(notes).toEqual(["resumed true"]);
  });

  test("beforeTurn rewrites what the turn begins with, in the log too", async () => {
    const { agent, model } = await given(["ok"], {
      middleware: [
        {
          name: "rewrites",
          beforeTurn(context) {
            context.input = [{ role: "system", content: "Be kind." }, ...context.input];
          },
        },
      ],
    });
    await agent.run("Go", s).result;
    expect(said(model.calls[0]!.prompt)).toEqual(["system: Be kind.", "user: Go"]);
    expect(said((await agent.loadBranch("s")).messages)).toEqual(["system: Be kind.", "user: Go", "assistant: ok"]);
  });

  test("beforeIteration replaces the request for that call only", async () => {
    const { agent, model } = await given([adding(), "Three."], {
      tools: { add },
      middleware: [
        {
          name: "changes",
          beforeIteration(context) {
            if (context.iteration > 1) return;
            const prompt = [{ role: "system" as const, content: "Extra." }, ...context.request.prompt];
            context.request = { ...context.request, prompt, settings: { temperature: 1 }, tools: [] };
          },
        },
      ],
    });
    await agent.run("Go", s).result;
    const [first, second] = model.calls;
    expect([said(first!.prompt), first!.temperature, first!.tools]).toEqual([
      ["system: Extra.", "user: Go"],
      1,
      undefined,
    ]);
    expect([second!.temperature, (second!.tools as unknown[]).length]).toEqual([undefined, 1]);
    expect(said((await agent.loadBranch("s")).messages)[0]).toBe("user: Go");
  });

  test("beforeIteration answers in the model's place, with text or with calls", async () => {
    const call = { type: "tool-call", toolCallId: "c1", toolName: "add", input: { a: 4, b: 5 } } as const;
    const { agent, model } = await given(["never"], {
      tools: { add },
      middleware: [
        {
          name: "answers",
          beforeIteration: (context) => context.answer(context.iteration === 1 ? [call] : "Cached."),
        },
        { name: "later", beforeIteration: () => expect.fail("an answered iteration goes no further") },
      ],
    });
    const { messages, text, status } = await agent.run("Go", s).result;
    expect({ text, status }).toEqual({ text: "Cached.", status: "completed" });
    expect(said(messages)).toEqual(["user: Go", "assistant: add()", "tool: 9", "assistant: Cached."]);
    expect(model.calls).toHaveLength(0);
  });

  test("wrapModelCall changes what is asked and what is said", async () => {
    const { agent, model } = await given(["secret"], {
      middleware: [
        {
          name: "hides",
          async *wrapModelCall(_context, request, next) {
            for await (const part of next({ ...request, settings: { ...request.settings, seed: 1 } })) {
              const isText = part.type === "text-delta";
              yield isText ? ({ ...part, delta: part.delta.replace(/./g, "*") } as ModelPart) : part;
            }
          },
        },
      ],
    });
    expect(await agent.run("Go", s).text()).toBe("******");
    expect(model.calls[0]!.seed).toBe(1);
  });

  test("wrapModelCall may ask twice, and stands in every attempt", async () => {
    let attempts = 0;
    const overloaded = Object.assign(new Error("Overloaded"), { statusCode: 529 });
    const { agent, clock } = await given([{ error: overloaded }, "ok"], {
      middleware: [
        {
          name: "counts",
          wrapModelCall(_context, request, next) {
            attempts++;
            return next(request);
          },
        },
      ],
    });
    const run = agent.run("Go", s);
    await eventsOf(run, async (event) => {
      if (event.type !== "model-retry") return;
      await new Promise((resolve) => setImmediate(resolve));
      clock.advance(60_000);
    });
    expect(attempts).toBe(2);
  });

  test("beforeTools skips a whole batch, which is answered all the same", async () => {
    let runs = 0;
    const calls = [1, 2].map((a) => ({ name: "add", input: { a, b: 1 } }));
    const { agent, model } = await given([{ calls }, "ok"], {
      tools: { add: { ...add, execute: () => ++runs } },
      middleware: [{ name: "skips", beforeTools: (context) => context.skip({ type: "text", value: "not today" }) }],
    });
    const { messages } = await agent.run("Go", s).result;
    expect([runs, said(messages)[2]]).toEqual([0, 'tool: "not today" "not today"']);
    expectLegal(model.calls[1]!.prompt);
  });

  test("beforeToolCall rewrites the input, and what does not fit the tool is a result", async () => {
    const { agent } = await given([adding(1, 2), adding(3, 4), "ok"], {
      tools: { add },
      middleware: [
        {
          name: "rewrites",
          beforeToolCall(context) {
            context.input = context.iteration === 1 ? { a: 10, b: 10 } : { a: "ten" };
          },
        },
      ],
    });
    const { messages } = await agent.run("Go", s).result;
    expect(said(messages)[2]).toBe("tool: 20");
    expect(said(messages)[4]).toMatch(/^tool: ".*a.*"/);
    expect(messages[1]!.content).toMatchObject([{ input: { a: 1, b: 2 } }]);
  });

  test("beforeToolCall blocks one call of several, and the hooks after it are not asked", async () => {
    const asked: unknown[] = [];
    const calls = [1, 2].map((a) => ({ name: "add", input: { a, b: 1 } }));
    const blocks: Middleware = {
      name: "blocks",
      beforeToolCall(context) {
        if ((context.input as { a: number }).a === 1) context.block({ type: "error-text", value: "blocked" });
      },
    };
    const later: Middleware = { name: "later", beforeToolCall: ({ input }) => void asked.push(input) };
    const { agent } = await given([{ calls }, "ok"], { tools: { add }, middleware: [blocks, later] });
    const { messages } = await agent.run("Go", s).result;
    expect(said(messages)[2]).toBe('tool: "blocked" 3');
    expect(asked).toEqual([{ a: 2, b: 1 }]);
  });

  test("wrapToolCall and afterToolCall replace results", async () => {
    const text = (value: string): ToolOutput => ({ type: "text", value });
    const { agent } = await given([adding(), "ok"], {
      tools: { add },
      middleware: [
        { name: "outer", afterToolCall: (_, { value }) => text(`<${value}>`) },
        { name: "inner", wrapToolCall: async (_, next) => text(`(${(await next()).value})`), afterToolCall: () => {} },
      ],
    });
    expect(said((await agent.run("Go", s).result).messages)[2]).toBe('tool: "<(3)>"');
  });

  test("onError hears what a tool threw; the model reads it in any case", async () => {
    const errors: unknown[] = [];
    const { agent } = await given([adding(), "ok"], {
      tools: {
        add: {
          ...add,
          execute() {
            throw new Error("broken");
          },
        },
      },
      middleware: [
        {
          name: "hears",
          onError(_, error) {
            errors.push(error);
            throw new Error("dropped");
          },
        },
      ],
    });
    const run = agent.run("Go", s);
    const events = await eventsOf(run);
    expect(errors).toMatchObject([{ message: "broken" }]);
    expect(ofType(events, "error-report")).toMatchObject([{ source: "tool", error: { message: "broken" } }]);
    expect(said((await run.result).messages)[2]).toContain("broken");
  });

  test.each(["beforeIteration", "afterIteration", "afterTools"] as const)(
    "stop() in %s ends the turn, committed",
    async (hook) => {
      const stops: Middleware = {
        name: "stops",
        [hook]: (context: { stop(reason: string): void }) => context.stop("enough"),
      };
      const { agent, model } = await given([adding(), "Three.", "Next."], { tools: { add }, middleware: [stops] });
      expect(await agent.run("Go", s).result).toMatchObject({ status: "completed", reason: "enough" });
      expect(model.calls).toHaveLength(hook === "beforeIteration" ? 0 : 1);
      const { messages, turns } = await agent.loadBranch("s");
      expect(turns).toMatchObject([{ status: "committed", reason: "enough" }]);
      expectLegal(messages);
    },
  );

  test("are told the usage of their own iteration", async () => {
    const heard: unknown[] = [];
    const script = [
      { ...adding(), usage: { inputTokens: 5, outputTokens: 1 } },
      { text: "Three.", usage: { inputTokens: 7, outputTokens: 2 } },
    ];
    const counts: Middleware = { name: "counts", afterIteration: (_, { usage }) => void heard.push(usage) };
    const { agent } = await given(script, { tools: { add }, middleware: [counts] });
    await agent.run("Go", s).result;
    expect(heard).toMatchObject([
      { inputTokens: 5, outputTokens: 1 },
      { inputTokens: 7, outputTokens: 2 },
    ]);
  });

  test("beforeTurn may write on its branch, and is called once", async () => {
    let calls = 0;
    const titles: Middleware = {
      name: "titles",
      async beforeTurn() {
        if (++calls > 3) throw new Error("endless");
        await agent.updateBranch({ sessionId: "s", branchId: "main" }, { name: "A title" });
      },
    };
    const { agent } = await given(["ok"], { middleware: [titles] });
    expect(await agent.run("Hi", s).text()).toBe("ok");
    expect(calls).toBe(1);
    expect((await agent.getBranch({ sessionId: "s", branchId: "main" })).name).toBe("A title");
  });
});
