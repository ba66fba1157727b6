// What every store has to make true of workflows.

import { expect, onTestFinished, test } from "vitest";
import type { Store } from "../../src/index.ts";
import { checkLogs } from "../../src/testing/index.ts";
import { createWorkflow, type Workflow, type WorkflowRunnerOptions, workflow } from "../../src/workflows/index.ts";
import { deadOwner } from "../sessions/kit.ts";
import { dying, helper } from "./kit.ts";

export function flowCases(open: () => Promise<Store>, { every = 1 } = {}): void {
  const runnerOn = <Input, Output>(
    store: Store,
    flow: Workflow<Input, Output>,
    options: WorkflowRunnerOptions = {},
  ) => {
    const runner = createWorkflow(flow, { store, napMs: 0, telemetry: false, ...options });
    onTestFinished(() => runner.close());
    return runner;
  };

  test("an execution that sleeps is woken by another process, and runs no step again", async () => {
    const store = await open();
    const ran: string[] = [];
    const flow = workflow("naps", async (flow, input: string) => {
      const a = await flow.step("a", () => ran.push("a"));
      await flow.sleep("cool-off", 400);
      const b = await flow.step("b", () => ran.push("b"));
      return { input, a, b };
    });
    const one = runnerOn(store, flow);
    const result = await one.run("x", { executionId: "e" }).result;
    expect(result).toMatchObject({ status: "parked", reason: "asleep" });
    expect(result.status === "parked" && result.until).toBeGreaterThan(0);
    const [claim] = await store.listRuns();
    expect(claim).toMatchObject({ owner: "asleep", sessionId: "workflow-naps-e" });
    expect((await store.listOpen({ limit: 10 })).branches).toEqual([]);
    const two = runnerOn(store, flow);
    const done = until(two, "e");
    two.keepRecovering({ everyMs: 20 });
    await done;
    const branch = await two.loadBranch(two.scope("e"));
    expect(branch.messages.at(-1)!.content).toEqual([
      { type: "text", text: JSON.stringify({ input: "x", a: 1, b: 2 }) },
    ]);
    expect(ran).toEqual(["a", "b"]);
    expect(await store.listRuns()).toEqual([]);
    expect(await checkLogs(store)).toEqual([]);
  });

  test("a signal wakes an execution that waits, counts once, and may come before it is waited for", async () => {
    const store = await open();
    const flow = workflow("orders", async (flow, _input: string) => {
      const first = await flow.wait("paid");
      const second = await flow.wait("paid", { timeoutMs: 60_000 });
      const late = await flow.wait("sent", { timeoutMs: 0 }).catch((error) => error.code);
      return [first, second, late];
    });
    const runner = runnerOn(store, flow);
    expect(await runner.run("x", { executionId: "e" }).result).toMatchObject({ status: "parked", reason: "asleep" });
    expect(await store.listRuns()).toEqual([]);
    const ref = runner.scope("e");
    const woken = await runner.signal(ref, { name: "paid", payload: { amount: 1 }, id: "p1" });
    expect(await woken!.result).toMatchObject({ status: "parked", reason: "asleep" });
    expect((await store.listRuns())[0]!.owner).toBe("asleep");
    // The same again, and one with another name: neither is what it waits for.
    const again = await runner.signal(ref, { name: "paid", payload: { amount: 1 }, id: "p1" });
    expect(again === undefined || (await again.result).status === "parked").toBe(true);
    const other = await runner.signal(ref, { name: "other" });
    expect((await other!.result).status).toBe("parked");
    const last = await runner.signal(ref, { name: "paid", payload: { amount: 2 } });
    expect(await last!.result).toMatchObject({ output: [{ amount: 1 }, { amount: 2 }, "no_answer"] });
    await expect(runner.signal(ref, { name: "paid" })).rejects.toMatchObject({ code: "nothing_to_resume" });
    expect(await checkLogs(store)).toEqual([]);
  });

  test("an execution that sleeps can be interrupted and deleted", async () => {
    const store = await open();
    const flow = workflow("long", async (flow, _input: string) => flow.sleep("night", 86_400_000));
    const runner = runnerOn(store, flow);
    for (const executionId of ["a", "b"]) {
      expect((await runner.run("x", { executionId }).result).status).toBe("parked");
    }
    expect(await runner.interrupt(runner.scope("a"))).toMatchObject({ outcome: "accepted" });
    expect((await runner.loadBranch(runner.scope("a"))).turns.at(-1)).toMatchObject({ status: "interrupted" });
    await runner.deleteSession(runner.scope("b").sessionId);
    expect(await store.listRuns()).toEqual([]);
    expect(await checkLogs(store)).toEqual([]);
  });

  test("cut off at any write, it comes to the end that it would have come to, with each recorded step run once", async () => {
    for (let writes = 1; writes < 14; writes += every) {
      const store = await open();
      const ran: string[] = [];
      const { agent, model } = helper("writer", () => ({
        text: "written",
        usage: { inputTokens: 1, outputTokens: 1 },
      }));
      const flow = workflow("mixed", { conversation: "perNode" }, async (flow, list: number[]) => {
        const sums = await flow.map("add", list, (n) => flow.step("one", () => ran.push(`${n}`) && n + 1), {
          key: String,
          parallel: 2,
        });
        const { text } = await flow.agent("write", agent, `Sum ${sums.join("+")}.`);
        const { name, value } = await flow.race("pick", {
          slow: () => flow.wait("never"),
          fast: () => flow.step("fast", () => ran.push("fast") && "fast"),
        });
        return { sums, text, name, value };
      });
      const cut = dying(store, writes);
      const first = createWorkflow(flow, { store: cut.store, owner: deadOwner(), telemetry: false });
      const run = first.run([1, 2, 3], { executionId: "e" });
      run.discardEvents();
      await Promise.race([cut.died, run.result.catch(() => {})]);
      const second = runnerOn(store, flow);
      const result = await goOn(second, "e", [1, 2, 3]);
      expect(result, `after ${writes} writes`).toMatchObject({
        status: "completed",
        output: { sums: [2, 3, 4], text: "written", name: "fast", value: "fast" },
      });
      expect(ran.length).toBeLessThanOrEqual(4 + 3);
      expect(model.calls.length).toBeLessThanOrEqual(2);
      expect(await checkLogs(store)).toEqual([]);
    }
  });
}

/** Resolves when an execution has closed its turn. */
async function until(runner: ReturnType<typeof createWorkflow>, executionId: string): Promise<void> {
  for await (const event of runner.watch(runner.scope(executionId))) {
    if (event.type === "turn.committed" || event.type === "turn.ended") return;
  }
}

/** Takes up what a dead process left, or begins if it left nothing. */
async function goOn<Input>(
  runner: ReturnType<typeof createWorkflow<Input, unknown>>,
  executionId: string,
  input: Input,
) {
  try {
    return await runner.run(undefined, { executionId }).result;
  } catch {
    return runner.run(input, { executionId }).result.catch(async (error) => {
      if (error.code !== "session_exists") throw error;
      const { messages } = await runner.loadBranch(runner.scope(executionId));
      const [{ text }] = messages.at(-1)!.content as unknown as [{ text: string }];
      return { status: "completed", output: JSON.parse(text) };
    });
  }
}
