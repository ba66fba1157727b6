import { describe, expect, test } from "vitest";
import { z } from "zod";
import { clarification, createAgent, defineTool, type Json, type Middleware } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock, scriptedModel } from "../../src/testing/index.ts";
import { anAgent, answering, factsOf, questions, removesThenTells, removing, s } from "./asking-kit.ts";

const waiting = { ...s, questions: "wait" } as const;

describe("a clarification", () => {
  const book = (asked: string[]) =>
    defineTool({
      description: "Books.",
      input: z.object({}),
      async execute(_, context) {
        const where = await context.ask("Where to?", { choices: ["Rome", "Oslo"] });
        const when = await context.ask("When?");
        asked.push(where, when);
        return `${where} ${when}`;
      },
    });
  const books = scriptedModel((prompt) => {
    const last = prompt.at(-1)!;
    if (last.role !== "tool") return { calls: [{ name: "book", input: {} }] };
    return JSON.stringify((last.content as unknown as { output: Json }[])[0]!.output);
  });

  test("asked by a tool is shown with its choices; the answer is the tool's", async () => {
    const asked: string[] = [];
    const agent = await anAgent({ model: books, tools: { book: book(asked) } });
    const run = agent.run("go", s);
    const shown: unknown[] = [];
    await answering(run, ({ kind, request }) => {
      shown.push([kind, request]);
      return request.question === "When?" ? { answer: { day: 1 } } : { answer: "Rome" };
    });
    expect(shown).toEqual([
      ["clarification", { toolName: "book", question: "Where to?", choices: ["Rome", "Oslo"] }],
      ["clarification", { toolName: "book", question: "When?" }],
    ]);
    expect(asked).toEqual(["Rome", '{"day":1}']);
  });

  test("that was answered is not asked again after a restart; the next one is", async () => {
    const store = memoryStore();
    const asked: string[] = [];
    const agent = await anAgent({ model: books, tools: { book: book(asked) }, store });
    const run = agent.run("go", waiting);
    const [where] = await questions(agent);
    await run.respond(where!.id, { answer: "Oslo" });
    let when = (await questions(agent))[0]!;
    while (when.id === where!.id) when = (await questions(agent))[0]!;
    await run.park();
    const later = createAgent({ model: books, tools: { book: book(asked) }, store });
    const resumed = await later.respond(s, when.id, { answer: "May" });
    expect(await resumed!.text()).toBe(JSON.stringify({ type: "text", value: "Oslo May" }));
    expect(asked).toEqual(["Oslo", "May"]);
    expect(await factsOf(later, "interaction.opened")).toHaveLength(2);
  });

  test("that nobody answers fails the call with words the model can read, and the turn goes on", async () => {
    const agent = await anAgent({ model: books, tools: { book: book([]) } });
    const { text, status } = await agent.run("go", s).result;
    expect(status).toBe("completed");
    expect(JSON.parse(text)).toEqual({ type: "error-text", value: "The question was not answered: Where to?" });
  });

  test("that was answered is not asked again when the call is tried again", async () => {
    let tries = 0;
    const unsteady = defineTool({
      description: "Fails twice.",
      input: z.object({}),
      retry: { attempts: 3, delayMs: 1 },
      async execute(_, context) {
        const answer = await context.ask("Sure?");
        if (++tries < 3) throw new Error("again");
        return answer;
      },
    });
    const calls = [{ name: "unsteady", input: {} }];
    const model = scriptedModel((prompt) => (prompt.at(-1)!.role === "tool" ? "ok" : { calls }));
    const agent = await anAgent({ model, tools: { unsteady } });
    let asked = 0;
    await answering(agent.run("go", s), () => {
      asked++;
      return { answer: "y" };
    });
    expect({ asked, tries }).toEqual({ asked: 1, tries: 3 });
  });

  test("asked by the model with ask_user gets the person's words", async () => {
    const model = scriptedModel((prompt) => {
      const last = prompt.at(-1)!;
      if (last.role === "tool") return JSON.stringify((last.content as unknown as { output: Json }[])[0]!.output);
      return { calls: [{ name: "ask_user", input: { question: "Which file?", choices: ["a", "b"] } }] };
    });
    const agent = await anAgent({ model, middleware: [clarification()] });
    const run = agent.run("go", s);
    const seen = await answering(run, () => ({ answer: "a" }));
    expect(seen.find(({ type }) => type === "interaction.opened")).toMatchObject({
      kind: "clarification",
      request: { question: "Which file?", choices: ["a", "b"] },
    });
    expect(JSON.parse(await run.text())).toEqual({ type: "text", value: "a" });
  });
});

describe("a question of a hook", () => {
  test("asked for every call of a batch at once is one, and all get its answer", async () => {
    const { ran, tools } = removing();
    const answers: unknown[] = [];
    const once: Middleware = {
      name: "once",
      async beforeToolCall(context) {
        answers.push(await context.ask({ kind: "clarification", key: "sure", request: { question: "Sure?" } }));
      },
    };
    const agent = await anAgent({ model: removesThenTells("a", "b"), tools, middleware: [once] });
    await answering(agent.run("go", s), ({ kind }) =>
      kind === "clarification" ? { answer: "yes" } : { approved: true },
    );
    expect(answers).toMatchObject(Array(2).fill({ answered: true, answer: { answer: "yes" } }));
    const opened = await factsOf(agent, "interaction.opened");
    expect(opened.filter((event) => "kind" in event && event.kind === "clarification")).toHaveLength(1);
    expect(ran).toEqual(["a", "b"]);
  });

  test("may have its own time", async () => {
    const clock = manualClock();
    const answers: unknown[] = [];
    const hasty: Middleware = {
      name: "hasty",
      async beforeIteration(context) {
        answers.push(await context.ask({ kind: "clarification", request: { question: "?" }, expiresInMs: 10 }));
      },
    };
    const agent = await anAgent({ model: scriptedModel(["hello"]), middleware: [hasty], clock });
    const run = agent.run("go", waiting);
    const [question] = await questions(agent);
    expect(question!.expiresAt).toBe(question!.openedAt + 10);
    clock.advance(10);
    await run.result;
    expect(answers).toEqual([{ answered: false, reason: "expired" }]);
  });

  test("still waiting when its branch can't be read any more ends with the run, and harms nobody else", async () => {
    const clock = manualClock();
    const store = memoryStore({ clock });
    const { tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, store, clock, limits: { answerMs: 5000 } });
    const run = agent.run("go", waiting);
    await questions(agent);
    await store.close();
    for (let i = 0; i < 6; i++) {
      clock.advance(1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await run.result).toMatchObject({ status: "failed", error: { code: "store_closed" } });
  });
});
