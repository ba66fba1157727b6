// What the compiler knows of events, results and questions. These tests run, but it is the type check that can fail.

import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type BoughError,
  type BoughEvent,
  createAgent,
  defineTool,
  type OpenInteraction,
  type RunResult,
  type ToolSet,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import type { BranchHandle } from "../../src/wire/index.ts";

const add = defineTool({
  input: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => ({ sum: a + b }),
});
const greet = defineTool({ input: z.object({ name: z.string() }), execute: ({ name }) => `Hello, ${name}.` });
const model = () => scriptedModel([{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "3"]);

describe("events of an agent with tools", () => {
  test("tool-start and tool.returned are typed by the tool's name", async () => {
    const agent = createAgent({ model: model(), tools: { add, greet } });
    await agent.createSession("s");
    const seen: unknown[] = [];
    agent.subscribe("tool-start", (event) => {
      expectTypeOf(event.toolName).toEqualTypeOf<"add" | "greet">();
      if (event.toolName === "add") expectTypeOf(event.input).toEqualTypeOf<{ a: number; b: number }>();
    });
    for await (const event of agent.run("Go", "s")) {
      if (event.type === "tool-start" && event.toolName === "add") {
        expectTypeOf(event.input.a).toEqualTypeOf<number>();
        seen.push(event.input);
      }
      if (event.type === "tool.returned" && event.toolName === "add" && event.output.type === "json") {
        expectTypeOf(event.output.value.sum).toExtend<number>();
        seen.push(event.output.value.sum);
      }
      // @ts-expect-error: there is no tool of that name
      if (event.type === "tool.returned" && event.toolName === "ad") seen.push("never");
    }
    expect(seen).toEqual([{ a: 1, b: 2 }, 3]);
    await agent.close();
  });

  test("are any tool's when the tools are not known", () => {
    const tools: ToolSet = { add };
    const agent = createAgent({ model: model(), tools });
    expectTypeOf(agent).toEqualTypeOf<Agent<unknown, BoughEvent>>();
    agent.subscribe("tool-start", ({ toolName }) => expectTypeOf(toolName).toEqualTypeOf<string>());
  });

  test("an agent with tools is an agent", () => {
    const agent = createAgent({ model: model(), tools: { add } });
    expectTypeOf(agent).toExtend<Agent>();
  });
});

describe("results", () => {
  test("are narrowed by their status", () => {
    const look = (result: RunResult<{ n: number }>) => {
      if (result.status === "failed") expectTypeOf(result.error).toEqualTypeOf<BoughError>();
      if (result.status === "completed") expectTypeOf(result.output).toEqualTypeOf<{ n: number } | undefined>();
      if (result.status === "parked") expectTypeOf(result.interactions[0]!.id).toEqualTypeOf<string>();
      // @ts-expect-error: an interrupted run has no questions
      if (result.status === "interrupted") result.interactions.length;
      expectTypeOf(result.text).toEqualTypeOf<string>();
    };
    expectTypeOf(look).toBeFunction();
  });
});

describe("interactions", () => {
  test("have a request of their kind", () => {
    const look = (event: BoughEvent, open: OpenInteraction) => {
      if (event.type === "interaction.opened" && event.kind === "permission") {
        expectTypeOf(event.request.toolName).toEqualTypeOf<string>();
      }
      if (open.kind === "clarification") expectTypeOf(open.request.choices).toEqualTypeOf<string[] | undefined>();
      if (open.kind === "continuation") expectTypeOf(open.request.limit).toEqualTypeOf<number>();
      expectTypeOf(open.sessionId).toEqualTypeOf<string>();
    };
    expectTypeOf(look).toBeFunction();
  });

  test("take an answer of their kind", () => {
    const answer = async (branch: BranchHandle) => {
      for (const interaction of await branch.interactions()) {
        if (interaction.kind === "permission") await branch.respond(interaction, { approved: true, choice: "always" });
        if (interaction.kind === "clarification") await branch.respond(interaction, { answer: "Rome" });
        // @ts-expect-error: a client's tool has an output, and no decision
        if (interaction.kind === "client-tool") await branch.respond(interaction, { approved: true });
      }
    };
    expectTypeOf(answer).toBeFunction();
  });
});

describe("a misspelt execute", () => {
  test("does not compile", () => {
    const wrong = () =>
      // @ts-expect-error: the key is not known
      defineTool({ input: z.object({}), excute: () => "done" });
    expectTypeOf(wrong).toBeFunction();
  });

  test("is refused where the compiler can't see it", async () => {
    const agent = createAgent({
      model: scriptedModel(["Hi."]),
      tools: { pay: { input: z.object({}), excute: () => "paid" } },
    });
    await expect(agent.run("Go").result).rejects.toThrow(/may not have the key "excute". Did you mean "execute"\?/);
    await agent.close();
  });
});
