import { describe, expect, test } from "vitest";
import { createAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import {
  add,
  adding,
  endless,
  eventsOf,
  expectLegal,
  factTypes,
  gate,
  given,
  main,
  ofType,
  refused,
  s,
  said,
} from "./kit.ts";

describe("what begins a turn", () => {
  test("a text is one user message, written before the model is asked", async () => {
    const seen: string[][] = [];
    const { agent } = await given(async () => {
      seen.push(await factTypes(agent));
      return "Hi.";
    });
    expect(await agent.run("Hello", s).text()).toBe("Hi.");
    expect(seen).toEqual([["turn.started", "message.added"]]);
    expect(said((await agent.loadBranch("s")).messages)).toEqual(["user: Hello", "assistant: Hi."]);
  });

  test("parts are one user message, and the model gets the bytes of its files", async () => {
    const { agent, model } = await given(["A cat."]);
    const text = { type: "text", text: "What is this?" } as const;
    const file = { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } } as const;
    await agent.run([text, file], s).result;
    const sent = { ...file, data: { type: "data", data: new Uint8Array(3) } };
    expect(model.calls[0]!.prompt).toMatchObject([{ role: "user", content: [text, sent] }]);
    const kept = { ...file, data: { type: "url", url: expect.stringMatching(/^bough-content:\/\/sha256\//) } };
    expect((await agent.loadBranch("s")).messages[0]).toMatchObject({ role: "user", content: [text, kept] });
  });

  test("messages of several roles begin one turn, calls and results among them", async () => {
    const { agent, model } = await given(["Four."]);
    const call = { type: "tool-call", toolCallId: "c1", toolName: "add", input: { a: 1, b: 2 } } as const;
    const output = { type: "json", value: 3 };
    await agent.run(
      [
        { role: "system", content: "Count well." },
        { role: "user", content: "1 and 2?", id: "mine" },
        { role: "assistant", content: [call] },
        { role: "tool", content: [{ type: "tool-result", toolCallId: "c1", toolName: "add", output }] },
        { role: "assistant", content: "Three." },
        { role: "user", content: "And one more?" },
      ],
      s,
    ).result;
    expectLegal(model.calls[0]!.prompt);
    expect(said(model.calls[0]!.prompt)).toEqual([
      "system: Count well.",
      "user: 1 and 2?",
      "assistant: add()",
      "tool: 3",
      "assistant: Three.",
      "user: And one more?",
    ]);
    const { messages, turns } = await agent.loadBranch("s");
    expect([messages.length, messages[1]!.id, turns.length]).toEqual([7, "mine", 1]);
  });

  test("a call among the input that has no result gets one before the model sees it", async () => {
    const { agent, model } = await given(["Fine."]);
    const call = { type: "tool-call", toolCallId: "c1", toolName: "add", input: {} } as const;
    await agent.run(
      [
        { role: "user", content: "Go" },
        { role: "assistant", content: [call] },
      ],
      s,
    ).result;
    expectLegal(model.calls[0]!.prompt);
    expectLegal((await agent.loadBranch("s")).messages);
  });

  test.each([
    ["an empty text", ""],
    ["a message without content", [{ role: "user", content: "" } as const]],
    ["a message without parts", [{ role: "user", content: [] } as const]],
    ["a message that is not in a list", { role: "user", content: "Hello" } as never],
    ["a list of texts", ["Hello", "again"] as never],
    ["a message without content among others", [{ role: "user", content: "Hello" }, { role: "user" }] as never],
    ["a list with a hole", [null] as never],
    ["null", null as never],
  ])("%s is refused, and nothing is written", async (_, input) => {
    const { agent, model } = await given(["never"]);
    await refused(agent.run(input, s).result, "invalid_argument");
    expect(await factTypes(agent)).toEqual([]);
    expect(model.calls).toHaveLength(0);
  });

  test("no input with nothing open is refused, from the result and from the iteration", async () => {
    const { agent } = await given(["one"]);
    await refused(agent.run(undefined, s).result, "nothing_to_resume", main);
    await agent.run("Hello", s).result;
    await refused(eventsOf(agent.run(undefined, s)), "nothing_to_resume");
    await refused(agent.run([], s).result, "nothing_to_resume");
  });

  test.each([[undefined], [[]]])("no input (%j) resumes what was left open, and says so", async (input) => {
    const { agent, store } = await given(["Welcome back."]);
    const writer = await agent.beginTurn(main, "Hello");
    await writer.release();
    const events = await eventsOf(agent.run(input, s));
    expect(ofType(events, "run-start")[0]).toMatchObject({ resumed: true, turnId: writer.turnId });
    expect(await factTypes(agent)).toEqual([
      "turn.started",
      "message.added",
      "turn.resumed",
      "message.added",
      "turn.committed",
    ]);
    expect(await store.listRuns()).toEqual([]);
  });

  test("new input on a branch with an open turn closes that one first", async () => {
    const { agent, model } = await given(["Second."]);
    await (await agent.beginTurn(main, "First")).release();
    await agent.run("Next", s).result;
    expect(said(model.calls[0]!.prompt)).toEqual(["user: First", "user: Next"]);
    const { turns } = await agent.loadBranch("s");
    expect(turns.map(({ status, reason }) => [status, reason])).toEqual([
      ["interrupted", "superseded"],
      ["committed", "stop"],
    ]);
  });
});

describe("where a run takes place", () => {
  test("on the branch that is named by ids, or by a loaded branch", async () => {
    const { agent } = await given(["one", "two", "three"]);
    await agent.run("1", s).result;
    const fork = await agent.forkBranch(main, { newBranchId: "b" });
    await agent.run("2", { sessionId: "s", branchId: fork.id }).result;
    const branch = await agent.loadBranch({ sessionId: "s", branchId: "b" });
    const { branchId, sessionId } = await agent.run("3", { branch }).result;
    expect({ branchId, sessionId }).toEqual({ branchId: "b", sessionId: "s" });
    expect(said((await agent.loadBranch({ sessionId: "s", branchId: "b" })).messages)).toEqual([
      "user: 1",
      "assistant: one",
      "user: 2",
      "assistant: two",
      "user: 3",
      "assistant: three",
    ]);
    expect((await agent.loadBranch({ sessionId: "s", branchId: "main" })).messages).toHaveLength(2);
  });

  test.each([
    ["session_not_found", { sessionId: "nobody" }],
    ["session_not_found", { sessionId: "nobody", branchId: "main" }],
    ["branch_not_found", { sessionId: "s", branchId: "nowhere" }],
  ] as const)("%s comes from the result, the iteration and the text alike", async (code, scope) => {
    const { agent } = await given(["never"]);
    await refused(agent.run("Hello", scope).result, code, { sessionId: scope.sessionId });
    await refused(eventsOf(agent.run("Hello", scope)), code);
    await refused(agent.run("Hello", scope).text(), code);
    await refused(agent.run(undefined, scope).result, code);
  });

  test("a session with several branches needs one to be named", async () => {
    const { agent } = await given(["never"]);
    await agent.createBranch("s", { branchId: "b" });
    await refused(agent.run("Hello", s).result, "branch_ambiguous", { branchIds: ["main", "b"] });
  });

  test("a branch without its session is refused", async () => {
    const { agent } = await given(["never"]);
    await refused(agent.run("Hello", { branchId: "main" }).result, "invalid_argument");
    await refused(agent.run("Hello", { branch: "main" as never }).result, "invalid_argument");
  });

  test("a second run on a branch is told which one is active; other branches run at the same time", async () => {
    const inside = gate();
    const { agent, store } = await given(async (prompt) => {
      const text = JSON.stringify(prompt);
      if (text.includes("slow")) await inside.passed;
      return "done";
    });
    await agent.createBranch("s", { branchId: "b" });
    const slow = agent.run("slow", main);
    const started = gate();
    const reading = eventsOf(slow, ({ type }) => type === "turn.started" && started.open());
    await started.passed;
    await refused(agent.run("Hello", main).result, "run_active", { runId: slow.runId, ...main });
    await refused(eventsOf(agent.run(undefined, main)), "run_active", { runId: slow.runId });
    expect(await agent.run("quick", { sessionId: "s", branchId: "b" }).text()).toBe("done");
    inside.open();
    await reading;
    expect(await store.listRuns()).toEqual([]);
    expect(await agent.run("after", main).text()).toBe("done");
  });

  test("many runs on one branch at once: one wins, the others write nothing", async () => {
    const { agent } = await given(() => "ok");
    const runs = Array.from({ length: 8 }, (_, i) => agent.run(`input ${i}`, main).result);
    const ends = await Promise.allSettled(runs);
    const won = ends.filter(({ status }) => status === "fulfilled").length;
    expect(won).toBeGreaterThanOrEqual(1);
    expect((await agent.loadBranch("s")).turns).toHaveLength(won);
  });
});

describe("a run without a scope", () => {
  test("stores nothing anywhere, and answers all the same", async () => {
    const { agent, store, model } = await given([adding(), "Three."], { tools: { add } });
    const run = agent.run("1 and 2?");
    const events = await eventsOf(run);
    const { status, text, messages } = await run.result;
    expect({ status, text }).toEqual({ status: "completed", text: "Three." });
    expect(said(messages)).toEqual(["user: 1 and 2?", "assistant: add()", "tool: 3", "assistant: Three."]);
    expect(ofType(events, "turn.committed")).toHaveLength(1);
    expect(model.calls).toHaveLength(2);
    expect((await store.listSessions()).sessions.map(({ id }) => id)).toEqual(["s"]);
    expect(await factTypes(agent)).toEqual([]);
  });

  test("knows nothing of the run before, and has nothing to resume", async () => {
    const { agent, model } = await given(["one", "two"]);
    await agent.run("1").result;
    await agent.run("2").result;
    expect(said(model.calls[1]!.prompt)).toEqual(["user: 2"]);
    await refused(agent.run().result, "nothing_to_resume");
  });

  test("can be asked a question and be answered", async () => {
    const { agent } = await given([adding(), "Done."], { tools: { add: { ...add, permission: true } } });
    const run = agent.run("Add");
    await eventsOf(run, (event) => event.type === "interaction.opened" && run.respond(event.id, { approved: true }));
    expect(said((await run.result).messages)[2]).toBe("tool: 3");
  });

  test("can't be parked for a question, because nobody could resume it", async () => {
    const { agent, model } = await given([adding(), "Done."], { tools: { add: { ...add, permission: true } } });
    await refused(agent.run("Add", { questions: "park" }).result, "invalid_argument");
    expect(model.calls).toHaveLength(0);
  });

  test("runs beside others of the same agent", async () => {
    const { agent } = await given((prompt) => `you said ${said(prompt).at(-1)}`);
    const texts = await Promise.all(["a", "b", "c"].map((input) => agent.run(input).text()));
    expect(texts).toEqual(["you said user: a", "you said user: b", "you said user: c"]);
  });
});

describe("reading a run", () => {
  test("it goes on whether anybody reads or not, and a reader that leaves does not end it", async () => {
    const { agent } = await given(["one", "two"]);
    expect((await agent.run("1", s).result).status).toBe("completed");
    const run = agent.run("2", s);
    for await (const event of run) if (event.type === "turn.started") break;
    expect((await run.result).text).toBe("two");
  });

  test("it is read once", async () => {
    const { agent } = await given(["one"]);
    const run = agent.run("1", s);
    await eventsOf(run);
    expect(() => run[Symbol.asyncIterator]()).toThrow(/only once/);
  });

  test("a result nobody looks at makes no unhandled rejection", async () => {
    const { agent } = await given(["never"]);
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", note);
    agent.run("Hello", { sessionId: "nobody" });
    await expect(eventsOf(agent.run("Hello", { sessionId: "nobody" }))).rejects.toThrow();
    await new Promise((resolve) => setTimeout(resolve, 5));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });

  test("every event has its address, and the turn's id once there is one", async () => {
    const { agent } = await given([adding(), "Three."], { tools: { add }, id: "a1", name: "Ada" });
    const run = agent.run("1 and 2?", s);
    const events = await eventsOf(run);
    const { turnId } = await run.result;
    for (const event of events) {
      expect(event).toMatchObject({
        ...main,
        runId: run.runId,
        agent: { id: "a1", name: "Ada", chain: ["Ada"], depth: 0 },
      });
      expect(event.turnId, event.type).toBe(turnId);
    }
    expect(new Set(events.map(({ traceId }) => traceId)).size).toBe(1);
  });

  test("the text is there in deltas before it is in the log", async () => {
    const { agent } = await given(["Hello there, friend."]);
    const events = await eventsOf(agent.run("Hi", s));
    const deltas = ofType(events, "text-delta");
    const [, answer] = ofType(events, "message.added");
    expect(deltas.map(({ text }) => text).join("")).toBe("Hello there, friend.");
    expect(new Set(deltas.map(({ messageId }) => messageId))).toEqual(new Set([answer!.id]));
    expect(events.indexOf(deltas.at(-1)!)).toBeLessThan(events.indexOf(answer!));
    expect(events.at(-1)).toMatchObject({ type: "run-end", status: "completed", reason: "stop" });
  });

  test("somebody who subscribes while the model speaks hears the rest", async () => {
    const half = gate();
    const { agent } = await given(["never"]);
    const model = scriptedModel(["abcdefgh"], { chunks: 8, sleep: () => half.passed });
    const run = agent.run("Hi", { ...s, config: { model } });
    const text = run.text();
    await new Promise((resolve) => setImmediate(resolve));
    const heard: string[] = [];
    agent.subscribe("text-delta", (event) => {
      heard.push(event.text);
    });
    half.open();
    await text;
    await new Promise((resolve) => setImmediate(resolve));
    expect(heard.join("")).toBe("abcdefgh");
  });
});

describe("what comes of a run", () => {
  test("the next turn's prompt holds the whole conversation, legally", async () => {
    const { agent, model } = await given([adding(), "Three.", adding(3, 4), "Seven."], { tools: { add } });
    await agent.run("1 and 2?", s).result;
    await agent.run("3 and 4?", s).result;
    for (const { prompt } of model.calls) expectLegal(prompt);
    expect(said(model.calls[3]!.prompt)).toEqual([
      "user: 1 and 2?",
      "assistant: add()",
      "tool: 3",
      "assistant: Three.",
      "user: 3 and 4?",
      "assistant: add()",
      "tool: 7",
    ]);
  });

  test("metadata is kept with the turn", async () => {
    const { agent } = await given(["ok"]);
    await agent.run("Hi", { ...s, metadata: { from: "test" } }).result;
    const [started] = (await agent.events(main)).filter(({ type }) => type === "turn.started");
    expect(started).toMatchObject({ metadata: { from: "test" } });
  });
});

describe("closing an agent", () => {
  test("hands over what runs, so that it can be resumed", async () => {
    const { agent, again } = await given([{ calls: [{ name: "wait", input: {} }] }], { tools: { wait: endless() } });
    const run = agent.run("Go", s);
    await eventsOf(run, (event) => event.type === "tool-start" && void agent.close().catch(() => {}));
    expect(await run.result).toMatchObject({ status: "parked", reason: "handed-over" });
    await refused(run.text(), "aborted");
    const other = again({ script: ["Finished."], tools: { wait: { ...endless(), execute: () => "ok" } } });
    expect(await other.run(undefined, s).text()).toBe("Finished.");
  });
});

test("an agent without a model is refused at once", () => {
  expect(() => createAgent({} as never)).toThrow(/needs a model/);
  expect(() => createAgent({ model: scriptedModel([]), store: 7 as never })).toThrow(/store must be/);
});

test("a hidden branch of the session does not make it ambiguous which branch a run means", async () => {
  const { agent } = await given(["One.", "Two."]);
  await agent.run("Hi", { sessionId: "s" }).result;
  const [turn] = (await agent.loadBranch("s")).turns;
  const owner = { sessionId: "s", branchId: "main", turnId: turn!.id, kind: "subagent" };
  await agent.forkBranch("s", { newBranchId: "child", owner, visibility: "hidden" });
  const { text } = await agent.run("Again", { sessionId: "s" }).result;
  expect(text).toBe("Two.");
  expect((await agent.loadBranch("s")).messages).toHaveLength(4);
  expect((await agent.loadBranch({ sessionId: "s", branchId: "child" })).messages).toHaveLength(2);
});
