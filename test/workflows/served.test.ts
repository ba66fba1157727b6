// Workflows behind a server: registered beside agents, on the same routes.

import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { createServer, serve } from "../../src/server/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { workflow } from "../../src/workflows/index.ts";

const quiet = { warn: () => {} };

const served = async () => {
  const orders = workflow("orders", async (flow, input: string) => {
    const order = await flow.step("read", () => ({ of: input }));
    const { approved } = await flow.ask("ship", { request: { order: order.of } });
    const paid = await flow.wait("paid");
    await flow.sleep("night", 60_000);
    return { approved, paid };
  });
  const server = createServer({ agents: { orders }, store: memoryStore(), logger: quiet });
  const serving = await serve(server, { port: 0 });
  onTestFinished(() => serving.close());
  const token = server.token === undefined ? {} : { token: server.token };
  const client = createClient({ url: serving.url, agentId: "orders", ...token });
  await client.createSession("case-7");
  return { client, branch: client.branch({ sessionId: "case-7", branchId: "main" }) };
};

/** Resolves when the execution has gone to sleep. */
const parked = (
  branch: Awaited<ReturnType<typeof served>>["branch"],
  fits: (event: { readonly until?: number }) => boolean = () => true,
) =>
  new Promise<void>((resolve) => {
    const subscription = branch.subscribe({
      after: 0,
      onEvent: (event) => {
        if (event.type !== "turn.parked" || !fits(event as { until?: number })) return;
        resolve();
        void subscription.close();
      },
    });
  });

test("a hosted execution is asked, signalled, seen step by step, and interrupted over the agents' routes", async () => {
  const { branch } = await served();
  await branch.submit("a lamp");
  await parked(branch);
  const before = await branch.state();
  expect(before.openTurn!.steps).toMatchObject([{ key: "read", kind: "step", status: "returned" }]);
  expect(before.openTurn!.asleep).toEqual({});
  const [question] = before.interactions;
  expect(question).toMatchObject({ kind: "permission", request: { toolName: "ship", order: "a lamp", step: "ship" } });
  const early = await branch.signal("paid", { amount: 3 }, { id: "p1" });
  expect(early.signalId).toBe("p1");
  const { runId } = await branch.respond(question!.id, { approved: true });
  expect(runId).toBeDefined();
  await parked(branch, ({ until }) => until !== undefined);
  const after = await branch.state();
  expect(after.openTurn!.asleep!.until).toBeGreaterThan(Date.now());
  expect(after.openTurn!.steps!.map(({ key, status }) => [key, status])).toEqual([
    ["read", "returned"],
    ["paid", "returned"],
    ["night", "started"],
  ]);
  expect(await branch.interrupt()).toMatchObject({ status: "accepted" });
  await expect(branch.signal("paid")).rejects.toMatchObject({ code: "nothing_to_resume" });
});

test("another input does not end an execution that sleeps", async () => {
  const { branch } = await served();
  await branch.submit("a lamp");
  await parked(branch);
  await expect(branch.submit("another")).rejects.toMatchObject({ code: "turn_open" });
  expect((await branch.state()).openTurn).toBeDefined();
});
