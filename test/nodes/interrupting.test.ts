// Interrupting from any process: agents on one store that know nothing of each other stand for processes.

import { describe, expect, test } from "vitest";
import { defineTool } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock } from "../../src/testing/index.ts";
import { counted, endless, factTypes, given, main, s, settle, until } from "../agent/kit.ts";
import { deadOwner } from "../sessions/kit.ts";

const waits = (prompt: readonly unknown[]) =>
  prompt.length > 1 ? "Done." : { text: "So far.", calls: [{ name: "wait", input: {} }] };

/** A run that another agent works on, and an agent that is asked to interrupt it. */
async function withRunElsewhere() {
  const begun = { count: 0 };
  const all = await given(waits, { tools: { wait: endless(begun) } });
  const elsewhere = all.again({ owner: "elsewhere/1" });
  const run = elsewhere.run("Go", s);
  await until(() => begun.count === 1);
  return { ...all, elsewhere, run };
}

describe("a run of another process", () => {
  test("stops with the reason when it hears of it, and says so in the log", async () => {
    const { agent, clock, run } = await withRunElsewhere();
    clock.advance(100);
    await settle();
    expect(await agent.interrupt(s, { reason: "enough" })).toEqual({ outcome: "accepted", runId: run.runId });
    expect(await run.result).toMatchObject({ status: "interrupted", reason: "enough" });
    expect((await factTypes(agent)).slice(-2)).toEqual(["interrupt.requested", "turn.ended"]);
  });

  test("hears of it also when it was asked for before the run began to listen", async () => {
    const { agent, clock, run } = await withRunElsewhere();
    await agent.interrupt(s, { runId: run.runId });
    await settle();
    expect(await Promise.race([run.result, "runs"])).toBe("runs");
    clock.advance(100);
    expect(await run.result).toMatchObject({ status: "interrupted", reason: "interrupted" });
  });

  test("goes on when another run was meant", async () => {
    const { agent, clock, run, store } = await withRunElsewhere();
    expect(await agent.interrupt(s, { runId: "another" })).toEqual({
      outcome: "active_run_mismatch",
      runId: run.runId,
    });
    const stray = { type: "interrupt.requested", at: 1, runId: "another" };
    await store.append(main, [{ id: "stray", data: JSON.stringify(stray) }]);
    clock.advance(1000);
    await settle();
    expect(await Promise.race([run.result, "runs"])).toBe("runs");
    await run.interrupt();
  });

  test("that dies before it hears of it is ended by the one that takes it over, which does nothing else", async () => {
    const { agent, again, clock, model } = await given(() => "Done.");
    const { runId } = await again({ owner: "elsewhere/1" }).beginTurn(s, "Go");
    expect(await agent.interrupt(s, { reason: "enough" })).toEqual({ outcome: "accepted", runId });
    expect(await factTypes(agent)).toContain("interrupt.requested");
    clock.advance(30_000);
    const [left] = await agent.recover();
    expect(await left!.run!.result).toMatchObject({ status: "interrupted", reason: "enough" });
    expect(model.calls).toEqual([]);
  });
});

describe("a turn that nobody works on", () => {
  test("is ended: one whose process is dead", async () => {
    const { agent, again } = await given(() => "Done.");
    const { runId } = await again({ owner: deadOwner() }).beginTurn(s, "Go");
    expect(await agent.interrupt(s, { reason: "not any more" })).toEqual({ outcome: "accepted", runId });
    expect((await agent.loadBranch("s")).turns).toMatchObject([{ status: "interrupted", reason: "not any more" }]);
    expect(await agent.recover()).toEqual([]);
  });

  test("is ended: one that waits for an answer", async () => {
    const ask = defineTool({ input: { type: "object" }, permission: true, execute: () => "" });
    const { agent } = await given([{ calls: [{ name: "ask", input: {} }] }], { tools: { ask } });
    const { runId, interactions } = await agent.run("Go", { ...s, questions: "park" }).result;
    expect(await agent.interrupt(s)).toEqual({ outcome: "accepted", runId });
    await expect(agent.answer(s, interactions![0]!.id, { approved: true })).rejects.toMatchObject({
      code: "interaction_closed",
    });
  });
});

describe("asking for an interruption", () => {
  test("stops a run of this process, and waits for its end", async () => {
    const begun = { count: 0 };
    const { agent } = await given(waits, { tools: { wait: endless(begun) } });
    const run = agent.run("Go", s);
    await until(() => begun.count === 1);
    expect(await agent.interrupt(s, { runId: run.runId, reason: "stop" })).toEqual({
      outcome: "accepted",
      runId: run.runId,
    });
    expect(await factTypes(agent)).not.toContain("interrupt.requested");
    expect((await agent.loadBranch("s")).turns).toMatchObject([{ status: "interrupted", reason: "stop" }]);
  });

  test("stops the run of the branch that was meant, not one of another branch", async () => {
    const begun = { count: 0 };
    const { agent } = await given(waits, { tools: { wait: endless(begun) } });
    await agent.createBranch("s", { branchId: "b" });
    const runs = ["main", "b"].map((branchId) => agent.run("Go", { ...s, branchId }));
    await until(() => begun.count === 2);
    expect(await agent.interrupt({ ...s, branchId: "b" })).toMatchObject({ runId: runs[1]!.runId });
    expect(await Promise.race([runs[0]!.result, "runs"])).toBe("runs");
    await runs[0]!.interrupt();
  });

  test("says what there was to interrupt", async () => {
    const { agent } = await given(() => "Done.");
    expect(await agent.interrupt(s)).toEqual({ outcome: "no_active_run" });
    expect(await agent.interrupt(s, { runId: "unknown" })).toEqual({ outcome: "no_active_run" });
    const { runId } = await agent.run("Hi", s).result;
    expect(await agent.interrupt(s, { runId })).toEqual({ outcome: "already_terminal", runId });
    await expect(agent.interrupt({ sessionId: "none" })).rejects.toMatchObject({ code: "session_not_found" });
  });
});

test("a turn that is over soon listens to nobody", async () => {
  const counts: Record<string, number> = {};
  const clock = manualClock();
  const { agent } = await given(() => "Done.", { clock, store: counted(memoryStore({ clock }), counts) });
  await agent.run("Hi", s).result;
  clock.advance(1000);
  await settle();
  expect(counts.watch).toBeUndefined();
});

test("a run that listens reads nothing more for what it writes itself", async () => {
  const counts: Record<string, number> = {};
  const clock = manualClock();
  const script = (prompt: readonly unknown[]) =>
    prompt.length > 7 ? "Done." : { calls: [{ name: "tick", input: {} }] };
  const tick = defineTool({
    input: { type: "object" },
    execute: async () => {
      clock.advance(110);
      await settle();
      return "";
    },
  });
  const store = counted(memoryStore({ clock }), counts);
  const { agent } = await given(script, { clock, store, tools: { tick } });
  expect((await agent.run("Go", s).result).iterations).toBeGreaterThan(3);
  expect(counts.watch).toBeGreaterThan(0);
  expect(counts.append).toBeGreaterThan(8);
  expect(counts.read ?? 0).toBeLessThan(3);
});
