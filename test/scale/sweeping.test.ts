// One look at a store serves all agents and tenants of a process: what is counted are operations of the store.

import { expect, onTestFinished, test } from "vitest";
import { createServer } from "../../src/server/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock, scriptedModel } from "../../src/testing/index.ts";
import { counted, pass } from "../agent/kit.ts";

/** The operations of ten seconds of a server with so many tenants of two agents, in which nothing happens. */
async function idleOperations(tenants: number): Promise<Record<string, number>> {
  const clock = manualClock();
  const counts: Record<string, number> = {};
  const model = scriptedModel(() => "Done.");
  const server = createServer({
    store: counted(memoryStore({ clock }), counts),
    agents: { one: { model }, two: { model } },
    auth: (request) => ({ tenant: request.headers.get("x-tenant") ?? "", scopes: ["read", "write"] }),
    clock,
  });
  onTestFinished(() => server.close());
  for (let i = 0; i < tenants; i++) {
    const headers = { "x-tenant": `t${i}`, "content-type": "application/json" };
    const body = JSON.stringify({ sessionId: "s" });
    const answer = await server.fetch(new Request("http://localhost/sessions", { method: "POST", headers, body }));
    expect(answer.status).toBe(201);
  }
  await pass(clock, 40_000);
  for (const name of Object.keys(counts)) delete counts[name];
  await pass(clock, 30_000);
  return counts;
}

test("an idle server asks its store as often for thirty tenants as for three", async () => {
  const [few, many] = [await idleOperations(3), await idleOperations(30)];
  expect(few.listRuns).toBeGreaterThan(5);
  expect(many.listRuns).toBeLessThanOrEqual(few.listRuns! + 5);
  expect(many.listOpen).toBeLessThanOrEqual(few.listOpen! + 5);
  expect(many.listSessions ?? 0).toBe(few.listSessions ?? 0);
});
