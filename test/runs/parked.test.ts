import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createAgent, defineTool } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock, scriptedModel } from "../../src/testing/index.ts";
import { refused } from "../sessions/kit.ts";
import {
  anAgent,
  answering,
  factsOf,
  openQuestions,
  questions,
  removesThenTells,
  removing,
  s,
  sharedFile,
} from "./asking-kit.ts";

const parking = { ...s, questions: "park" } as const;

describe("a run that parks", () => {
  test("ends with its questions, gives the branch back and leaves the turn open", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("a", "b"), tools });
    const run = agent.run("go", parking);
    const types: string[] = [];
    for await (const event of run) types.push(event.type);
    const { status, reason, interactions, text } = await run.result;
    expect({ status, reason, text }).toEqual({ status: "parked", reason: "question", text: "" });
    expect(interactions!.map(({ request }) => request.input)).toEqual([{ path: "a" }, { path: "b" }]);
    for (const each of interactions!) expect(each).not.toHaveProperty("expiresAt");
    expect(types.at(-1)).toBe("run-end");
    expect(ran).toEqual([]);
    expect(await agent.store.listRuns()).toEqual([]);
    expect((await agent.loadBranch("s")).uncommittedTurn).toBeTruthy();
  });

  test("is resumed by the last answer, from another agent on the same store, exactly once", async () => {
    const open = await sharedFile();
    const { ran, tools } = removing();
    const model = removesThenTells("a", "b");
    const agent = await anAgent({ model, tools, store: await open() });
    const { interactions } = await agent.run("go", parking).result;
    await agent.close();
    const [one, two] = [
      createAgent({ model, tools, store: await open() }),
      createAgent({ model, tools, store: await open() }),
    ];
    const [a, b] = interactions!;
    expect(await one.respond(s, a!.id, { approved: true })).toBeUndefined();
    expect(ran).toEqual([]);
    const run = await two.respond(s, b!.id, { approved: false });
    expect(JSON.parse(await run!.text())).toMatchObject([
      { type: "text", value: "removed a" },
      { type: "execution-denied" },
    ]);
    expect(ran).toEqual(["a"]);
    expect(await factsOf(one, "turn.resumed")).toHaveLength(1);
    expect(await factsOf(one, "turn.committed")).toHaveLength(1);
  });

  test("closes what it asked about a call that goes ahead because the tool was allowed for good elsewhere", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("a"), tools });
    const { interactions } = await agent.run("go", parking).result;
    await agent.createBranch("s", { branchId: "other" });
    await answering(agent.run("go", { ...s, branchId: "other" }), () => ({ approved: true, choice: "always" }));
    await agent.run(undefined, { ...s, branchId: "main" }).result;
    expect(ran).toEqual(["a", "a"]);
    const types = (await factsOf(agent)).map(({ type }) => type);
    const asked = ["turn.resumed", "interaction.expired", "permission.granted"];
    const written = [...asked, "tool.returned", "message.added", "turn.committed"];
    expect(types.slice(types.indexOf("turn.resumed"))).toEqual(written);
    const { id: interactionId } = interactions![0]!;
    expect(await factsOf(agent, "interaction.expired")).toMatchObject([{ interactionId, reason: "not needed" }]);
  });

  test("by two who answer the same question at once is resumed by one; the other is told that it is closed", async () => {
    const open = await sharedFile();
    const { ran, tools } = removing();
    const model = removesThenTells("x");
    const agent = await anAgent({ model, tools, store: await open() });
    const { interactions } = await agent.run("go", parking).result;
    const agents = [agent, createAgent({ model, tools, store: await open() })];
    const ends = await Promise.allSettled(
      agents.map((each) => each.respond(s, interactions![0]!.id, { approved: true })),
    );
    const won = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
    expect(won).toHaveLength(1);
    expect(ends.find(({ status }) => status === "rejected")).toMatchObject({ reason: { code: "interaction_closed" } });
    expect((await won[0]!.result).status).toBe("completed");
    expect(ran).toEqual(["x"]);
  });

  test("by two who resume it at once is run by one; the other is told that it is taken", async () => {
    const open = await sharedFile();
    const { ran, tools } = removing();
    const model = removesThenTells("x");
    const agent = await anAgent({ model, tools, store: await open() });
    const { interactions } = await agent.run("go", parking).result;
    await agent.answer(s, interactions![0]!.id, { approved: true });
    const agents = [agent, createAgent({ model, tools, store: await open() })];
    const ends = await Promise.allSettled(agents.map((each) => each.run(undefined, s).result));
    const won = ends.filter(({ status }) => status === "fulfilled");
    // The slower one may also find that there is nothing left to resume.
    const lost = ends.flatMap((end) => (end.status === "rejected" ? [end.reason.code] : []));
    expect(won).toHaveLength(1);
    expect(["run_active", "nothing_to_resume"]).toContain(lost[0]);
    expect(ran).toEqual(["x"]);
    expect(await factsOf(agent, "turn.committed")).toHaveLength(1);
  });

  test("parks again at the next question, and each answer takes it one step further", async () => {
    const store = memoryStore();
    const { ran, tools } = removing();
    const model = scriptedModel((prompt) => {
      const results = prompt.filter(({ role }) => role === "tool").length;
      return results < 3 ? { calls: [{ name: "remove", input: { path: `${results}` } }] } : "done";
    });
    const agent = await anAgent({ model, tools, store });
    let result = await agent.run("go", parking).result;
    for (let step = 0; step < 3; step++) {
      expect(result.status).toBe("parked");
      const later = createAgent({ model, tools, store });
      const run = await later.respond(s, result.interactions![0]!.id, { approved: true }, { questions: "park" });
      result = await run!.result;
    }
    expect(result).toMatchObject({ status: "completed", text: "done", iterations: 4 });
    expect(ran).toEqual(["0", "1", "2"]);
    expect(await factsOf(agent, "turn.started")).toHaveLength(1);
    expect(await factsOf(agent, "interaction.opened")).toHaveLength(3);
  });

  test("takes an answer at once while another call runs, and is not parked for it", async () => {
    let finish = () => {};
    const ended = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const { ran, tools } = removing();
    const slow = defineTool({ description: "Slow.", input: z.object({}), execute: () => ended.then(() => "slow") });
    const model = scriptedModel([
      {
        calls: [
          { name: "slow", input: {} },
          { name: "remove", input: { path: "a" } },
        ],
      },
      "done",
    ]);
    const agent = await anAgent({ model, tools: { ...tools, slow } });
    const run = agent.run("go", parking);
    const [question] = await questions(agent);
    await run.respond(question!.id, { approved: true });
    while (ran.length === 0) await new Promise((resolve) => setImmediate(resolve));
    finish();
    expect(await run.result).toMatchObject({ status: "completed", text: "done" });
    expect(await factsOf(agent, "turn.resumed")).toEqual([]);
  });

  test("runs the calls that wait for a place behind one that asks from within", async () => {
    const { ran, tools } = removing();
    const pick = defineTool({
      description: "Picks.",
      input: z.object({}),
      execute: (_, { ask }) => ask("Which?").then((answer) => `picked ${answer}`),
    });
    const free = { ...tools.remove, permission: false };
    const model = scriptedModel([
      {
        calls: [
          { name: "pick", input: {} },
          { name: "remove", input: { path: "a" } },
        ],
      },
      "done",
    ]);
    const limits = { parallelTools: 1 };
    const agent = await anAgent({ model, tools: { remove: free, pick }, limits });
    const { status, interactions } = await agent.run("go", parking).result;
    expect(status).toBe("parked");
    expect(ran).toEqual(["a"]);
    const run = await agent.respond(s, interactions![0]!.id, { answer: "this" });
    expect(await run!.text()).toBe("done");
    expect(ran).toEqual(["a"]);
  });

  test("keeps the results of calls that needed no answer, and never runs those again", async () => {
    const store = memoryStore();
    const { ran, tools } = removing();
    let looked = 0;
    const look = defineTool({ description: "Looks.", input: z.object({}), execute: () => `look ${++looked}` });
    const model = scriptedModel((prompt) => {
      const last = prompt.at(-1)!;
      if (last.role === "tool")
        return JSON.stringify((last.content as unknown as { output: object }[]).map(({ output }) => output));
      return {
        calls: [
          { name: "remove", input: { path: "x" } },
          { name: "look", input: {} },
        ],
      };
    });
    const agent = await anAgent({ model, tools: { ...tools, look }, store });
    const { interactions } = await agent.run("go", parking).result;
    expect(looked).toBe(1);
    const run = await agent.respond(s, interactions![0]!.id, { approved: true });
    expect(JSON.parse(await run!.text())).toEqual([
      { type: "text", value: "removed x" },
      { type: "text", value: "look 1" },
    ]);
    expect({ looked, ran }).toEqual({ looked: 1, ran: ["x"] });
  });

  test("waits as long as it takes; a question with a time of its own does not", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock });
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, store, clock });
    const { interactions } = await agent.run("go", parking).result;
    clock.advance(365 * 24 * 3600 * 1000);
    const run = await agent.respond(s, interactions![0]!.id, { approved: true });
    expect((await run!.result).status).toBe("completed");
    expect(ran).toEqual(["x"]);
  });

  test("on a fork taken from it, its question is no question: the fork's turn is closed", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools });
    const { interactions } = await agent.run("go", parking).result;
    await agent.forkBranch(s, { newBranchId: "fork" });
    expect(await openQuestions(agent, "fork")).toEqual([]);
    await refused(
      agent.respond({ ...s, branchId: "fork" }, interactions![0]!.id, { approved: true }),
      "interaction_not_found",
    );
    expect(await openQuestions(agent)).toHaveLength(1);
    expect(ran).toEqual([]);
  });

  test("goes on with the answer that was given while another call of its batch still ran", async () => {
    const { ran, tools } = removing();
    let finish = () => {};
    const execute = () =>
      new Promise<string>((resolve) => {
        finish = () => resolve("slow");
      });
    const slow = defineTool({ description: "Takes long.", input: z.object({}), execute });
    const calls = [
      { name: "remove", input: { path: "x" } },
      { name: "slow", input: {} },
    ];
    const model = scriptedModel((prompt) => (prompt.at(-1)!.role === "tool" ? "done" : { calls }));
    const agent = await anAgent({ model, tools: { ...tools, slow } });
    const run = agent.run("go", { ...s, questions: "park" });
    const seen = await answering(run, ({ id }) => {
      void agent.respond(s, id, { approved: true }).then(finish);
      return undefined;
    });
    const { status, text } = await run.result;
    expect({ status, text, ran }).toEqual({ status: "completed", text: "done", ran: ["x"] });
    expect(await factsOf(agent, "turn.committed")).toHaveLength(1);
    const ends = seen.map(({ type }) => type).filter((type) => type.startsWith("run-"));
    expect(ends).toEqual(["run-start", "run-end"]);
  });

  test("inside a tool that asks leaves the question open and no result, and the tool gets the answer when it runs again", async () => {
    const store = memoryStore();
    const asks = defineTool({
      description: "Asks.",
      input: z.object({}),
      execute: async (_, context) => `${await context.ask("Who?")} ${await context.ask("Where?")}`,
    });
    const model = scriptedModel((prompt) => {
      const last = prompt.at(-1)!;
      if (last.role !== "tool") return { calls: [{ name: "asks", input: {} }] };
      return JSON.stringify((last.content as unknown as { output: object }[]).map(({ output }) => output));
    });
    const agent = await anAgent({ model, tools: { asks }, store });
    const first = await agent.run("go", parking).result;
    expect(first).toMatchObject({ status: "parked", interactions: [{ request: { question: "Who?" } }] });
    expect(await factsOf(agent, "tool.returned")).toEqual([]);
    const again = await agent.respond(s, first.interactions![0]!.id, { answer: "Ann" }, { questions: "park" });
    const second = await again!.result;
    expect(second).toMatchObject({ status: "parked", interactions: [{ request: { question: "Where?" } }] });
    const last = await agent.respond(s, second.interactions![0]!.id, { answer: "Oslo" });
    expect(JSON.parse(await last!.text())).toEqual([{ type: "text", value: "Ann Oslo" }]);
  });
});
