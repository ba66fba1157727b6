// Event types that a program defines: emitted by tools and hooks, kept or live, and everything they meet on the way: subscribers,
// forks, reverts, a crash, versions, readers without the definition, a server and its clients.

import { describe, expect, expectTypeOf, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createClient } from "../../src/client/index.ts";
import { type BoughEvent, createAgent, defineEvent, defineTool, openSessions } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { clientOf } from "../client/kit.ts";
import { given, quiet, until } from "../server/kit.ts";

const orderPlaced = defineEvent({ type: "order.placed", kept: true, schema: z.object({ total: z.number() }) });
const orderQuote = defineEvent({ type: "order-quote", kept: false, schema: z.object({ price: z.string() }) });

const order = defineTool({
  input: z.object({ total: z.number() }),
  async execute({ total }, context) {
    await context.emit(orderQuote, { price: `${total} EUR` });
    await context.emit(orderPlaced, { total });
    return "ordered";
  },
});
const script = [{ calls: [{ name: "order", input: { total: 12 } }] }, "Done."];

async function ordering(store = memoryStore()) {
  const agent = createAgent({
    model: scriptedModel(script),
    tools: { order },
    events: [orderPlaced, orderQuote],
    store,
    logger: quiet,
  });
  onTestFinished(() => agent.close().catch(() => {}));
  await agent.ensureSession("s");
  return agent;
}

describe("an own event", () => {
  test("is typed in subscribe and in a run, kept before it is shown; a live one is never stored", async () => {
    const agent = await ordering();
    const heard: unknown[] = [];
    agent.subscribe("order.placed", (event) => {
      expectTypeOf(event.data).toEqualTypeOf<{ total: number }>();
      heard.push([event.seq !== undefined, event.data]);
    });
    agent.subscribe("order-quote", ({ data }) => void heard.push(data.price));
    const seen: string[] = [];
    for await (const event of agent.run("Go", "s")) {
      seen.push(event.type);
      if (event.type === "order.placed") expect(event).toMatchObject({ data: { total: 12 }, version: 1 });
      // @ts-expect-error: there is no such event
      if (event.type === "order.lost") expect.fail();
    }
    const placed = seen.indexOf("order.placed");
    expect(seen.indexOf("order-quote")).toBeLessThan(placed);
    expect(placed).toBeLessThan(seen.indexOf("tool.returned"));
    await until(() => heard.length === 2);
    expect(heard).toEqual(["12 EUR", [true, { total: 12 }]]);
    const types = (await agent.events("s")).map(({ type }) => type as string);
    expect(types.filter((type) => type.startsWith("order"))).toEqual(["order.placed"]);
  });

  test("is emitted by hooks, too", async () => {
    const agent = createAgent({
      model: scriptedModel(["Hi."]),
      events: [orderPlaced],
      middleware: [{ name: "shop", afterTurn: (context) => context.emit(orderPlaced, { total: 1 }) }],
    });
    await agent.createSession("s");
    await agent.run("Hello", "s").text();
    const page = await agent.events("s");
    expect(page.filter((fact) => orderPlaced.is(fact))).toMatchObject([{ data: { total: 1 } }]);
    await agent.close();
  });

  test("survives a fork and a revert, and is passed over by who does not know it", async () => {
    const store = memoryStore();
    const agent = await ordering(store);
    await agent.run("Go", "s").text();
    const fork = await agent.branch("s").fork({ newBranchId: "f" });
    expect((await fork.events()).some(orderPlaced.is)).toBe(true);
    await agent.branch("s").undo();
    expect((await agent.events({ sessionId: "s", branchId: "main" })).some(orderPlaced.is)).toBe(true);
    const stranger = await openSessions(store);
    expect((await stranger.loadBranch({ sessionId: "s", branchId: "f" })).messages).toHaveLength(4);
    const raw = (await stranger.events({ sessionId: "s", branchId: "f" })).find(({ type }) =>
      type.startsWith("unknown:"),
    );
    expect(raw).toMatchObject({ type: "unknown:order.placed", payload: { data: { total: 12 } } });
    await stranger.appendTurn({ sessionId: "s", branchId: "f" }, [{ role: "user", content: "On." }]);
    expect((await stranger.loadBranch({ sessionId: "s", branchId: "f" })).messages).toHaveLength(5);
  });

  test("of an older version is upcast when it is read; a newer one stays unknown", async () => {
    const store = memoryStore();
    await (await ordering(store)).run("Go", "s").text();
    const second = defineEvent({
      type: "order.placed",
      version: 2,
      kept: true,
      schema: z.object({ cents: z.number() }),
      upcasts: { 1: (data) => ({ cents: (data as { total: number }).total * 100 }) },
    });
    const newer = createAgent({ model: scriptedModel([]), events: [second], store });
    const [fact] = (await newer.events("s")).filter((each) => second.is(each));
    expect(fact).toMatchObject({ type: "order.placed", version: 2, data: { cents: 1200 } });
    const writer = createAgent({
      model: scriptedModel(["Hi."]),
      events: [second],
      store,
      middleware: [{ name: "shop", afterTurn: (context) => context.emit(second, { cents: 5 }) }],
    });
    await writer.run("Again", "s").text();
    const older = createAgent({ model: scriptedModel([]), events: [orderPlaced], store });
    const types = (await older.events("s")).map(({ type }) => type as string).filter((type) => type.includes("order"));
    expect(types).toEqual(["order.placed", "unknown:order.placed"]);
    expect((await older.loadBranch("s")).messageCount).toBe(6);
  });

  test("is not emitted again by a call that runs again after a crash", async () => {
    const store = memoryStore();
    let runs = 0;
    const twice = (isLast: boolean) =>
      defineTool({
        input: z.object({}),
        async execute(_input, context) {
          runs++;
          await context.emit(orderPlaced, { total: 1 });
          if (!isLast) return new Promise<string>(() => {});
          await context.emit(orderPlaced, { total: 2 });
          return "ordered";
        },
      });
    const asked = [{ calls: [{ name: "order", input: {} }] }];
    const options = { events: [orderPlaced], store, logger: quiet } as const;
    const first = createAgent({ ...options, model: scriptedModel(asked), tools: { order: twice(false) } });
    await first.createSession("s");
    const run = first.run("Go", "s");
    for await (const event of run) if (event.type === "order.placed") break;
    await run.park();
    // The turn is left open with the event in its log and no result, as a crash leaves it.
    const branch = await first.loadBranch("s");
    expect(branch.uncommittedTurn).toBeDefined();
    const second = createAgent({ ...options, model: scriptedModel(["Done."]), tools: { order: twice(true) } });
    const result = await second.run(undefined, "s").result;
    expect(result).toMatchObject({ status: "completed", text: "Done." });
    expect(runs).toBe(2);
    const totals = (await second.events("s"))
      .filter((fact) => orderPlaced.is(fact))
      .map((fact) => (fact as never as { data: { total: number } }).data.total);
    expect(totals).toEqual([1, 2]);
  });
});

