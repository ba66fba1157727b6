// Events of one turn or one run, out of a log that holds many. Meets: parked turns and answers, another process, background
// work, forks and reverts.

import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Agent, createAgent, defineTool, type EventQuery, type Json, type LogFact } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { counted, refused } from "../agent/kit.ts";
import { anAgent, openQuestions, removesThenTells, removing, s } from "./asking-kit.ts";

const typesOf = (events: readonly LogFact[]) => events.map(({ type }) => type);
const seqsOf = (events: readonly LogFact[]) => events.map(({ seq }) => seq);

/** A turn before, a turn that asks and is resumed by another process, and a turn behind. */
async function threeTurns() {
  const store = memoryStore();
  const model = removesThenTells("x");
  const agent = await anAgent({ model, tools: removing().tools, store });
  const before = agent.run("one", { ...s, questions: "deny" });
  await before.result;
  const asking = agent.run("two", { ...s, questions: "park" });
  await asking.result;
  const [question] = await openQuestions(agent);
  await agent.updateBranch({ sessionId: "s", branchId: "main" }, { name: "renamed meanwhile" });
  const elsewhere = createAgent({ model, tools: removing().tools, store });
  const resumed = await elsewhere.respond(s, question!.id, { approved: true });
  await resumed!.result;
  await agent.run("three", { ...s, questions: "deny" }).result;
  const all = await agent.events(s);
  const started = all.filter(({ type }) => type === "turn.started");
  return { agent, store, all, turnId: started[1]!.id, firstId: asking.runId, secondId: resumed!.runId };
}

describe("the events of a turn", () => {
  test("are those between its beginning and its end, the answers to its questions included", async () => {
    const { agent, all, turnId } = await threeTurns();
    const events = await agent.events(s, { turnId });
    const types = typesOf(events);
    expect(types[0]).toBe("turn.started");
    expect(types.at(-1)).toBe("turn.committed");
    for (const type of ["interaction.opened", "interaction.answered", "turn.resumed", "tool.returned"]) {
      expect(types).toContain(type);
    }
    expect(types).not.toContain("branch.updated");
    const between = all.filter(({ seq }) => seq >= events[0]!.seq && seq <= events.at(-1)!.seq);
    expect(seqsOf(events)).toEqual(seqsOf(between.filter(({ type }) => type !== "branch.updated")));
  });

  test("are combined with a range, a type, a limit and the order", async () => {
    const { agent, turnId } = await threeTurns();
    const seqs = async (query: EventQuery) => seqsOf(await agent.events(s, { turnId, ...query }));
    const all = await seqs({});
    expect(await seqs({ after: all[2]! })).toEqual(all.slice(3));
    expect(await seqs({ before: all[5]! })).toEqual(all.slice(0, 5));
    expect(await seqs({ after: all[0]!, before: all.at(-1)!, limit: 2 })).toEqual(all.slice(1, 3));
    expect(await seqs({ limit: 3, reverse: true })).toEqual(all.slice(-3).reverse());
    expect(await seqs({ limit: 0 })).toEqual([]);
    expect(typesOf(await agent.events(s, { turnId, type: "message.added" }))).toEqual([
      "message.added",
      "message.added",
      "message.added",
    ]);
    expect(await seqs({ type: "branch.created" })).toEqual([]);
  });

  test("come with where to go on when the limit cut them off", async () => {
    const { agent, turnId } = await threeTurns();
    const all = seqsOf(await agent.events(s, { turnId }));
    const page = (await agent.events(s, { turnId, limit: 4 })) as LogFact[] & { after?: number };
    expect(page.after).toBe(all[3]);
    const rest = (await agent.events(s, { turnId, after: page.after! })) as LogFact[] & { after?: number };
    expect([...seqsOf(page), ...seqsOf(rest)]).toEqual(all);
    expect(rest.after).toBeUndefined();
  });

  test("include the end of work that goes on behind the turn", async () => {
    let finish: (value: Json) => void = () => {};
    const work = new Promise<Json>((resolve) => {
      finish = resolve;
    });
    const start = defineTool({ input: z.object({}), execute: (_, { background }) => background("index", () => work) });
    const script = [{ calls: [{ name: "start", input: {} }] }, "Started.", "Meanwhile."];
    const agent = await anAgent({ model: scriptedModel(script), tools: { start } });
    const run = agent.run("go", s);
    await run.result;
    await agent.run("and you?", s).result;
    finish("done");
    const { runId } = run;
    while (!typesOf(await agent.events(s, { runId })).includes("task.ended")) await setImmediate();
    const [first] = await agent.events(s, { type: "turn.started" });
    expect(typesOf(await agent.events(s, { turnId: first!.id })).at(-1)).toBe("task.ended");
  });

  test("are found on a fork, and of a turn that was reverted away", async () => {
    const { agent, turnId } = await threeTurns();
    const all = seqsOf(await agent.events(s, { turnId }));
    await agent.forkBranch({ sessionId: "s", branchId: "main" }, { newBranchId: "fork" });
    expect(seqsOf(await agent.events({ sessionId: "s", branchId: "fork" }, { turnId }))).toEqual(all);
    await agent.revertBranch({ sessionId: "s", branchId: "main" }, { toMessageIndex: 1 });
    expect(seqsOf(await agent.events({ sessionId: "s", branchId: "main" }, { turnId }))).toEqual(all);
  });

  test("are read without the turns before and after it", async () => {
    const counts: Record<string, number> = {};
    const store = counted(memoryStore(), counts);
    const agent: Agent = await anAgent({ model: scriptedModel(() => "Yes."), store });
    for (let i = 0; i < 300; i++) await agent.run(`${i}`, s).result;
    const { turns } = await agent.loadBranch({ sessionId: "s", branchId: "main" });
    counts.read = 0;
    for (const { id } of turns.slice(0, 3)) expect(await agent.events(s, { turnId: id })).toHaveLength(4);
    expect(counts.read).toBe(3);
  });
});

