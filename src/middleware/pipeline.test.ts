import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ToolOutput } from "../events/index.ts";
import type { ModelPart, ModelRequest, ModelStream } from "../models/index.ts";
import { buildPipeline, type Pipeline } from "./pipeline.ts";
import type { HookContext, IterationContext, Middleware, ToolBatchContext, ToolCallContext } from "./port.ts";
import { defineState } from "./state.ts";

const inOrder = ["beforeTurn", "beforeIteration", "beforeTools", "beforeToolCall", "beforeFork"] as const;
const reversed = ["afterTurn", "afterIteration", "afterTools", "afterToolCall", "onError"] as const;
const hookNames = [...inOrder, ...reversed, "wrapModelCall", "wrapToolCall"] as const;
type HookName = (typeof hookNames)[number];

const output: ToolOutput = { type: "text", value: "done" };

/** A middleware that has some of the hooks and writes down when they are called. */
function scribe(name: string, has: ReadonlySet<HookName>, heard: string[]): Middleware {
  const note = (hook: HookName) => async () => {
    await Promise.resolve();
    heard.push(`${hook} ${name}`);
  };
  const hooks: Record<HookName, unknown> = {
    ...(Object.fromEntries([...inOrder, ...reversed].map((hook) => [hook, note(hook)])) as Record<HookName, unknown>),
    async *wrapModelCall(_: HookContext, request: ModelRequest, next: (request: ModelRequest) => ModelStream) {
      heard.push(`wrapModelCall ${name}`);
      yield* next(request);
      heard.push(`wrapModelCall end ${name}`);
    },
    async wrapToolCall(_: ToolCallContext, next: () => Promise<ToolOutput>) {
      heard.push(`wrapToolCall ${name}`);
      const result = await next();
      heard.push(`wrapToolCall end ${name}`);
      return result;
    },
  };
  return { name, ...Object.fromEntries(Object.entries(hooks).filter(([hook]) => has.has(hook as HookName))) };
}

async function call(pipeline: Pipeline, hook: HookName, heard: string[]): Promise<void> {
  const context = {} as never;
  if (hook === "wrapModelCall") {
    const next = async function* () {
      heard.push("model");
      yield { type: "text-delta", id: "1", delta: "x" } as ModelPart;
    };
    for await (const _ of pipeline.wrapModelCall!(context, {} as ModelRequest, next));
  } else if (hook === "wrapToolCall") {
    const next = async () => {
      heard.push("tool");
      return output;
    };
    await pipeline.wrapToolCall!(context, next);
  } else await (pipeline[hook] as (...args: unknown[]) => Promise<unknown>)(context, output);
}

