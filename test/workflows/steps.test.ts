// Steps of function workflows, on a store in memory: what is recorded, and what a second pass makes of it.

import { expect, test } from "vitest";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { createWorkflow, workflow } from "../../src/workflows/index.ts";

test("runs a function of named steps, and returns what it returns", async () => {
  const greet = workflow("greet", async (flow, name: string) => {
    const text = await flow.step("make", () => `Hello, ${name}`);
    const loud = await flow.step("shout", () => text.toUpperCase());
    return { text, loud };
  });
  const runner = createWorkflow(greet);
  const result = await runner.run("Ada", { executionId: "one" }).result;
  expect(result.error).toBeUndefined();
  expect(result).toMatchObject({ status: "completed", output: { text: "Hello, Ada", loud: "HELLO, ADA" } });
  const facts = await runner.events(runner.scope("one"));
  expect(facts.map(({ type }) => type)).toEqual([
    "branch.created",
    "turn.started",
    "message.added",
    "step.returned",
    "step.returned",
    "message.added",
    "turn.committed",
  ]);
  await runner.close();
});

test("goes on in another process from what is recorded", async () => {
  const store = memoryStore();
  const ran: string[] = [];
  const flow = workflow("two", async (flow, _input: number) => {
    const a = await flow.step("a", () => ran.push("a"));
    const { approved } = await flow.ask("go");
    const b = await flow.step("b", () => ran.push("b"));
    return [a, approved, b];
  });
  const one = createWorkflow(flow, { store });
  const parked = await one.run(5, { executionId: "x" }).result;
  expect(parked.error).toBeUndefined();
  expect(parked).toMatchObject({ status: "parked", reason: "question" });
  expect(parked.interactions).toHaveLength(1);
  const run = await one.respond(one.scope("x"), parked.interactions![0]!.id, { approved: true });
  expect(await run!.result).toMatchObject({ status: "completed", output: [1, true, 2] });
  expect(ran).toEqual(["a", "b"]);
  await one.close();
});
