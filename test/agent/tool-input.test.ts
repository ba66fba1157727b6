// What a tool is given belongs to its call: it is what the model asked for, whole, and at every attempt the same.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type BoughEvent, defineTool, type Middleware } from "../../src/index.ts";
import { eventsOf, given, ofType, s } from "./kit.ts";

const calling = (input: unknown) => ({ calls: [{ name: "probe", input: input as never, id: "c" }] });

/** The output of the only call. */
function outputIn(events: readonly BoughEvent[]) {
  return ofType(events, "tool.returned")[0]!.output;
}

describe("arguments that are no JSON object", () => {
  test.each([
    ["JSON Schema", { type: "object" }],
    ["JSON Schema without a validator", { jsonSchema: { type: "object" } }],
    ["a schema that checks", z.object({ path: z.string() })],
  ])("are told to the model and not to a tool with %s", async (_, input) => {
    for (const odd of ['{"path": "/tm', "[1]", '"text"', "7"]) {
      const ran: unknown[] = [];
      const probe = defineTool({ input: input as { type: string }, execute: (given) => void ran.push(given) });
      const { agent } = await given([calling(odd), "Done."], { tools: { probe } });
      const output = outputIn(await eventsOf(agent.run("Go", s)));
      expect(output).toMatchObject({
        type: "error-text",
        value: expect.stringMatching(/arguments of "probe" are not/),
      });
      expect(ran).toEqual([]);
    }
  });

  test("are told to the model and not to the client that would run the tool", async () => {
    const probe = defineTool({ input: { type: "object" } });
    const { agent } = await given([calling('{"path": "/tm'), "Done."], { tools: { probe } });
    const events = await eventsOf(agent.run("Go", s));
    expect(outputIn(events)).toMatchObject({ type: "error-text" });
    expect(ofType(events, "interaction.opened")).toEqual([]);
  });
});

describe("a tool that changes its input", () => {
  const change = (input: { list: number[] }) => input.list.push(0);

  test.each([
    ["JSON Schema", { type: "object" }],
    ["a schema that checks", z.object({ list: z.array(z.number()) })],
  ])("with %s gets it as it was at the next attempt", async (_, input) => {
    const seen: string[] = [];
    const probe = defineTool({
      input: input as { type: string },
      retry: { attempts: 3, delayMs: 0 },
      execute(input) {
        seen.push(JSON.stringify(input));
        change(input as never);
        throw new Error("again");
      },
    });
    const { agent, clock } = await given([calling({ list: [1] }), "Done."], { tools: { probe } });
    const run = agent.run("Go", s);
    await eventsOf(run, (event) => event.type === "tool-retry" && clock.advance(0));
    expect(seen).toEqual(Array(3).fill('{"list":[1]}'));
  });

  test("changes nothing that hooks see of the message", async () => {
    const seen: unknown[] = [];
    const watch: Middleware = {
      name: "watch",
      afterToolCall: (context) => void seen.push(context.input, context.call.input),
      afterIteration: (_, { message }) => void seen.push(message.content[0]),
    };
    const probe = defineTool({ input: { type: "object" }, execute: (input) => change(input as never) });
    const { agent } = await given([calling({ list: [1] }), "Done."], { tools: { probe }, middleware: [watch] });
    await agent.run("Go", s).result;
    expect(seen.slice(0, 3)).toMatchObject([{ list: [1] }, { list: [1] }, { input: { list: [1] } }]);
  });
});

describe("a tool that was left behind", () => {
  test.each(["ask", "background"] as const)("can't begin anything any more (%s)", async (door) => {
    let late: Promise<unknown> | undefined;
    const probe = defineTool({
      input: {},
      timeoutMs: 50,
      execute: (_, { signal, ask, background }) => {
        const begin = () => (door === "ask" ? ask("Still there?") : background("more", async () => 1));
        return new Promise(() => {
          signal.addEventListener("abort", () => {
            late = begin().catch((error) => error.code);
          });
        });
      },
    });
    const { agent, clock } = await given([calling({}), "Done."], { tools: { probe } });
    const events = await eventsOf(agent.run("Go", s), (event) => event.type === "tool-start" && clock.advance(50));
    expect(await late).toBe("limit_exceeded");
    expect(events.filter(({ type }) => type === "interaction.opened" || type === "task.started")).toEqual([]);
    expect(ofType(events, "run-end")).toMatchObject([{ status: "completed" }]);
  });
});

test("what a tool or a hook shows is JSON, whatever it is made of", async () => {
  const circle: Record<string, unknown> = { big: 1n, when: new Date(0) };
  circle.circle = circle;
  const probe = defineTool({
    input: {},
    execute(_, { progress, emit }) {
      progress(circle as never);
      emit("shown", circle as never);
    },
  });
  const hook: Middleware = { name: "hook", afterTools: ({ emit }) => emit("hooked", circle as never) };
  const { agent } = await given([calling({}), "Done."], { tools: { probe }, middleware: [hook] });
  const events = await eventsOf(agent.run("Go", s));
  const shown = { big: "1", when: "1970-01-01T00:00:00.000Z", circle: "[circular]" };
  expect(ofType(events, "tool-progress").map(({ output }) => output)).toEqual([shown]);
  expect(ofType(events, "custom-emit").map(({ data }) => data)).toEqual([shown, shown]);
  expect(() => JSON.stringify(events)).not.toThrow();
});
