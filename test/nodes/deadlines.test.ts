// Parked turns with a deadline: what a sweeper loads of them, with time in the test's hand.

import { expect, test } from "vitest";
import { defineTool } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock } from "../../src/testing/index.ts";
import { counted, given, pass, settle, until } from "../agent/kit.ts";

const ask = defineTool({ input: { type: "object" }, permission: true, execute: () => "allowed" });
const asking = (prompt: readonly unknown[]) => (prompt.length > 1 ? "Done." : { calls: [{ name: "ask", input: {} }] });

test("Sweeper-4: turns that wait with a deadline are not loaded before it, and looked for no more once they are closed", async () => {
  const clock = manualClock();
  const counts: Record<string, number> = {};
  const store = counted(memoryStore({ clock }), counts);
  const { agent, again } = await given(asking, { tools: { ask }, clock, store });
  const scopes = Array.from({ length: 20 }, (_, i) => ({ sessionId: `s${i}` }));
  for (const scope of scopes) {
    await agent.createSession(scope.sessionId);
    await agent.run("Go", { ...scope, questions: "park", config: { limits: { answerMs: 600_000 } } }).result;
  }
  const node = again({ owner: "elsewhere/1" });
  const stop = node.keepRecovering({ scanEveryMs: 10_000 });
  await pass(clock, 60_000);
  expect(node.nextDeadline).toBeLessThan(Number.POSITIVE_INFINITY);
  const looked = { ...counts };
  await pass(clock, 300_000);
  const { listOpen, getBranch = 0, read = 0 } = counts;
  expect(listOpen).toBeGreaterThan(looked.listOpen!);
  expect({ getBranch, read }).toEqual({ getBranch: looked.getBranch ?? 0, read: looked.read ?? 0 });

  const [first, ...others] = scopes;
  const [asked] = (await agent.listInteractions({ ...first! })).interactions;
  await agent.respond(first!, asked!.id, { approved: true });
  await pass(clock, 300_000);
  for (const scope of others) {
    await until(() => clock.sleeping > 0);
    for (let i = 0; i < 100 && (await agent.loadBranch(scope)).uncommittedTurn; i++) await settle();
    expect((await agent.loadBranch(scope)).turns).toMatchObject([{ status: "committed" }]);
  }
  await pass(clock, 20_000);
  expect(node.nextDeadline).toBe(Number.POSITIVE_INFINITY);
  await stop();
});
