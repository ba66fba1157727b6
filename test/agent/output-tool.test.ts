import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool, type Middleware } from "../../src/index.ts";
import {
  add,
  adding,
  endless,
  eventsOf,
  expectLegal,
  factTypes,
  given,
  main,
  ofType,
  refused,
  s,
  said,
} from "./kit.ts";

const schema = z.object({ city: z.string(), people: z.number().int() });
const output = { schema, mode: "tool" } as const;
const oslo = { city: "Oslo", people: 700_000 };
const giving = (input: object | string = oslo) => ({ calls: [{ name: "return_output", input: input as never }] });

describe("an output that is given by calling a tool", () => {
  test("is the result's output, and ends the turn without another model call", async () => {
    const { agent, model } = await given([giving(), "Next."]);
    const result = await agent.run("Where?", { ...s, output }).result;
    expect(result).toMatchObject({ status: "completed", reason: "output", output: oslo, text: "", iterations: 1 });
    expect(model.calls).toHaveLength(1);
    const [call] = model.calls;
    expect(call!.responseFormat).toBeUndefined();
    expect(call!.toolChoice).toEqual({ type: "tool", toolName: "return_output" });
    expect(call!.tools).toMatchObject([
      { type: "function", name: "return_output", inputSchema: { type: "object", required: ["city", "people"] } },
    ]);
    expect(await factTypes(agent)).toEqual([
      "turn.started",
      "message.added",
      "message.added",
      "tool.returned",
      "turn.committed",
    ]);
    expect(await agent.run("And now?", s).text()).toBe("Next.");
    expectLegal(model.calls[1]!.prompt);
    expect(model.calls[1]!.toolChoice).toEqual({ type: "none" });
  });

  test("is given out as the schema makes it", async () => {
    const { agent } = await given([giving({ when: "2020-01-02" })]);
    const when = z.object({ when: z.string().transform((text) => text.length) });
    expect((await agent.run("When?", { ...s, output: { schema: when, mode: "tool" } }).result).output).toEqual({
      when: 10,
    });
  });

  test("comes after the tools it needs, of which the model has to call one", async () => {
    const { agent, model } = await given([adding(), giving()], { tools: { add } });
    const run = agent.run("1 and 2?", { ...s, output });
    const events = await eventsOf(run);
    expect(await run.result).toMatchObject({ output: oslo, iterations: 2 });
    expect(model.calls[0]!.toolChoice).toEqual({ type: "required" });
    // It is no deed: nothing runs.
    expect(ofType(events, "tool-start").map(({ toolName }) => toolName)).toEqual(["add"]);
    for (const { prompt } of model.calls) expectLegal(prompt);
  });

  test("may stand beside other calls, which are carried out", async () => {
    const { agent } = await given([{ calls: [...adding().calls, ...giving().calls, ...giving().calls] }], {
      tools: { add },
    });
    const { output: made, messages, iterations } = await agent.run("Go", { ...s, output }).result;
    expect([made, iterations]).toEqual([oslo, 1]);
    expect(said(messages)[2]).toBe('tool: 3 "Answer accepted." "Answer accepted."');
    expectLegal(messages);
  });

  test("of several is the first that fits", async () => {
    const rome = { city: "Rome", people: 3 };
    const { agent } = await given([{ calls: [giving({}), giving(rome), giving()].flatMap(({ calls }) => calls) }]);
    expect((await agent.run("Where?", { ...s, output }).result).output).toEqual(rome);
  });

  test("leaves the choice of tools to whoever names one", async () => {
    const { agent, model } = await given(["Oslo, I think.", giving()]);
    const result = await agent.run("Where?", { ...s, output, config: { toolChoice: "auto" } }).result;
    expect(result.output).toEqual(oslo);
    expect(model.calls[0]!.toolChoice).toEqual({ type: "auto" });
    expect(said(model.calls[1]!.prompt).at(-1)).toMatch(/^user: .*return_output/);
  });

  test("is asked for again once when it does not fit, by the result of the call", async () => {
    const { agent, model } = await given([giving({ city: "Oslo" }), giving()]);
    expect(await agent.run("Where?", { ...s, output }).result).toMatchObject({ output: oslo, iterations: 2 });
    expect(said(model.calls[1]!.prompt).at(-1)).toMatch(/^tool: .*not valid.*people/);
    expectLegal(model.calls[1]!.prompt);
  });

  test.each([
    ["two calls that don't fit", [giving({}), giving("{no")]],
    ["words and a call that does not fit", ["Oslo.", giving({})]],
    ["a call that does not fit and words", [giving({}), "Oslo."]],
    ["words twice", ["Oslo.", "Oslo!"]],
  ])("fails the turn after %s", async (_, script) => {
    const { agent, model } = await given([...script, "Back."]);
    const result = await agent.run("Where?", { ...s, output, config: { toolChoice: "auto" } }).result;
    expect(result).toMatchObject({ status: "failed", reason: "output_invalid", error: { code: "output_invalid" } });
    expect(result.output).toBeUndefined();
    expectLegal((await agent.loadBranch("s")).messages);
    expect(await agent.run("Again", s).text()).toBe("Back.");
    expectLegal(model.calls[2]!.prompt);
  });

  test("is asked for anew in each turn", async () => {
    const { agent } = await given([giving({}), giving(), giving({}), giving()]);
    await agent.run("1", { ...s, output }).result;
    expect((await agent.run("2", { ...s, output }).result).output).toEqual(oslo);
  });

  test("needs no permission and is no repetition", async () => {
    const { agent } = await given([giving()]);
    const config = { permissionMode: "deny" } as const;
    expect((await agent.run("Where?", { ...s, output, config }).result).output).toEqual(oslo);
  });

  test("is not taken when a hook skips the calls it stands among", async () => {
    let isSkipped = false;
    const skipping: Middleware = {
      name: "skipping",
      beforeTools(context) {
        if (!isSkipped) context.skip({ type: "text", value: "Not now." });
        isSkipped = true;
      },
    };
    const { agent } = await given([giving(), giving({ ...oslo, people: 1 })], { middleware: [skipping] });
    const result = await agent.run("Where?", { ...s, output }).result;
    expect(result).toMatchObject({ output: { people: 1 }, iterations: 2 });
  });

  test("waits with the turn when a call beside it waits for an answer", async () => {
    const ask = defineTool({ input: z.object({}), permission: true, execute: () => "done" });
    const script = [{ calls: [{ name: "ask", input: {} }, ...giving().calls] }];
    const { agent, again } = await given(script, { tools: { ask } });
    const parked = await agent.run("Go", { ...s, output, questions: "park" }).result;
    expect([parked.status, parked.output]).toEqual(["parked", undefined]);
    const other = again({ script: [] });
    const run = await other.respond(s, parked.interactions![0]!.id, { approved: true }, { output });
    expect(await run!.result).toMatchObject({ status: "completed", output: oslo, iterations: 1 });
  });

  test("whose tool has the name of another one is refused before anything is written", async () => {
    const { agent } = await given(["never"], { tools: { return_output: add } });
    await refused(agent.run("Where?", { ...s, output }).result, "invalid_argument");
    expect(await factTypes(agent)).toEqual([]);
  });

  test("in a way that there is not is refused", async () => {
    const { agent } = await given(["never"]);
    const odd = { schema: { type: "object" }, mode: "tol" } as const;
    await refused(agent.run("Where?", { ...s, output: odd }).result, "invalid_argument");
  });

  test("can be staged", async () => {
    const { agent } = await given([giving()], { persistAfterTurn: false });
    expect((await agent.run("Where?", { ...s, output }).result).output).toEqual(oslo);
    expect((await factTypes(agent)).at(-1)).toBe("turn.staged");
  });
});