describe("the events of a run", () => {
  test("are its part of the turn: from where it began or resumed it", async () => {
    const { agent, turnId, firstId, secondId } = await threeTurns();
    const turn = await agent.events(s, { turnId });
    const first = await agent.events(s, { runId: firstId });
    const second = await agent.events(s, { runId: secondId });
    expect(typesOf(first)[0]).toBe("turn.started");
    expect(typesOf(first)).toContain("interaction.answered");
    expect(typesOf(second)[0]).toBe("turn.resumed");
    expect(typesOf(second).at(-1)).toBe("turn.committed");
    expect(seqsOf([...first, ...second])).toEqual(seqsOf(turn));
    expect(await agent.events(s, { turnId, runId: secondId })).toEqual(second);
    expect(await agent.events(s, { runId: secondId, after: second[1]!.seq })).toEqual(second.slice(2));
  });
});

test("events of a type come from everywhere, either way", async () => {
  const { agent, all } = await threeTurns();
  const started = seqsOf(all.filter(({ type }) => type === "turn.started"));
  const query = { type: "turn.started" };
  expect(seqsOf(await agent.events(s, query))).toEqual(started);
  expect(seqsOf(await agent.events(s, { ...query, limit: 2, reverse: true }))).toEqual(
    started.toReversed().slice(0, 2),
  );
  expect(seqsOf(await agent.events(s, { ...query, after: started[0]!, limit: 1 }))).toEqual([started[1]]);
});

test("a turn, a run or a type that is not there has no events, and no name at all is refused", async () => {
  const { agent } = await threeTurns();
  for (const query of [{ turnId: "none" }, { runId: "none" }, { type: "none" }]) {
    expect(await agent.events(s, query)).toEqual([]);
  }
  for (const wrong of ["", 7, null]) {
    for (const name of ["turnId", "runId", "type"]) {
      await refused(agent.events(s, { [name]: wrong } as EventQuery), "invalid_argument");
    }
  }
});
