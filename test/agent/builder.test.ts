import { describe, expect, test } from "vitest";
import { z } from "zod";
import { AgentBuilder, createAgent, defineTool, fullHistory, type Middleware } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock, scriptedModel, seededIds } from "../../src/testing/index.ts";
import { add, adding, eventsOf, ofType, s } from "./kit.ts";

const twice = defineTool({ description: "Doubles.", input: z.object({ a: z.number() }), execute: ({ a }) => a * 2 });

/** Everything an agent does with these options, as far as it can be seen. */
function optionsOf(notes: string[]) {
  const clock = manualClock();
  const middleware = (name: string): Middleware => ({ name, beforeIteration: () => void notes.push(name) });
  return {
    name: "Ada",
    model: scriptedModel([adding(), "Three."]),
    instructions: "Be brief.",
    tools: [{ add }, { twice }],
    store: memoryStore({ clock }),
    persistAfterTurn: false,
    durable: { checkpoints: "per-iteration", retention: fullHistory() } as const,
    middleware: [middleware("first"), middleware("second")],
    common: { clock, ids: seededIds("id") },
  };
}

async function seenOf(agent: ReturnType<typeof createAgent>, { model }: Pick<ReturnType<typeof optionsOf>, "model">) {
  await agent.createSession("s");
  const events = await eventsOf(agent.run("1 and 2?", s));
  return { name: agent.name, events, calls: model.calls.map(({ abortSignal: _signal, ...call }) => call) };
}

describe("a builder", () => {
  test("makes the agent that createAgent makes of the same", async () => {
    const [notes, sameNotes]: [string[], string[]] = [[], []];
    const { common, ...options } = optionsOf(notes);
    const expected = await seenOf(createAgent({ ...options, ...common }), options);
    const same = optionsOf(sameNotes);
    const built = new AgentBuilder(same.common)
      .withName(same.name)
      .withModel(same.model)
      .withInstructions(same.instructions)
      .withTools(...same.tools)
      .withSessionStore(same.store, { persistAfterTurn: same.persistAfterTurn })
      .withDurableExecution(same.durable)
      .withMiddleware(...same.middleware)
      .build();
    expect(await seenOf(built, same)).toEqual(expected);
    expect(sameNotes).toEqual(notes);
    expect(ofType(expected.events, "turn.staged")).toHaveLength(1);
    expect(ofType(expected.events, "checkpoint-save")).toHaveLength(1);
  });

  test("collects tools and middleware, and takes the last word on everything else", async () => {
    const notes: string[] = [];
    const { middleware } = optionsOf(notes);
    const model = scriptedModel(["ok"]);
    const agent = new AgentBuilder()
      .withModel(scriptedModel([]))
      .withModel(model)
      .withTools({ add })
      .withTools({ twice })
      .withMiddleware(middleware[0]!)
      .withMiddleware(middleware[1]!)
      .build();
    await agent.run("Hi").result;
    expect((model.calls[0]!.tools as { name: string }[]).map(({ name }) => name)).toEqual(["add", "twice"]);
    expect(notes).toEqual(["first", "second"]);
  });

  test("is not changed by going on with it", async () => {
    const base = new AgentBuilder().withModel(scriptedModel(["ok"]));
    base.withName("Other").withTools({ add });
    expect(base.build().name).toBeUndefined();
  });

  test("needs a model", () => {
    expect(() => new AgentBuilder().withName("Ada").build()).toThrow(/withModel/);
  });
});
