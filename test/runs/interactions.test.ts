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

const waiting = { ...s, questions: "wait" } as const;

describe("answering", () => {
  test("works through the run, the agent and the sessions, with who answered", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("a", "b", "c"), tools });
    const run = agent.run("go", waiting);
    const [a, b, c] = await questions(agent, 3);
    await run.respond(a!.id, { approved: true });
    expect(await agent.respond(s, b!.id, { approved: true }, { by: "ann" })).toBeUndefined();
    await agent.answer(s, c!.id, { approved: true }, { by: "bob" });
    expect((await run.result).status).toBe("completed");
    expect(ran.toSorted()).toEqual(["a", "b", "c"]);
    const answers = await factsOf(agent, "interaction.answered");
    expect(answers.map((each) => ("by" in each ? each.by : undefined))).toEqual([undefined, "ann", "bob"]);
    for await (const event of agent.watch(s, { after: answers[0]!.seq - 1 })) {
      expect(event).toMatchObject({ ...answers[0], direction: "up", channel: "interactive" });
      break;
    }
  });

  test("works for a run that stores nothing", async () => {
    const { ran, tools } = removing();
    const agent = createAgent({ model: removesThenTells("x"), tools });
    await answering(agent.run("go"), () => ({ approved: true }));
    expect(ran).toEqual(["x"]);
  });

  test("the second time is refused, and changes nothing", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("a", "b"), tools });
    const run = agent.run("go", waiting);
    const [a, b] = await questions(agent, 2);
    await run.respond(a!.id, { approved: true });
    await refused(run.respond(a!.id, { approved: false }), "interaction_closed", { why: "answered" });
    await run.respond(b!.id, { approved: true });
    await run.result;
    expect(ran.toSorted()).toEqual(["a", "b"]);
    await refused(agent.answer(s, a!.id, { approved: false }), "interaction_closed", { why: "answered" });
  });

  test("of a question that nobody asked, of another branch or of another session is refused", async () => {
    const { tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools });
    await agent.createSession("other");
    await agent.forkBranch(s, { newBranchId: "fork" });
    const run = agent.run("go", { ...waiting, branchId: "main" });
    const [question] = await questions(agent);
    for (const scope of [{ ...s, branchId: "fork" }, { sessionId: "other" }]) {
      await refused(agent.respond(scope, question!.id, { approved: true }), "interaction_not_found");
    }
    await refused(run.respond("nothing", { approved: true }), "interaction_not_found");
    await run.respond(question!.id, { approved: true });
    expect((await run.result).status).toBe("completed");
  });

  test("comes too late after the turn was interrupted, and after it was given up for a new one", async () => {
    const { tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools });
    const run = agent.run("go", waiting);
    const [first] = await questions(agent);
    await run.interrupt();
    await refused(run.respond(first!.id, { approved: true }), "interaction_closed", { why: "turn-closed" });
    await agent.run("go", { ...s, questions: "park" }).result;
    const [second] = await questions(agent);
    expect(second!.id).not.toBe(first!.id);
    await agent.run("something else", s).result;
    await refused(agent.respond(s, second!.id, { approved: true }), "interaction_closed", { why: "turn-closed" });
  });

  test("comes too late for a turn that was interrupted behind one that waits to be saved", async () => {
    const { tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, persistAfterTurn: false });
    await agent.run("go", { ...s, config: { model: scriptedModel(["hello"]) } }).result;
    const run = agent.run("go", s);
    let id = "";
    for await (const event of run) {
      if (event.type !== "interaction.opened") continue;
      id = event.id;
      void run.interrupt();
    }
    await refused(agent.answer(s, id, { approved: true }), "interaction_closed", { why: "turn-closed" });
  });

  test("comes too late once the time is over, whether the log says so yet or not", async () => {
    const clock = manualClock();
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, clock, limits: { answerMs: 1000 } });
    const run = agent.run("go", waiting);
    const [question] = await questions(agent);
    clock.advance(1000);
    await refused(run.respond(question!.id, { approved: true }), "interaction_closed", { why: "expired" });
    await run.result;
    await refused(run.respond(question!.id, { approved: true }), "interaction_closed", { why: "expired" });
    expect(ran).toEqual([]);
  });

  test("with something malformed is refused, and the question is as open as before", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools });
    const run = agent.run("go", waiting);
    const [question] = await questions(agent);
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    const malformed: unknown[] = [
      "yes",
      null,
      undefined,
      1,
      [true],
      new Date(0),
      { at: Number.NaN },
      { f: () => 1 },
      cycle,
    ];
    for (const answer of malformed) {
      const error = await run.respond(question!.id, answer as never).catch((thrown: unknown) => thrown);
      expect(error, String(answer)).toMatchObject({ name: "BoughError" });
      expect(["invalid_argument", "limit_exceeded"]).toContain((error as { code: string }).code);
    }
    await refused(run.respond(question!.id, { text: "x".repeat(9_000_000) }), "limit_exceeded");
    expect(await openQuestions(agent)).toHaveLength(1);
    expect(await factsOf(agent, "interaction.answered")).toEqual([]);
    await run.respond(question!.id, { approved: true });
    await run.result;
    expect(ran).toEqual(["x"]);
  });

  test("by many at once: one succeeds, all others are told that it is closed", async () => {
    const { tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools });
    const run = agent.run("go", waiting);
    const [question] = await questions(agent);
    const tries = Array.from({ length: 20 }, (_, n) => agent.answer(s, question!.id, { approved: n % 2 === 0 }));
    const ends = await Promise.allSettled(tries);
    expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const end of ends) if (end.status === "rejected") expect(end.reason.code).toBe("interaction_closed");
    await run.result;
    expect(await factsOf(agent, "interaction.answered")).toHaveLength(1);
  });
});