describe("what is refused", () => {
  test("names against the law, names of Bough's own, versions without their upcasts", () => {
    const schema = z.object({});
    const define =
      (type: string, kept = true, version = 1) =>
      () =>
        defineEvent({ type, kept, schema, version });
    expect(define("order")).toThrow(/"noun.verbed"/);
    expect(define("order-placed")).toThrow(/"noun.verbed"/);
    expect(define("order.placed", false)).toThrow(/"noun-verb"/);
    expect(define("turn.exploded")).toThrow(/noun of Bough's own/);
    expect(define("message-sing", false)).toThrow(/noun of Bough's own/);
    expect(define("order.placed", true, 2)).toThrow(/needs an upcast from 1/);
    expect(() => createAgent({ model: scriptedModel([]), events: [orderPlaced, orderPlaced] })).toThrow(
      /defined twice/,
    );
  });

  test("data that does not fit, data too large, and events that nobody registered", async () => {
    const errors: string[] = [];
    const attempt = async (work: () => Promise<void>) => {
      await work().catch((error: { code: string }) => errors.push(error.code));
    };
    const noted = defineEvent({ type: "note.taken", kept: true, schema: z.object({ text: z.string() }) });
    const tool = defineTool({
      input: z.object({}),
      async execute(_input, context) {
        await attempt(() => context.emit(orderPlaced, { total: "much" } as never));
        await attempt(() => context.emit(noted, { text: "x".repeat(20_000_000) }));
        await attempt(() => context.emit(orderQuote, { price: "1" }));
        return "tried";
      },
    });
    const agent = createAgent({
      model: scriptedModel([{ calls: [{ name: "tool", input: {} }] }, "Done."]),
      tools: { tool },
      events: [orderPlaced, noted],
    });
    await agent.createSession("s");
    expect(await agent.run("Go", "s").text()).toBe("Done.");
    expect(errors).toEqual(["event_invalid", "limit_exceeded", "event_unknown"]);
    await agent.close();
  });
});

test("a server passes own events on; a client with the definitions shows them under their types", async () => {
  const agent = { tools: { order }, events: [orderPlaced, orderQuote] };
  const g = await given(script, { agent });
  const client = await clientOf(g, { agentId: "helper", events: [orderPlaced, orderQuote] });
  const seen: BoughEvent[] = [];
  for await (const event of client.branch("s").run("Go")) {
    seen.push(event);
    const placed = orderPlaced.read(event);
    if (placed) expectTypeOf(placed.data).toEqualTypeOf<{ total: number }>();
  }
  expect(seen.find(orderPlaced.is)).toMatchObject({ data: { total: 12 }, seq: expect.any(Number) });
  expect(seen.find(orderQuote.is)).toMatchObject({ data: { price: "12 EUR" } });
  expect((await client.branch("s").events()).some(orderPlaced.is)).toBe(true);
  const plain = createClient({ url: g.serving.url, token: g.server.token!, agentId: "helper" });
  const live = plain.branch("s").live();
  onTestFinished(live.subscribe(() => {}));
  await until(() => live.current.status === "idle");
  expect((await plain.branch("s").events()).map(({ type }) => type)).toContain("unknown:order.placed");
});
