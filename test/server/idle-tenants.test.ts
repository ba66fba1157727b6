// Tenants that nothing is done for are let go of, and come back as if they had stayed. Time is the test's.

import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { createAgent, type Middleware } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { createServer, type ServerOptions } from "../../src/server/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { NamespacedStore, sessionsOf } from "../../src/stores/namespaced/index.ts";
import { type ManualClock, manualClock } from "../../src/testing/index.ts";
import { add, answerOf, gate, quiet, requestOf, scope, until } from "./kit.ts";

const scopes = ["read", "write", "run", "admin"] as const;
/** Longer than the time between two scans for turns that were left. */
const idleTenantMs = 180_000;

function given(options: Partial<ServerOptions> = {}) {
  const clock = manualClock();
  const store = memoryStore({ clock });
  const server = createServer({
    audit: false,
    agents: { helper: { model: scriptedModel(() => "Hello."), logger: quiet } },
    // Whoever names a tenant is of it.
    auth: (request) => ({ tenant: request.headers.get("x-tenant")!, scopes: [...scopes] }),
    limits: { idleTenantMs },
    logger: quiet,
    store,
    clock,
    ...options,
  });
  onTestFinished(() => server.close());
  const ask = async (tenant: string, method: string, path: string, body?: unknown) =>
    answerOf(await server.fetch(requestOf(method, path, body, { "x-tenant": tenant })));
  const say = async (tenant: string, input: string) => {
    const { status } = await ask(tenant, "POST", `${scope}/inputs`, { input });
    expect(status).toBe(202);
    await until(async () => (await ask(tenant, "GET", `${scope}/state`)).body.openTurn === undefined);
  };
  return { clock, store, server, ask, say };
}

/** Lets time pass in steps that nothing which wakes up is late for. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 5_000) {
    clock.advance(5_000);
    for (let i = 0; i < 20; i++) await setImmediate();
  }
}

test("tenants that are idle leave nothing behind that looks or waits", async () => {
  const { clock, ask, say } = given();
  for (let n = 0; n < 20; n++) {
    await ask(`t${n}`, "POST", "/sessions", { sessionId: "s" });
    await say(`t${n}`, "Hi");
  }
  // One looks for claims, whatever the number of tenants, and one for turns that were left behind.
  expect(clock.sleeping).toBe(2);
  await pass(clock, idleTenantMs + 10_000);
  expect(clock.sleeping).toBe(1);
});

test("a tenant that comes back finds what it left, and can go on", async () => {
  const { clock, ask, say } = given();
  await ask("a", "POST", "/sessions", { sessionId: "s" });
  await say("a", "Hi");
  await pass(clock, idleTenantMs + 10_000);
  expect(clock.sleeping).toBe(1);
  expect((await ask("a", "GET", `${scope}/state`)).body.messages).toHaveLength(2);
  await say("a", "Again");
  expect((await ask("a", "GET", `${scope}/state`)).body.messages).toHaveLength(4);
});

test("a tenant stays while it has a run, an input that waits, or a stream", async () => {
  const passage = gate();
  const model = scriptedModel(() => passage.passed.then(() => "Done."));
  const { clock, ask, server } = given({ agents: { helper: { model, logger: quiet } } });
  await ask("a", "POST", "/sessions", { sessionId: "s" });
  await ask("a", "POST", `${scope}/inputs`, { input: "one" });
  await ask("a", "POST", `${scope}/inputs`, { input: "two", ifActive: "queue" });
  await ask("b", "POST", "/sessions", { sessionId: "s" });
  const live = await server.fetch(requestOf("GET", `${scope}/events/live`, undefined, { "x-tenant": "b" }));
  await pass(clock, 3 * idleTenantMs);
  passage.open();
  await until(async () => {
    await pass(clock, 5_000);
    return (await ask("a", "GET", `${scope}/state`)).body.messages.length === 4;
  });
  const reader = live.body!.getReader();
  await ask("b", "POST", `${scope}/inputs`, { input: "seen" });
  let text = "";
  while (!text.includes("turn.committed")) text += new TextDecoder().decode((await reader.read()).value);
  await reader.cancel();
  await pass(clock, idleTenantMs + 10_000);
  expect(clock.sleeping).toBe(1);
});

test("a turn that waits for an answer goes on when its time is over, though its tenant was let go of", async () => {
  const script = [{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "Nobody said anything."];
  const asking: Middleware = {
    name: "asking",
    async beforeToolCall({ ask, call }) {
      const question = { kind: "clarification", callId: call.toolCallId, request: { question: "Shall I?" } } as const;
      await ask({ ...question, expiresInMs: 10 * idleTenantMs });
    },
  };
  const options = { tools: { add }, middleware: [asking] };
  const model = scriptedModel(script);
  const { clock, store, ask } = given({ agents: { helper: { ...options, model, logger: quiet } } });
  await ask("a", "POST", "/sessions", { sessionId: "s" });
  const elsewhere = createAgent({
    ...options,
    id: "helper",
    model,
    clock,
    tenant: "a",
    store: new NamespacedStore(store, sessionsOf("a")),
  });
  const { status } = await elsewhere.run("Add", { sessionId: "s", questions: "park" }).result;
  expect(status).toBe("parked");
  await elsewhere.close();
  // Seen by a scan, then let go of.
  await pass(clock, 2 * idleTenantMs + 10_000);
  expect(clock.sleeping).toBe(1);
  await pass(clock, 9 * idleTenantMs);
  const events = await store.read({ sessionId: "~sessions/a~s", branchId: "main" });
  expect(events.map(({ data }) => JSON.parse(data).type).at(-1)).toBe("turn.committed");
});

test("tool sources that tenants share stay open when one of them is let go of, and close with the server", async () => {
  let closed = 0;
  const source = {
    tools: async () => ({ add }),
    close: async () => {
      closed++;
    },
  };
  const model = scriptedModel(() => "Hello.");
  const { clock, ask, say, server } = given({ agents: { helper: { model, tools: [source], logger: quiet } } });
  await ask("a", "POST", "/sessions", { sessionId: "s" });
  await say("a", "Hi");
  await pass(clock, idleTenantMs + 10_000);
  expect([clock.sleeping, closed]).toEqual([1, 0]);
  await server.close();
  expect(closed).toBe(1);
});
