import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createAgent, defineTool } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock, scriptedModel } from "../../src/testing/index.ts";
import { anAgent, answering, factsOf, questions, s } from "./asking-kit.ts";

const step = defineTool({ description: "One step.", input: z.object({ n: z.number() }), execute: ({ n }) => n });
const tools = { step };
/** A model that needs this many calls. */
const needs = (count: number) =>
  scriptedModel((prompt) => {
    const n = prompt.filter(({ role }) => role === "tool").length;
    return n + 1 < count ? { calls: [{ name: "step", input: { n } }] } : "done";
  });
const limits = { iterations: 2, onIterations: "ask" } as const;

describe("at the limit of iterations", () => {
  test("a person is asked, and an approval takes the turn as far as it says", async () => {
    const agent = await anAgent({ model: needs(7), tools, limits });
    const run = agent.run("go", s);
    const shown: unknown[] = [];
    const seen = await answering(run, ({ kind, request }) => {
      shown.push([kind, request]);
      return shown.length === 1 ? { approved: true, iterations: 4 } : { approved: true };
    });
    expect(shown).toEqual([
      ["continuation", { iteration: 3, limit: 2 }],
      ["continuation", { iteration: 7, limit: 6 }],
    ]);
    expect(seen.filter(({ type }) => type === "limit-reach")).toHaveLength(2);
    expect(await run.result).toMatchObject({ status: "completed", text: "done", iterations: 7 });
  });

  test("a refusal ends the turn, committed with the reason; what is no answer is refused", async () => {
    const agent = await anAgent({ model: needs(5), tools, limits });
    const run = agent.run("go", { ...s, questions: "wait" });
    const [question] = await questions(agent);
    for (const answer of [{ approved: "yes" }, { approved: true, iterations: 0 }, {}, { approved: true, more: 3 }]) {
      await expect(run.respond(question!.id, answer as never)).rejects.toMatchObject({ code: "invalid_argument" });
    }
    await run.respond(question!.id, { approved: false });
    expect(await run.result).toMatchObject({ status: "completed", reason: "iteration-limit", iterations: 2 });
    expect(await factsOf(agent, "turn.committed")).toMatchObject([{ reason: "iteration-limit", iterations: 2 }]);
  });

  test("nobody there, or no answer in time, ends the turn too", async () => {
    const clock = manualClock();
    const agent = await anAgent({ model: needs(5), tools, clock, limits: { ...limits, answerMs: 10 } });
    expect(await agent.run("go", s).result).toMatchObject({ reason: "iteration-limit" });
    await agent.createBranch("s", { branchId: "b" });
    const run = agent.run("go", { ...s, branchId: "b", questions: "wait" });
    await questions(agent, 1, "b");
    clock.advance(10);
    expect(await run.result).toMatchObject({ status: "completed", reason: "iteration-limit" });
  });

  test("the question survives a restart, and so does its answer", async () => {
    const store = memoryStore();
    const agent = await anAgent({ model: needs(4), tools, limits, store });
    const { status, interactions } = await agent.run("go", { ...s, questions: "park" }).result;
    expect(status).toBe("parked");
    const later = createAgent({ model: needs(4), tools, limits, store });
    const run = await later.respond(s, interactions![0]!.id, { approved: true, iterations: 2 });
    expect(await run!.result).toMatchObject({ status: "completed", text: "done", iterations: 4 });
    expect(await factsOf(later, "interaction.opened")).toHaveLength(1);
  });

  test("an approval from before a restart still counts when the turn goes on after it", async () => {
    const store = memoryStore();
    const agent = await anAgent({ model: needs(6), tools, limits, store });
    const run = agent.run("go", { ...s, questions: "wait" });
    const [first] = await questions(agent);
    await run.respond(first!.id, { approved: true, iterations: 2 });
    let second = (await questions(agent))[0]!;
    while (second.id === first!.id) second = (await questions(agent))[0]!;
    await run.park();
    const later = createAgent({ model: needs(6), tools, limits, store });
    const resumed = later.run(undefined, { ...s, questions: "wait" });
    await resumed.respond(second.id, { approved: true, iterations: 2 });
    expect(await resumed.result).toMatchObject({ status: "completed", text: "done", iterations: 6 });
    expect(await factsOf(later, "interaction.opened")).toHaveLength(2);
  });
});