describe("buildPipeline", () => {
  test("hooks are called in their order, whoever has which (Pipeline-1, Pipeline-2)", async () => {
    const arbitrary = fc.array(fc.uniqueArray(fc.constantFrom(...hookNames)), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(arbitrary, async (list) => {
        const heard: string[] = [];
        const pipeline = buildPipeline(list.map((has, i) => scribe(String(i), new Set(has), heard)));
        for (const hook of hookNames) {
          const names = list.flatMap((has, i) => (has.includes(hook) ? [String(i)] : []));
          if (names.length === 0) {
            expect(pipeline[hook]).toBeUndefined();
            continue;
          }
          heard.length = 0;
          await call(pipeline, hook, heard);
          const backwards = [...names].reverse();
          if (hook === "wrapModelCall" || hook === "wrapToolCall") {
            const core = hook === "wrapModelCall" ? "model" : "tool";
            const outside = names.map((name) => `${hook} ${name}`);
            expect(heard).toEqual([...outside, core, ...backwards.map((name) => `${hook} end ${name}`)]);
          } else {
            const order = (reversed as readonly string[]).includes(hook) ? backwards : names;
            expect(heard).toEqual(order.map((name) => `${hook} ${name}`));
          }
        }
      }),
    );
  });

  test("a hook keeps its object", async () => {
    class Counter implements Middleware {
      readonly name = "counter";
      count = 0;
      beforeTools(_: ToolBatchContext) {
        this.count++;
      }
    }
    const counter = new Counter();
    await buildPipeline([counter]).beforeTools?.({} as ToolBatchContext);
    expect(counter.count).toBe(1);
  });

  test("a blocked call gets to no further hook (Pipeline-4)", async () => {
    const heard: string[] = [];
    const context = { isBlocked: false } as { isBlocked: boolean };
    const block = (name: string, blocks: boolean): Middleware => ({
      name,
      beforeToolCall() {
        heard.push(name);
        context.isBlocked = blocks;
      },
    });
    const pipeline = buildPipeline([block("lets", false), block("blocks", true), block("late", true)]);
    await pipeline.beforeToolCall?.(context as ToolCallContext);
    expect(heard).toEqual(["lets", "blocks"]);
  });

  test("an answered iteration gets to no further hook (Pipeline-4)", async () => {
    const heard: string[] = [];
    const context = { isAnswered: false } as { isAnswered: boolean };
    const answer = (name: string): Middleware => ({
      name,
      beforeIteration() {
        heard.push(name);
        context.isAnswered = true;
      },
    });
    await buildPipeline([answer("first"), answer("second")]).beforeIteration?.(context as IterationContext);
    expect(heard).toEqual(["first"]);
  });

  test("each afterToolCall gets what the one before made of the result", async () => {
    const append = (name: string, silent = false): Middleware => ({
      name,
      afterToolCall: (_, { value }) => (silent ? undefined : { type: "text", value: `${value} ${name}` }),
    });
    const pipeline = buildPipeline([append("a"), append("b", true), append("c")]);
    expect(await pipeline.afterToolCall?.({} as ToolCallContext, output)).toEqual({ type: "text", value: "done c a" });
  });

  test("a wrapper may change what the inner ones are given", async () => {
    const seen: unknown[] = [];
    const rename = (name: string): Middleware => ({
      name,
      wrapModelCall: (_, request, next) =>
        next({ ...request, model: { ...request.model, modelId: `${request.model.modelId} ${name}` } }),
    });
    const next = (request: ModelRequest) => {
      seen.push(request.model.modelId);
      return (async function* () {})();
    };
    const request = { model: { modelId: "given" } } as ModelRequest;
    const pipeline = buildPipeline(["outer", "middle", "inner"].map(rename));
    pipeline.wrapModelCall?.({} as HookContext, request, next);
    expect(seen).toEqual(["given outer middle inner"]);
  });

  test("what a hook throws goes on with its names, and no later hook is called (Pipeline-3)", async () => {
    const heard: string[] = [];
    const failure = new Error("no");
    const fail: Middleware = {
      name: "fail",
      beforeTurn() {
        throw failure;
      },
    };
    const pipeline = buildPipeline([fail, scribe("late", new Set(["beforeTurn"]), heard)]);
    const data = { middleware: "fail", hook: "beforeTurn" };
    await expect(pipeline.beforeTurn?.({} as never)).rejects.toMatchObject({
      code: "run_failed",
      data,
      cause: failure,
    });
    expect(heard).toEqual([]);
  });

  test("what onError throws is dropped, and the others still hear (Pipeline-3)", async () => {
    const heard: string[] = [];
    const fail: Middleware = {
      name: "fail",
      onError() {
        throw new Error("no");
      },
    };
    await buildPipeline([scribe("last", new Set(["onError"]), heard), fail]).onError?.({} as never, "why");
    expect(heard).toEqual(["onError last"]);
  });

  test("everybody gets afterTurn, also when one throws (Pipeline-3)", async () => {
    const heard: string[] = [];
    const fail = (message: string): Middleware => ({
      name: message,
      afterTurn() {
        throw new Error(message);
      },
    });
    const pipeline = buildPipeline([scribe("last", new Set(["afterTurn"]), heard), fail("second"), fail("first")]);
    await expect(pipeline.afterTurn?.({} as never, {} as never)).rejects.toThrow("first");
    expect(heard).toEqual(["afterTurn last"]);
  });

  test("state and tools of all are gathered; one handle may be declared twice", () => {
    const [a, b] = [
      defineState({ key: "a", scope: "run", initial: 0 }),
      defineState({ key: "b", scope: "branch", initial: 0 }),
    ];
    const tools = { look: { description: "looks" } };
    const pipeline = buildPipeline([
      { name: "one", state: [a, b], tools },
      { name: "two", state: [b] },
      { name: "three", tools: {} },
    ]);
    expect(pipeline.state).toEqual([a, b]);
    expect(pipeline.tools).toEqual([tools, {}]);
    expect(buildPipeline([])).toMatchObject({ state: [], tools: [], beforeTurn: undefined });
  });

  test("two handles under one key are refused, also of different scopes", () => {
    const one = defineState({ key: "same", scope: "run", initial: 0 });
    const other = defineState({ key: "same", scope: "branch", initial: 0 });
    const build = () =>
      buildPipeline([
        { name: "one", state: [one] },
        { name: "two", state: [other] },
      ]);
    expect(build).toThrow(
      expect.objectContaining({ code: "invalid_argument", data: { key: "same", middleware: "two" } }),
    );
  });
});
