import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { type BoughEvent, createAgent, defineTool } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { anAgent, answering, removesThenTells, removing, s } from "./asking-kit.ts";

/** Lets deliveries happen. */
async function delivered(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}

const hello = () => scriptedModel(() => "Hello there, friend");

describe("subscribing", () => {
  test("to all gives what iterating gives, in the same order", async () => {
    const { tools } = removing();
    const agent = await anAgent({ model: removesThenTells("a", "b"), tools });
    const heard: BoughEvent[] = [];
    agent.subscribe("*", (event) => void heard.push(event));
    const iterated = await answering(agent.run("go", s), () => ({ approved: true }));
    await delivered();
    expect(heard).toEqual(iterated);
    const seqs = heard.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
    expect(seqs).toEqual(seqs.map((_, i) => seqs[0]! + i));
  });

  test("to one type gives events of that type, with their fields known", async () => {
    const agent = await anAgent({ model: hello() });
    let text = "";
    const seqs: number[] = [];
    agent.subscribe("text-delta", (event) => {
      expectTypeOf(event.text).toEqualTypeOf<string>();
      text += event.text;
    });
    agent.subscribe("turn.committed", (event) => {
      expectTypeOf(event.seq).toEqualTypeOf<number>();
      seqs.push(event.seq);
    });
    await agent.run("hi", s).result;
    await delivered();
    expect(text).toBe("Hello there, friend");
    expect(seqs).toHaveLength(1);
  });

  test("ends when it is ended, also inside the handler", async () => {
    const agent = await anAgent({ model: hello() });
    let heard = 0;
    const leave = agent.subscribe("text-delta", () => {
      heard += 1;
      leave();
    });
    await agent.run("hi", s).result;
    await delivered();
    expect(heard).toBe(1);
  });

  test("with a handler that throws goes on, and tells the logger", async () => {
    const warnings: unknown[][] = [];
    const agent = await anAgent({
      model: hello(),
      logger: { warn: (...words: unknown[]) => void warnings.push(words) },
    });
    let text = "";
    agent.subscribe("text-delta", (event) => {
      text += event.text;
      throw new Error("mine");
    });
    const { status } = await agent.run("hi", s).result;
    await delivered();
    expect(status).toBe("completed");
    expect(text).toBe("Hello there, friend");
    expect(warnings).toHaveLength(4);
    expect(String(warnings[0]![1])).toBe("Error: mine");
  });

  test("with a handler that never ends never holds up a run", async () => {
    const agent = await anAgent({ model: hello() });
    let heard = 0;
    agent.subscribe("*", () => {
      heard += 1;
      return new Promise(() => {});
    });
    for (let i = 0; i < 3; i++) expect((await agent.run("hi", s).result).status).toBe("completed");
    expect(heard).toBe(1);
  });

  test("with a handler that is too slow loses live events only, and it is told how many", async () => {
    const talks = defineTool({
      description: "Talks.",
      input: z.object({}),
      execute(_, context) {
        for (let i = 0; i < 5000; i++) context.emit("n", i);
        return "done";
      },
    });
    const model = scriptedModel((prompt) =>
      prompt.at(-1)!.role === "tool" ? "ok" : { calls: [{ name: "talks", input: {} }] },
    );
    const agent = await anAgent({ model, tools: { talks } });
    const heard: BoughEvent[] = [];
    let goOn = () => {};
    agent.subscribe("*", (event) => {
      heard.push(event);
      if (heard.length === 1) {
        return new Promise<void>((resolve) => {
          goOn = resolve;
        });
      }
    });
    await agent.run("go", s).result;
    goOn();
    await delivered();
    const emitted = heard.filter(({ type }) => type === "custom-emit").length;
    const lost = heard.reduce((sum, event) => sum + (event.type === "events-drop" ? event.count : 0), 0);
    expect(emitted).toBeLessThan(1100);
    expect(lost).toBeGreaterThan(3900);
    const facts = heard.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
    expect(facts).toEqual((await agent.events(s)).map(({ seq }) => seq).filter((seq) => seq > 1));
  });
});

