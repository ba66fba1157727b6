// What the compiler knows. These tests run, but it is the type check that can fail.

import { jsonSchema, tool } from "ai";
import { describe, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type BoughError,
  type BoughEvent,
  createAgent,
  defineState,
  defineTool,
  type Json,
  type Message,
  type Run,
  type RunResult,
  type ToolContext,
  type ToolOutput,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const agent = createAgent({ model: scriptedModel(() => "{}") });

describe("the context of a run", () => {
  const schema = z.object({ since: z.string().transform((text) => new Date(text)) });
  const scoped = createAgent({ model: scriptedModel(() => "{}"), context: schema });

  test("is what the agent's schema takes", () => {
    const run = () => scoped.run("Hi", { context: { since: "2026-01-02" } });
    expectTypeOf(run).returns.toEqualTypeOf<Run<unknown>>();
    // @ts-expect-error: a number is no text
    const wrong = () => scoped.run("Hi", { context: { since: 1 } });
    expectTypeOf(wrong).toBeFunction();
  });

  test("is to a tool what the tool says", () => {
    const tool = defineTool({
      input: z.object({}),
      execute: (_input, { context }: ToolContext<{ since: Date }>) => context.since.getTime(),
    });
    createAgent({ model: scriptedModel(() => "{}"), tools: { tool }, context: schema });
    expectTypeOf(tool.execute!).parameter(1).toEqualTypeOf<ToolContext<{ since: Date }>>();
  });
});

describe("the type of a run", () => {
  test("is unknown in its output when no schema is given", () => {
    const run = () => agent.run("Hi", { sessionId: "s" });
    expectTypeOf(run).returns.toEqualTypeOf<Run<unknown>>();
    expectTypeOf<Awaited<Run["result"]>>().toEqualTypeOf<RunResult<unknown>>();
    expectTypeOf<RunResult["status"]>().toEqualTypeOf<"completed" | "interrupted" | "failed" | "parked">();
    expectTypeOf<RunResult["error"]>().toEqualTypeOf<BoughError | undefined>();
    expectTypeOf<RunResult["messages"]>().toEqualTypeOf<readonly Message[]>();
  });

  test("has what a zod schema gives out, not what it takes", () => {
    const output = z.object({
      n: z.number(),
      when: z.string().transform((text) => new Date(text)),
      tag: z.string().optional(),
    });
    const run = () => agent.run("Hi", { sessionId: "s", output });
    type Output = NonNullable<Awaited<ReturnType<typeof run>["result"]>["output"]>;
    expectTypeOf<Output>().toEqualTypeOf<{ n: number; when: Date; tag?: string | undefined }>();
  });

  test("has the type of an AI SDK schema, and an object for plain JSON Schema", () => {
    const typed = () => agent.run("Hi", { output: jsonSchema<{ city: string }>({ type: "object" }) });
    expectTypeOf<ReturnType<typeof typed>>().toEqualTypeOf<Run<{ city: string }>>();
    const plain = () => agent.run("Hi", { output: { type: "object" } });
    expectTypeOf<ReturnType<typeof plain>>().toEqualTypeOf<Run<{ [key: string]: Json }>>();
  });

  test("is the same whichever way the output is given", () => {
    const output = z.object({ n: z.string().transform(Number) });
    const called = () => agent.run("Hi", { output: { schema: output, mode: "tool" } });
    expectTypeOf<ReturnType<typeof called>>().toEqualTypeOf<Run<{ n: number }>>();
    const native = () => agent.run("Hi", { output: { schema: jsonSchema<{ city: string }>({ type: "object" }) } });
    expectTypeOf<ReturnType<typeof native>>().toEqualTypeOf<Run<{ city: string }>>();
    const plain = () => agent.run("Hi", { output: { schema: { type: "object", required: ["a"] }, mode: "tool" } });
    expectTypeOf<ReturnType<typeof plain>>().toEqualTypeOf<Run<{ [key: string]: Json }>>();
    // @ts-expect-error: there is no such way
    void (() => agent.run("Hi", { output: { schema: output, mode: "tol" } }));
  });

  test("is that of a union, or says which of several by name", () => {
    const [a, b] = [z.object({ a: z.number() }), z.object({ b: z.string() })];
    const union = () => agent.run("Hi", { output: z.union([a, b]) });
    expectTypeOf<ReturnType<typeof union>>().toEqualTypeOf<Run<{ a: number } | { b: string }>>();
    const named = () => agent.run("Hi", { output: { union: { first: a, second: b }, mode: "tool" } });
    type Named = NonNullable<Awaited<ReturnType<typeof named>["result"]>["output"]>;
    expectTypeOf<Named>().toEqualTypeOf<
      | { readonly type: "first"; readonly value: { a: number } }
      | { readonly type: "second"; readonly value: { b: string } }
    >();
    const use = (output: Named) => (output.type === "first" ? output.value.a : output.value.b.length);
    expectTypeOf(use).returns.toEqualTypeOf<number>();
  });

  test("is the same for a turn that is taken up", () => {
    const run = () => agent.run(undefined, { sessionId: "s", output: z.object({ n: z.number() }) });
    expectTypeOf<ReturnType<typeof run>>().toEqualTypeOf<Run<{ n: number }>>();
    expectTypeOf(agent.run).toBeCallableWith();
  });

  test("takes text, parts and messages, and nothing else", () => {
    const use = (_agent: Agent) => {
      void _agent.run([{ type: "text", text: "Hi" }]);
      void _agent.run([{ role: "user", content: "Hi" }]);
      // @ts-expect-error: a number says nothing
      void _agent.run(7);
      // @ts-expect-error: there is no such role
      void _agent.run([{ role: "robot", content: "Hi" }]);
      // @ts-expect-error: there is no such setting
      void _agent.run("Hi", { config: { temprature: 1 } });
    };
    expectTypeOf(use).parameter(0).toEqualTypeOf<Agent>();
  });

  test("gives events that are told apart by their type", () => {
    const read = async (run: Run) => {
      for await (const event of run) {
        expectTypeOf(event).toEqualTypeOf<BoughEvent>();
        if (event.type === "text-delta") expectTypeOf(event.text).toEqualTypeOf<string>();
        if (event.type === "turn.committed") expectTypeOf(event.seq).toEqualTypeOf<number>();
        if (event.type === "message.added") expectTypeOf(event.content).toEqualTypeOf<Message["content"]>();
        if (event.type === "tool.returned") expectTypeOf(event.output).toEqualTypeOf<ToolOutput>();
        if (event.type === "run-end") expectTypeOf(event.status).toEqualTypeOf<RunResult["status"]>();
      }
    };
    expectTypeOf(read).parameter(0).toEqualTypeOf<Run>();
  });
});

describe("the type of a subscription", () => {
  test("is that of the event asked for", () => {
    const end = agent.subscribe("text-delta", (event) => {
      expectTypeOf(event.type).toEqualTypeOf<"text-delta">();
      expectTypeOf(event.text).toEqualTypeOf<string>();
      expectTypeOf(event.messageId).toEqualTypeOf<string>();
    });
    expectTypeOf(end).toEqualTypeOf<() => void>();
    end();
    agent.subscribe("interaction.opened", (event) => {
      expectTypeOf(event.kind).toEqualTypeOf<"permission" | "clarification" | "continuation" | "client-tool">();
      expectTypeOf(event.seq).toEqualTypeOf<number>();
    })();
    agent.subscribe("*", (event) => expectTypeOf(event).toEqualTypeOf<BoughEvent>())();
    // @ts-expect-error: there is no such event
    agent.subscribe("text-dleta", () => {})();
  });
});

describe("the type of a tool", () => {
  test("is inferred from its input, through permission and output as well", () => {
    const sum = defineTool({
      description: "Adds.",
      input: z.object({ a: z.number(), b: z.string().transform(Number) }),
      permission: (input) => {
        expectTypeOf(input).toEqualTypeOf<{ a: number; b: number }>();
        return false;
      },
      execute: (input, context) => {
        expectTypeOf(input).toEqualTypeOf<{ a: number; b: number }>();
        expectTypeOf(context).toEqualTypeOf<ToolContext>();
        return { sum: input.a + input.b };
      },
      toOutput: (result, { input }) => {
        expectTypeOf(result).toEqualTypeOf<{ sum: number }>();
        expectTypeOf(input).toEqualTypeOf<{ a: number; b: number }>();
        return { type: "json", value: result.sum };
      },
    });
    const sdk = tool({ description: "Doubles.", inputSchema: z.object({ n: z.number() }), execute: ({ n }) => n * 2 });
    createAgent({ model: scriptedModel([]), tools: { sum, sdk } });
    createAgent({ model: scriptedModel([]), tools: [{ sum }, { tools: async () => ({ sdk }) }] });
  });

  test("refuses what can't be one", () => {
    // @ts-expect-error: there is no such effect
    defineTool({ input: z.object({}), effect: "twice" });
    // @ts-expect-error: a tool takes an input
    defineTool({ execute: () => 1 });
  });
});

describe("the type of state", () => {
  test("is that of its initial value, or of its schema", () => {
    const count = defineState({ key: "count", scope: "run", initial: 0 });
    const plan = defineState({
      key: "plan",
      scope: "branch",
      schema: z.object({ steps: z.array(z.string()) }),
      initial: { steps: [] },
    });
    createAgent({
      model: scriptedModel([]),
      middleware: [
        {
          name: "types",
          state: [count, plan],
          async beforeIteration({ state }) {
            expectTypeOf(await state.get(count)).toEqualTypeOf<number>();
            expectTypeOf((await state.get(plan)).steps).toEqualTypeOf<string[]>();
            // @ts-expect-error: a count is a number
            await state.set(count, "one");
          },
        },
      ],
    });
  });
});
