// Event types that are registered with a server: every agent that it builds emits them, wherever its options come from.

import { expect, test } from "vitest";
import { z } from "zod";
import { type AgentOptions, defineEvent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { quiet } from "./kit.ts";
import { at, given } from "./resolving-kit.ts";

const orderPlaced = defineEvent({ type: "order.placed", kept: true, schema: z.object({ total: z.number() }) });
const noteTaken = defineEvent({ type: "note.taken", kept: true, schema: z.object({ text: z.string() }) });

const order = defineTool({
  input: z.object({}),
  async execute(_input, context) {
    await context.emit(orderPlaced, { total: 12 });
    return "ordered";
  },
});
const noteAndOrder = defineTool({
  input: z.object({}),
  async execute(_input, context) {
    await context.emit(noteTaken, { text: "Soon." });
    await context.emit(orderPlaced, { total: 12 });
    return "ordered";
  },
});
const model = () =>
  scriptedModel((prompt) => (prompt.at(-1)!.role === "tool" ? "Done." : { calls: [{ name: "order", input: {} }] }));
const shop = (more: Partial<AgentOptions> = {}): AgentOptions => ({
  model: model(),
  tools: { order },
  logger: quiet,
  ...more,
});

/** A server whose agents emit, and the types of the own events that one of them leaves in the log. */
function serving(options: Parameters<typeof given>[0]) {
  const { ask, say } = given({ definitions: { models: { "scripted/a": model() }, tools: { order } }, ...options });
  const emitted = async (agentId: string) => {
    await say(agentId);
    const { body } = await ask("GET", "/sessions/s/branches/main/events");
    return body.events.map(({ type }: { type: string }) => type).filter((type: string) => type.startsWith("unknown:"));
  };
  return { ask, emitted };
}

test.each<[string, Parameters<typeof given>[0]]>([
  ["given as options", { agents: { shop: shop() } }],
  ["that resolveAgent returns", { resolveAgent: () => shop() }],
  ["that a definition stores", {}],
  ["that is the default", { defaultAgent: shop() }],
])("an agent %s emits the server's events", async (_name, options) => {
  const { ask, emitted } = serving({ events: [orderPlaced], ...options });
  if (Object.keys(options!).length === 0) {
    const config = { model: "scripted/a", tools: ["order"] };
    expect((await ask("POST", "/agents", { agentId: "shop", config })).status).toBe(201);
  }
  expect(await emitted("shop")).toEqual(["unknown:order.placed"]);
});

test("an agent has the server's events beside its own, and a definition that both name counts once", async () => {
  const agents = { shop: shop({ tools: { order: noteAndOrder }, events: [noteTaken, orderPlaced] }) };
  const { emitted } = serving({ events: [orderPlaced], agents });
  expect(await emitted("shop")).toEqual(["unknown:note.taken", "unknown:order.placed"]);
});

test("an agent that resolveAgent defines another way is refused, and others work", async () => {
  const other = defineEvent({ type: "order.placed", kept: true, schema: z.object({ sum: z.number() }) });
  const resolveAgent = (id: string) => shop(id === "odd" ? { events: [other] } : {});
  const { ask, emitted } = serving({ events: [orderPlaced], resolveAgent });
  await ask("POST", "/sessions", { sessionId: "s" });
  expect((await ask("POST", `${at("odd")}/inputs`, { input: "Hi" })).body.code).toBe("agent_unavailable");
  expect(await emitted("shop")).toEqual(["unknown:order.placed"]);
});