describe("iterating a run", () => {
  test("twice is refused, with the reason", async () => {
    const agent = await anAgent({ model: hello() });
    const run = agent.run("hi", s);
    for await (const _ of run);
    await expect(async () => {
      for await (const _ of run);
    }).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("may be left: the run goes on to its end", async () => {
    const agent = await anAgent({ model: hello() });
    const run = agent.run("hi", s);
    for await (const event of run) if (event.type === "text-delta") break;
    expect(await run.result).toMatchObject({ status: "completed", text: "Hello there, friend" });
    expect((await agent.loadBranch("s")).messages).toHaveLength(2);
  });

  test("is not needed for a result, and gives everything when it comes late", async () => {
    const agent = await anAgent({ model: hello() });
    const run = agent.run("hi", s);
    expect(await run.result).toMatchObject({ text: "Hello there, friend" });
    const types: string[] = [];
    for await (const event of run) types.push(event.type);
    expect(types[0]).toBe("run-start");
    expect(types.at(-1)).toBe("run-end");
    expect(types.filter((type) => type === "text-delta")).toHaveLength(4);
  });

  test("of one that could not begin throws what its result rejects with", async () => {
    const agent = createAgent({ model: hello() });
    const run = agent.run("hi", { sessionId: "nowhere" });
    await expect(async () => {
      for await (const _ of run);
    }).rejects.toMatchObject({ code: "session_not_found" });
    await expect(run.result).rejects.toMatchObject({ code: "session_not_found" });
  });

  test("late, of a very long answer, gives every letter in a bounded number of events", async () => {
    const text = "0123456789".repeat(2000);
    const agent = await anAgent({ model: scriptedModel([text], { chunks: 20_000 }) });
    const run = agent.run("hi", s);
    await run.result;
    let events = 0;
    let read = "";
    for await (const event of run) {
      events += 1;
      if (event.type === "text-delta") read += event.text;
    }
    expect(events).toBeLessThan(1100);
    expect(read === text).toBe(true);
  });
});

describe("every event", () => {
  const twoSteps = scriptedModel((prompt) =>
    prompt.at(-1)!.role === "tool" ? "done" : { text: "So.", calls: [{ name: "remove", input: { path: "x" } }] },
  );

  test("has a version, a channel, a direction, an address, and the turn's trace; kept ones have a position", async () => {
    const { tools } = removing();
    const agent = await anAgent({ id: "helper", model: twoSteps, tools });
    const run = agent.run("go", s);
    const events = await answering(run, () => ({ approved: true }));
    const { turnId } = await run.result;
    for (const event of events) {
      expect(event, event.type).toMatchObject({ version: 1, sessionId: "s", branchId: "main", runId: run.runId });
      expect(event.at, event.type).toBeGreaterThan(0);
      expect(["default", "streaming", "interactive", "control"]).toContain(event.channel);
      expect(event.direction).toBe(event.type === "interaction.answered" ? "up" : "down");
      expect(event.agent).toEqual({ id: "helper", chain: ["helper"], depth: 0 });
      expect(event.traceId).toMatch(/^[0-9a-f]{32}$/);
      expect(event.spanId).toMatch(/^[0-9a-f]{16}$/);
      expect(event.seq !== undefined, event.type).toBe(event.type.includes("."));
      if ("turnId" in event) expect(event.turnId).toBe(turnId);
    }
    expect(new Set(events.map(({ traceId }) => traceId)).size).toBe(1);
    const withoutTurn = events.filter((event) => event.turnId === undefined).map(({ type }) => type);
    expect(withoutTurn).toEqual([]);
  });

  test("stands in the tree of spans: iterations below the turn, tools below their iteration", async () => {
    const { tools } = removing();
    const agent = await anAgent({ model: twoSteps, tools });
    const events = await answering(agent.run("go", s), () => ({ approved: true }));
    const of = (type: string) => events.filter((event) => event.type === type);
    const [root] = of("run-start");
    expect(root).not.toHaveProperty("parentSpanId");
    for (const event of [...of("run-end"), ...of("turn.started"), ...of("turn.committed")]) {
      expect(event.spanId).toBe(root!.spanId);
    }
    const iterations = of("iteration-start");
    expect(iterations).toHaveLength(2);
    for (const [i, { spanId, parentSpanId }] of iterations.entries()) {
      expect(parentSpanId).toBe(root!.spanId);
      expect(of("iteration-end")[i]!.spanId).toBe(spanId);
    }
    expect(of("tool-start")).toMatchObject([{ parentSpanId: iterations[0]!.spanId }]);
    const texts = of("text-delta").map(({ spanId }) => spanId);
    expect(new Set(texts)).toEqual(new Set(iterations.map(({ spanId }) => spanId)));
    const spans = [root, ...iterations, ...of("tool-start")].map((event) => event!.spanId);
    expect(new Set(spans).size).toBe(4);
  });

  test("of a turn that another agent took up has the same trace, and a span of its own", async () => {
    const store = memoryStore();
    const { tools } = removing();
    const agent = await anAgent({ model: twoSteps, tools, store });
    const first: BoughEvent[] = [];
    const run = agent.run("go", { ...s, questions: "park" });
    for await (const event of run) first.push(event);
    const { interactions } = await run.result;
    const later = createAgent({ model: twoSteps, tools, store });
    const resumed = await later.respond(s, interactions![0]!.id, { approved: true });
    const second: BoughEvent[] = [];
    for await (const event of resumed!) second.push(event);
    expect(new Set([...first, ...second].map(({ traceId }) => traceId)).size).toBe(1);
    const spans = new Set(first.map(({ spanId }) => spanId));
    expect(second.filter(({ spanId }) => spans.has(spanId))).toEqual([]);
    expect(second[0]).toMatchObject({ type: "run-start", resumed: true });
  });
});