describe("another process", () => {
  test("answers, and the run that waits hears of it", async () => {
    const open = await sharedFile();
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, store: await open() });
    const other = createAgent({ model: removesThenTells("x"), tools, store: await open() });
    const run = agent.run("go", waiting);
    const [question] = await questions(other);
    expect(await other.respond(s, question!.id, { approved: true })).toBeUndefined();
    expect((await run.result).status).toBe("completed");
    expect(ran).toEqual(["x"]);
  });

  test("and this one answer at the same time: one of them is told that it is closed", async () => {
    const open = await sharedFile();
    const { tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, store: await open() });
    const other = createAgent({ model: removesThenTells("x"), tools, store: await open() });
    const run = agent.run("go", waiting);
    const [question] = await questions(agent);
    const ends = await Promise.allSettled([
      agent.respond(s, question!.id, { approved: true }),
      other.respond(s, question!.id, { approved: true }),
    ]);
    expect(ends.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(ends.find(({ status }) => status === "rejected")).toMatchObject({ reason: { code: "interaction_closed" } });
    expect((await run.result).status).toBe("completed");
  });
});

describe("questions that wait", () => {
  test("may be many at once, without a warning", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on("warning", note);
    const paths = Array.from({ length: 12 }, (_, i) => `${i}`);
    const { tools } = removing();
    const agent = await anAgent({ model: removesThenTells(...paths), tools });
    const run = agent.run("go", waiting);
    for (const { id } of await questions(agent, 12)) await run.respond(id, { approved: true });
    expect((await run.result).status).toBe("completed");
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", note);
    expect(warnings).toEqual([]);
  });

  test("are closed with the result of a tool whose time was over", async () => {
    const wonder = defineTool({ input: z.object({}), timeoutMs: 20, execute: (_, { ask }) => ask("Which?") });
    const model = scriptedModel([{ calls: [{ name: "wonder", input: {} }] }, "Done."]);
    const agent = await anAgent({ model, tools: { wonder } });
    expect((await agent.run("go", waiting).result).status).toBe("completed");
    const types = (await factsOf(agent)).map(({ type }) => type);
    const asked = ["interaction.opened", "interaction.expired", "tool.returned", "message.added"];
    expect(types.slice(types.indexOf("interaction.opened")).slice(0, 4)).toEqual(asked);
  });
});

describe("a turn handed over while it waits", () => {
  test("keeps the question under its id, and waits on", async () => {
    const store = memoryStore();
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, store });
    const run = agent.run("go", waiting);
    const [question] = await questions(agent);
    await run.park();
    expect(await run.result).toMatchObject({ status: "parked", interactions: [{ id: question!.id }] });
    const later = createAgent({ model: removesThenTells("x"), tools, store });
    const resumed = later.run(undefined, waiting);
    await questions(later);
    await resumed.respond(question!.id, { approved: true });
    expect((await resumed.result).status).toBe("completed");
    expect(ran).toEqual(["x"]);
    expect(await factsOf(later, "interaction.opened")).toHaveLength(1);
  });

  test("and answered while nobody was there goes on with the answer, without asking", async () => {
    const store = memoryStore();
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x", "y"), tools, store });
    const run = agent.run("go", waiting);
    const [x, y] = await questions(agent, 2);
    await run.park();
    await agent.answer(s, x!.id, { approved: true });
    await agent.answer(s, y!.id, { approved: false });
    const later = createAgent({ model: removesThenTells("x", "y"), tools, store });
    expect((await later.run(undefined, s).result).status).toBe("completed");
    expect(ran).toEqual(["x"]);
  });

  test("is listed as waiting until it is answered, and is not resumed before", async () => {
    const store = memoryStore();
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, store });
    await agent.run("go", { ...s, questions: "park" }).result;
    const later = createAgent({ model: removesThenTells("x"), tools, store });
    const [found] = await later.recover();
    expect(found!.run).toBeUndefined();
    expect(found!.waitingFor).toMatchObject([{ kind: "permission" }]);
    await later.answer(s, found!.waitingFor[0]!.id, { approved: true });
    const [ready] = await later.recover();
    expect((await ready!.run!.result).status).toBe("completed");
    expect(ran).toEqual(["x"]);
  });

  test("and taken up by one who does not ask is denied, and the question is closed by that", async () => {
    const store = memoryStore();
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, store });
    await agent.run("go", { ...s, questions: "park" }).result;
    const [question] = await openQuestions(agent);
    expect((await agent.run(undefined, { ...s, questions: "deny" }).result).status).toBe("completed");
    expect(ran).toEqual([]);
    await refused(agent.answer(s, question!.id, { approved: true }), "interaction_closed", { why: "expired" });
  });

  test("whose question is over by then is resumed by recover()", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock });
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, store, clock, limits: { answerMs: 1000 } });
    const run = agent.run("go", waiting);
    await questions(agent);
    await run.park();
    clock.advance(2000);
    const [found] = await agent.recover();
    expect(found!.waitingFor).toEqual([]);
    expect((await found!.run!.result).status).toBe("completed");
    expect(ran).toEqual([]);
  });
});
