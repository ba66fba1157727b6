// What the compiler knows of a program's own events, near and far. These tests run, but it is the type check that can fail.

import { describe, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { type BranchHandle, type Client, createClient } from "../../src/client/index.ts";
import { type BoughEvent, createAgent, defineEvent, defineTool, type OwnEventDefinition } from "../../src/index.ts";
import { useBranch } from "../../src/react/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const orderPlaced = defineEvent({ type: "order.placed", kept: true, schema: z.object({ total: z.number() }) });
const orderQuote = defineEvent({ type: "order-quote", kept: false, schema: z.object({ price: z.string() }) });
const url = "http://127.0.0.1:4600";
const events = [orderPlaced, orderQuote] as const;
const client = createClient({ url, agentId: "helper", events: [orderPlaced, orderQuote] });
type Seen = typeof client extends Client<infer Event> ? Event : never;

/** Narrows an event as a program does it. */
function look(event: Seen): void {
  if (event.type === "order.placed") expectTypeOf(event.data).toEqualTypeOf<{ total: number }>();
  if (event.type === "order-quote") expectTypeOf(event.data).toEqualTypeOf<{ price: string }>();
  if (event.type === "text-delta") expectTypeOf(event.text).toEqualTypeOf<string>();
  // @ts-expect-error: nobody registered it
  if (event.type === "order.lost") expectTypeOf(event).toBeNever();
}

describe("a client with events", () => {
  test("types what a branch's watch, runs, subscriptions and pictures give", () => {
    const read = async () => {
      const branch = client.branch("s");
      for await (const event of branch.watch()) {
        expectTypeOf(event).toEqualTypeOf<Seen>();
        look(event);
      }
      for await (const event of branch.run("Go")) look(event);
      branch.subscribe({ onEvent: (event) => expectTypeOf(event).toEqualTypeOf<Seen>() });
      branch.live({ onEvent: (event) => expectTypeOf(event).toEqualTypeOf<Seen>() });
    };
    expectTypeOf(read).toBeFunction();
  });

  test("types the handles that come of its handles", () => {
    const read = async () => {
      const branch = client.branch("s");
      for await (const event of (await branch.fork()).watch()) look(event);
      for await (const event of (await branch.edit("m", "Again")).run) look(event);
      for await (const event of (await branch.checkpoints.fork("c")).watch()) look(event);
      for await (const event of client.session("s").branch().watch()) look(event);
    };
    expectTypeOf(read).toBeFunction();
  });

  test("without any, or with some that the compiler can't name, has Bough's events", () => {
    expectTypeOf(createClient({ url })).toEqualTypeOf<Client<BoughEvent>>();
    const some: readonly (typeof events)[number][] = events;
    expectTypeOf(createClient({ url, events: some })).toEqualTypeOf<typeof client>();
    const unnamed: readonly OwnEventDefinition[] = events;
    expectTypeOf(createClient({ url, events: unnamed })).toEqualTypeOf<Client<BoughEvent>>();
    expectTypeOf(createClient({ url, agentId: "helper" }).branch("s")).toExtend<BranchHandle>();
    // @ts-expect-error: a plain client's events have no such type
    const wrong = (event: BoughEvent) => event.type === "order.placed";
    expectTypeOf(wrong).toBeFunction();
  });
});

describe("useBranch", () => {
  test("types onEvent and the handle by the client", () => {
    const Orders = () => {
      const { handle, fork } = useBranch(client, "s", {
        onEvent: (event) => {
          expectTypeOf(event).toEqualTypeOf<Seen>();
          look(event);
        },
      });
      expectTypeOf(handle.watch).returns.toEqualTypeOf<AsyncGenerator<Seen, void>>();
      expectTypeOf(fork).returns.resolves.toEqualTypeOf<typeof handle>();
      return null;
    };
    expectTypeOf(Orders).toBeFunction();
  });
});

describe("an agent's handle", () => {
  test("has the agent's own events, and tools of any agent", () => {
    const add = defineTool({ input: z.object({ a: z.number() }), execute: ({ a }) => a });
    const agent = createAgent({ model: scriptedModel([]), tools: { add }, events: [orderPlaced, orderQuote] });
    const read = async (branch: BranchHandle<Seen>) => {
      for await (const event of branch.watch()) {
        look(event);
        if (event.type === "tool-start") expectTypeOf(event.toolName).toEqualTypeOf<string>();
      }
    };
    expectTypeOf(read).toBeCallableWith(agent.branch("s"));
    expectTypeOf(read).toBeCallableWith(agent.session("s").branch());
    expectTypeOf(read).toBeCallableWith(client.branch("s"));
    const rename = (branch: BranchHandle<unknown>) => branch.update({ name: "Orders" });
    expectTypeOf(rename).toBeCallableWith(client.branch("s"));
    expectTypeOf(createAgent({ model: scriptedModel([]), tools: { add } }).branch("s")).toEqualTypeOf<BranchHandle>();
  });
});
