import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createAgent, defineTool, type Json, type Middleware } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock, scriptedModel } from "../../src/testing/index.ts";
import { anAgent, answering, factsOf, questions, s } from "./asking-kit.ts";

const locate = defineTool({ description: "Where the user is.", input: z.object({ precise: z.boolean() }) });
const tools = { locate };

const locates = scriptedModel((prompt) => {
  const last = prompt.at(-1)!;
  if (last.role !== "tool") return { calls: [{ name: "locate", input: { precise: true } }] };
  return JSON.stringify((last.content as unknown as { output: Json }[])[0]!.output);
});

describe("a tool that the client runs", () => {
  test("may change with its answer what the model is offered next", async () => {
    const look = defineTool({ description: "Looks.", input: z.object({}), execute: () => "seen" });
    const model = scriptedModel((_, n) =>
      n < 2 ? { calls: [{ name: "locate", input: { precise: n === 0 } }] } : "Done.",
    );
    const agent = await anAgent({ model, tools: { ...tools, look } });
    const answers = [
      { output: "Rome", tools: { hide: ["look"] } },
      { output: "Oslo", tools: { show: ["look"] } },
    ];
    const run = agent.run("go", s);
    await answering(run, () => answers.shift());
    const offered = model.calls.map((call) => (call.tools as { name: string }[]).map(({ name }) => name));
    expect(offered).toEqual([["locate", "look"], ["locate"], ["locate", "look"]]);
  });

  test.each([
    ["a text", { output: "Rome" }, { type: "text", value: "Rome" }],
    ["data", { output: { lat: 1, lon: 2 } }, { type: "json", value: { lat: 1, lon: 2 } }],
    ["a list", { output: [1, 2] }, { type: "json", value: [1, 2] }],
    ["nothing", {}, { type: "json", value: null }],
    ["an output of the model's own kind", { output: { type: "text", value: "x" } }, { type: "text", value: "x" }],
    ["an error", { error: "No signal." }, { type: "error-text", value: "No signal." }],
    ["an error in data", { error: { status: 404 } }, { type: "error-json", value: { status: 404 } }],
  ])("is shown its input, and answers with %s", async (_, answer, output) => {
    const agent = await anAgent({ model: locates, tools });
    const run = agent.run("go", s);
    const seen = await answering(run, () => answer);
    expect(seen.find(({ type }) => type === "interaction.opened")).toMatchObject({
      kind: "client-tool",
      request: { toolName: "locate", input: { precise: true } },
    });
    expect(JSON.parse(await run.text())).toEqual(output);
  });

  test("of which more are called than may run at once is asked for side by side all the same", async () => {
    const calls = [true, false].map((precise) => ({ name: "locate", input: { precise } }));
    const model = scriptedModel((prompt) => (prompt.at(-1)!.role === "tool" ? "done" : { calls }));
    const agent = await anAgent({ model, tools, limits: { parallelTools: 1 } });
    const run = agent.run("go", { ...s, questions: "wait" });
    const open = await questions(agent, 2);
    for (const { id } of open) await run.respond(id, { output: "x" });
    expect(await run.text()).toBe("done");
  });

  test("may answer with data that happens to have a type of its own", async () => {
    const agent = await anAgent({ model: locates, tools });
    const run = agent.run("go", s);
    await answering(run, () => ({ output: { type: "Feature", geometry: 1 } }));
    expect(JSON.parse(await run.text())).toEqual({ type: "json", value: { type: "Feature", geometry: 1 } });
  });

  test("may answer with as much as a tool may return", async () => {
    const agent = await anAgent({ model: locates, tools });
    const run = agent.run("go", s);
    await answering(run, () => ({ output: "x".repeat(1_000_000) }));
    expect(JSON.parse(await run.text()).value).toHaveLength(1_000_000);
  });

  test("is not run when no client is there, or none answers in time: the model is told, the turn goes on", async () => {
    const clock = manualClock();
    const agent = await anAgent({ model: locates, tools, clock, limits: { answerMs: 10 } });
    expect(JSON.parse(await agent.run("go", s).text()).value).toMatch(/no client is connected/);
    const run = agent.run("go", { ...s, questions: "wait" });
    await questions(agent);
    clock.advance(10);
    expect(JSON.parse(await run.text()).value).toMatch(/did not answer in time/);
  });

  test("is shown the input that a hook made of it", async () => {
    const rough: Middleware = {
      name: "rough",
      beforeToolCall(context) {
        context.input = { precise: false };
      },
    };
    const agent = await anAgent({ model: locates, tools, middleware: [rough] });
    const seen = await answering(agent.run("go", s), () => ({ output: "x" }));
    expect(seen.find(({ type }) => type === "interaction.opened")).toMatchObject({
      request: { input: { precise: false } },
    });
  });

  test("answers a run that nobody works on, and the run goes on with it", async () => {
    const store = memoryStore();
    const agent = await anAgent({ model: locates, tools, store });
    const { interactions } = await agent.run("go", { ...s, questions: "park" }).result;
    const later = createAgent({ model: locates, tools, store });
    const run = await later.respond(s, interactions![0]!.id, { output: "Oslo" });
    expect(JSON.parse(await run!.text())).toEqual({ type: "text", value: "Oslo" });
    expect(await factsOf(later, "interaction.opened")).toHaveLength(1);
  });

  test("that must not run twice is asked for once: after a restart it is the same question", async () => {
    const store = memoryStore();
    const pay = defineTool({ description: "Pays.", input: z.object({}), effect: "once" });
    const model = scriptedModel((prompt) =>
      prompt.at(-1)!.role === "tool" ? "done" : { calls: [{ name: "pay", input: {} }] },
    );
    const agent = await anAgent({ model, tools: { pay }, store });
    const run = agent.run("go", { ...s, questions: "wait" });
    const [question] = await questions(agent);
    await run.park();
    const later = createAgent({ model, tools: { pay }, store });
    const resumed = later.run(undefined, { ...s, questions: "wait" });
    await resumed.respond(question!.id, { output: "paid" });
    expect(await resumed.text()).toBe("done");
    expect(await factsOf(later, "interaction.opened")).toHaveLength(1);
  });

  test("of which several are called is asked for side by side", async () => {
    const model = scriptedModel((prompt) =>
      prompt.at(-1)!.role === "tool"
        ? JSON.stringify(
            (prompt.at(-1)!.content as unknown as { output: { value: Json } }[]).map(({ output }) => output.value),
          )
        : { calls: [true, false].map((precise) => ({ name: "locate", input: { precise } })) },
    );
    const agent = await anAgent({ model, tools });
    const run = agent.run("go", { ...s, questions: "wait" });
    const open = await questions(agent, 2);
    for (const { id, request } of open.toReversed()) await run.respond(id, { output: request.input as Json });
    expect(JSON.parse(await run.text())).toEqual([{ precise: true }, { precise: false }]);
  });
});
