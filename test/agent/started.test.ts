import { describe, expect, test } from "vitest";
import { add, adding, eventsOf, factTypes, gate, given, main, refused, s, settle, until } from "./kit.ts";

describe("run.started", () => {
  test("resolves when the turn is in the log and the branch is held, before the model has answered", async () => {
    const answer = gate();
    const script = async () => {
      await answer.passed;
      return { text: "Oak." };
    };
    const { agent, again, store } = await given(script);
    const run = agent.run("Name a tree.", s);
    const { turnId, ...ref } = await run.started;
    expect(ref).toEqual(main);
    expect(await factTypes(again())).toEqual(["turn.started", "message.added"]);
    expect((await again().loadBranch(main)).uncommittedTurn?.id).toBe(turnId);
    expect((await store.listRuns({})).map(({ runId }) => runId)).toEqual([run.runId]);
    answer.open();
    expect((await run.result).turnId).toBe(turnId);
  });

  test("resolves for a turn that is taken up", async () => {
    const { agent, again } = await given([{ text: "Oak." }]);
    const writer = await agent.beginTurn(main, "Name a tree.");
    await writer.release();
    const run = again().run(undefined, s);
    expect(await run.started).toEqual({ ...main, turnId: writer.turnId });
    expect(await run.text()).toBe("Oak.");
  });

  test("rejects with what kept the run from beginning, as its result does", async () => {
    const { agent } = await given([{ text: "Oak." }]);
    const writer = await agent.beginTurn(main, "Name a tree.");
    const run = agent.run("And another.", s);
    await refused(run.started, "run_active", { runId: writer.runId });
    await refused(run.result, "run_active");
    await refused(agent.run("Hello", { sessionId: "nowhere" }).started, "session_not_found");
    await refused(agent.run("Hello", { ...s, signal: AbortSignal.abort() }).started, "aborted");
    await writer.release();
  });

  test("never rejects unhandled: a run whose beginning nobody looks at tells the logger (RunsRun-4)", async () => {
    const warnings: unknown[][] = [];
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", note);
    try {
      const { agent } = await given([], { logger: { warn: (...words: unknown[]) => warnings.push(words) } });
      agent.run("Hello", { sessionId: "nowhere" });
      await until(() => warnings.length === 1);
      const looked = agent.run("Hello", { sessionId: "nowhere" }).started.catch(() => "told");
      expect(await looked).toBe("told");
      await settle();
      expect([warnings.length, unhandled]).toEqual([1, []]);
    } finally {
      process.off("unhandledRejection", note);
    }
  });

  test("does not count as reading the end: a run that fails later still tells the logger", async () => {
    const warnings: unknown[][] = [];
    const logger = { warn: (...words: unknown[]) => warnings.push(words) };
    const { agent } = await given([{ error: new Error("no credit") }], { logger, retry: { attempts: 1 } });
    await agent.run("Hello", s).started;
    await until(() => warnings.length === 1);
  });

  test("can be awaited by somebody who iterates the run as well", async () => {
    const { agent } = await given([{ text: "Oak." }]);
    const run = agent.run("Name a tree.", s);
    await run.started;
    expect((await eventsOf(run)).map(({ type }) => type)).toEqual(expect.arrayContaining(["run-start", "run-end"]));
  });
});

describe("run.textStream", () => {
  async function textsOf(stream: AsyncIterable<string>): Promise<string[]> {
    const texts: string[] = [];
    for await (const text of stream) texts.push(text);
    return texts;
  }

  test("gives the text as the model writes it, of every message of the run", async () => {
    const script = [{ text: "Let me add. ", ...adding() }, { text: "That is three." }];
    const { agent } = await given(script, { tools: { add } });
    const run = agent.run("1 and 2?", s);
    const texts = await textsOf(run.textStream);
    expect(texts.join("")).toBe("Let me add. That is three.");
    expect(texts.length).toBeGreaterThan(2);
    expect((await run.result).text).toBe("That is three.");
  });

  test("gives the answer that a hook gives in the model's place", async () => {
    const cached = {
      name: "cached",
      beforeIteration: (context: { answer(text: string): void }) => context.answer("Oak."),
    };
    const { agent } = await given([], { middleware: [cached] });
    expect(await textsOf(agent.run("Name a tree.", s).textStream)).toEqual(["Oak."]);
  });

  test("is read once, like the run's events", async () => {
    const { agent } = await given([{ text: "Oak." }, { text: "Elm." }]);
    const read = agent.run("Name a tree.", s);
    await textsOf(read.textStream);
    await refused(textsOf(read.textStream), "invalid_argument");
    expect(() => read[Symbol.asyncIterator]()).toThrow("already has a reader");
    const iterated = agent.run("Another.", s);
    await eventsOf(iterated);
    await refused(textsOf(iterated.textStream), "invalid_argument");
  });

  test("throws at its end what text() rejects with", async () => {
    const { agent } = await given([{ error: new Error("no credit") }], { retry: { attempts: 1 } });
    await refused(textsOf(agent.run("Hello", s).textStream), "model_failed");
    await refused(textsOf(agent.run("Hello", { sessionId: "nowhere" }).textStream), "session_not_found");
  });

  test("gives what was written before an interruption, and then throws `aborted`", async () => {
    const { agent } = await given([{ text: "One two three four." }]);
    const run = agent.run("Count.", s);
    const texts: string[] = [];
    const reading = (async () => {
      for await (const text of run.textStream) {
        texts.push(text);
        void run.interrupt();
      }
    })();
    await refused(reading, "aborted");
    expect("One two three four.".startsWith(texts.join(""))).toBe(true);
  });

  test("a reader that leaves does not end the run (RunsRun-1)", async () => {
    const { agent } = await given([{ text: "One two three four." }]);
    const run = agent.run("Count.", s);
    for await (const _ of run.textStream) break;
    expect((await run.result).text).toBe("One two three four.");
  });
});