describe("a run that is left after the output was given", () => {
  test("ends with it when it is taken up, without asking the model again", async () => {
    const { agent, again } = await given([{ calls: [...giving().calls, { name: "endless", input: {} }] }], {
      tools: { endless: endless() },
    });
    const run = agent.run("Where?", { ...s, output });
    await eventsOf(run, (event) => {
      if (event.type === "tool.returned") void run.park();
    });
    expect((await run.result).status).toBe("parked");
    const other = again({ script: [], tools: { endless: add } });
    const result = await other.run(undefined, { ...s, output }).result;
    expect(result).toMatchObject({ status: "completed", reason: "output", output: oslo, iterations: 1 });
    expect((await other.events(main)).at(-1)).toMatchObject({ type: "turn.committed", reason: "output" });
  });

  test("is that of the turn, also for a resumed run that does not say so again", async () => {
    const { agent, again } = await given([{ calls: [...giving().calls, { name: "endless", input: {} }] }], {
      tools: { endless: endless() },
    });
    const run = agent.run("Where?", { ...s, output });
    await eventsOf(run, (event) => {
      if (event.type === "tool.returned") void run.park();
    });
    const result = await again({ script: [], tools: { endless: add } }).run(undefined, s).result;
    expect(result).toMatchObject({ status: "completed", reason: "output", output: oslo, iterations: 1 });
    expectLegal(result.messages);
  });

  test("that did not fit is asked for again, and not a second time", async () => {
    const { agent, again } = await given([giving({})]);
    const run = agent.run("Where?", { ...s, output });
    await eventsOf(run, (event) => {
      if (event.type === "iteration-start" && event.iteration === 2) void run.park();
    });
    expect((await run.result).status).toBe("parked");
    const left = again({ script: [giving({ city: "Oslo" })] });
    expect(await left.run(undefined, { ...s, output }).result).toMatchObject({
      status: "failed",
      reason: "output_invalid",
      iterations: 2,
    });
  });
});
