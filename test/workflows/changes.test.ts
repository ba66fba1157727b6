// Executions whose code changes, that begin again, and that are forked.

import { expect, onTestFinished, test } from "vitest";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { checkLogs } from "../../src/testing/index.ts";
import { createWorkflow, type OnChange, type Workflow, workflow } from "../../src/workflows/index.ts";

const runnerOf = <Input, Output>(flow: Workflow<Input, Output>, store = memoryStore()) => {
  const runner = createWorkflow(flow, { telemetry: false, napMs: 0, store });
  onTestFinished(() => runner.close());
  return runner;
};

const first = workflow("w", async (flow, _input: string) => {
  const a = await flow.step("a", () => "old");
  await flow.ask("go");
  return [flow.version, a, "code 1"];
});

const changed = async (onChange: OnChange, versions: readonly Workflow<string, unknown>[] = []) => {
  const store = memoryStore();
  const before = runnerOf(first, store);
  const { interactions } = await before.run("x", { executionId: "e" }).result;
  const second = workflow("w", { version: 2, onChange, versions }, async (flow, _input: string) => {
    const a = await flow.step("a", () => "new");
    await flow.ask("go");
    return [flow.version, a, "code 2"];
  });
  const runner = runnerOf(second, store);
  const run = await runner.respond(runner.scope("e"), interactions![0]!.id, { approved: true });
  return { runner, store, result: await run!.result };
};

test("an execution of an earlier version goes on with the code of today, which can tell", async () => {
  expect((await changed("continue")).result.output).toEqual([1, "old", "code 2"]);
});

test("or with the code it began with, where that is kept, and fails where it is not", async () => {
  expect((await changed("pin", [first as Workflow<string, unknown>])).result.output).toEqual([1, "old", "code 1"]);
  expect((await changed("pin")).result.error).toMatchObject({ code: "workflow_changed" });
});

test("or fails, or asks a person", async () => {
  expect((await changed("fail")).result.error?.message).toBe(
    'The execution began with version 1 of the workflow "w", and does not go on with version 2.',
  );
  const { runner, result } = await changed("ask");
  expect(result).toMatchObject({ status: "parked", reason: "question" });
  const again = await runner.respond(runner.scope("e"), result.interactions![0]!.id, { approved: true });
  expect((await again!.result).output).toEqual([1, "old", "code 2"]);
});

test("restart closes the turn and begins the next one in one append, with the signals that were not taken", async () => {
  const store = memoryStore();
  let ran = 0;
  const flow = workflow("rounds", async (flow, n: number): Promise<unknown> => {
    await flow.step("work", () => ++ran);
    if (n === 1) await flow.wait("first");
    if (n < 3) return flow.restart(n + 1);
    return { n, last: await flow.wait("later") };
  });
  const runner = runnerOf(flow, store);
  const ref = runner.scope("e");
  expect((await runner.run(1, { executionId: "e" }).result).status).toBe("parked");
  const early = await runner.signal(ref, { name: "later", payload: "kept", id: "s1" });
  expect((await early!.result).status).toBe("parked");
  const run = await runner.signal(ref, { name: "first" });
  expect(await run!.result).toMatchObject({ status: "completed", output: { n: 3, last: "kept" } });
  expect(ran).toBe(3);
  const { turns } = await runner.loadBranch(ref);
  expect(turns.map(({ status, reason }) => [status, reason])).toEqual([
    ["committed", "restart"],
    ["committed", "restart"],
    ["committed", "returned"],
  ]);
  expect(await checkLogs(store)).toEqual([]);
});

test("a fork after a step goes on from there: earlier steps count, later ones run again", async () => {
  const store = memoryStore();
  const ran: string[] = [];
  const flow = workflow("w", async (flow, input: string) => {
    const a = await flow.step("a", () => ran.push("a") && `a of ${input}`);
    const b = await flow.step("b", () => ran.push("b") && `b ${ran.length}`);
    return [a, b];
  });
  const runner = runnerOf(flow, store);
  const ref = runner.scope("e");
  expect((await runner.run("x", { executionId: "e" }).result).output).toEqual(["a of x", "b 2"]);
  const step = (await runner.events(ref)).find((fact) => fact.type === "step.returned" && fact.key === "a");
  const fork = await runner.forkBranch(ref, { fromSeq: step!.seq, newBranchId: "again" });
  const run = runner.run(undefined, { sessionId: fork.sessionId, branchId: fork.id });
  expect(await run.result).toMatchObject({ status: "completed", output: ["a of x", "b 3"] });
  expect(ran).toEqual(["a", "b", "b"]);
  expect(await checkLogs(store)).toEqual([]);
});
