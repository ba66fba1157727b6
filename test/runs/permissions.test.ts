import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool, type JsonObject, type Middleware } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { manualClock, scriptedModel } from "../../src/testing/index.ts";
import {
  anAgent,
  answering,
  factsOf,
  outputsIn,
  questions,
  removesThenTells,
  removing,
  s,
  sharedFile,
} from "./asking-kit.ts";

const denied = (reason: string) => ({ type: "execution-denied", reason });

describe("a call that needs permission", () => {
  test("runs with the arguments that were shown, once it is allowed", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools });
    const run = agent.run("go", s);
    const shown: JsonObject[] = [];
    await answering(run, (event) => {
      shown.push(event.request);
      expect(ran).toEqual([]);
      return { approved: true };
    });
    expect(shown).toEqual([{ toolName: "remove", input: { path: "x" }, description: "Removes a file." }]);
    expect(ran).toEqual(["x"]);
    expect(outputsIn(await run.text())).toEqual([{ type: "text", value: "removed x" }]);
  });

  test("that is denied is an ordinary result with the person's words, and the turn goes on", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x", "y"), tools });
    const run = agent.run("go", s);
    await answering(run, ({ request }) =>
      (request.input as { path: string }).path === "x"
        ? { approved: false, reason: "Not that one." }
        : { approved: false },
    );
    expect(ran).toEqual([]);
    expect(outputsIn(await run.text())).toEqual([denied("Not that one."), denied("The user denied this call.")]);
    expect((await run.result).status).toBe("completed");
  });

  test.each([{ approved: "yes" }, { choice: "always" }, {}, { approved: true, choice: "for ever" }])(
    "is not run, and still waits, after the answer %j, which is refused",
    async (answer) => {
      const { ran, tools } = removing();
      const agent = await anAgent({ model: removesThenTells("x"), tools });
      const run = agent.run("go", { ...s, questions: "wait" });
      const [question] = await questions(agent);
      await expect(run.respond(question!.id, answer as never)).rejects.toMatchObject({ code: "invalid_argument" });
      expect(await questions(agent)).toEqual([question]);
      await run.respond(question!.id, { approved: false });
      expect(ran).toEqual([]);
      expect(outputsIn(await run.text())).toMatchObject([{ type: "execution-denied" }]);
    },
  );

  test("is denied when nobody iterates and nobody subscribed, without a question in the log", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools });
    const { text, status } = await agent.run("go", s).result;
    expect(status).toBe("completed");
    expect(outputsIn(text)).toEqual([denied("No one is available to give permission, so the call was not run.")]);
    expect(ran).toEqual([]);
    expect(await factsOf(agent, "interaction.opened")).toEqual([]);
  });

  test("is asked for when somebody subscribed, or the caller says that it is to wait", async () => {
    for (const how of ["subscribe", "wait"] as const) {
      const { ran, tools } = removing();
      const agent = await anAgent({ model: removesThenTells("x"), tools });
      if (how === "subscribe") {
        agent.subscribe("interaction.opened", async ({ id }) => void (await agent.respond(s, id, { approved: true })));
      }
      const run = agent.run("go", { ...s, ...(how === "wait" && { questions: "wait" }) });
      if (how === "wait") await agent.respond(s, (await questions(agent))[0]!.id, { approved: true });
      await run.result;
      expect(ran).toEqual(["x"]);
    }
  });

  test("is denied when nobody answers in time, and the log says so", async () => {
    const clock = manualClock();
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, clock, limits: { answerMs: 60_000 } });
    const run = agent.run("go", { ...s, questions: "wait" });
    const [question] = await questions(agent);
    expect(question!.expiresAt).toBe(question!.openedAt + 60_000);
    clock.advance(59_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(await factsOf(agent, "interaction.expired")).toEqual([]);
    clock.advance(1);
    expect(outputsIn(await run.text())).toEqual([
      denied("The permission question was not answered in time, so the call was not run."),
    ]);
    expect(ran).toEqual([]);
    expect(await factsOf(agent, "interaction.expired")).toMatchObject([{ interactionId: question!.id }]);
  });
});

describe("a batch", () => {
  test.each(["memory", "sqlite"])("is asked once for each call shown, all in one append (%s)", async (kind) => {
    const store = kind === "memory" ? memoryStore() : await (await sharedFile())();
    const appends: string[][] = [];
    const counting = new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        if (name !== "append") return value.bind(target);
        return (...args: Parameters<typeof store.append>) => {
          appends.push(args[1].map(({ data }) => JSON.parse(data).type));
          return target.append(...args);
        };
      },
    });
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("a", "b", "c"), tools, store: counting });
    const run = agent.run("go", s);
    const seen = await answering(run, ({ request }) => ({
      approved: (request.input as { path: string }).path !== "b",
    }));
    const opened = seen.filter((event) => event.type === "interaction.opened");
    expect(opened.map(({ request }) => request.input)).toEqual([{ path: "a" }, { path: "b" }, { path: "c" }]);
    expect(new Set(opened.map(({ id }) => id)).size).toBe(3);
    expect(new Set(opened.map(({ callId }) => callId)).size).toBe(3);
    expect(appends.filter((types) => types.includes("interaction.opened"))).toEqual([
      Array(3).fill("interaction.opened"),
    ]);
    expect(ran).toEqual(["a", "c"]);
    expect(outputsIn(await run.text())).toMatchObject([
      { type: "text" },
      { type: "execution-denied" },
      { type: "text" },
    ]);
  });

  test("may be answered in any order; each answer is for its own call", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("a", "b", "c"), tools });
    const run = agent.run("go", { ...s, questions: "wait" });
    const open = await questions(agent, 3);
    for (const { id, request } of open.toReversed()) {
      await run.respond(id, { approved: (request.input as { path: string }).path !== "a" });
    }
    await run.result;
    expect(ran).toEqual(["c", "b"]);
  });
});

describe("always", () => {
  test.each([true, false])(
    "holds for the tool in all branches of the session, and in no other (%s)",
    async (approved) => {
      const { ran, tools } = removing();
      const agent = await anAgent({ model: removesThenTells("x"), tools });
      await agent.createSession("other");
      await answering(agent.run("go", s), () => ({ approved, choice: "always" }));
      ran.length = 0;
      await agent.forkBranch(s, { newBranchId: "fork" });
      await agent.createBranch("s", { branchId: "fresh" });
      for (const branchId of ["main", "fork", "fresh"]) {
        const asked = await answering(agent.run("again", { ...s, branchId }), () => undefined);
        expect(asked.filter(({ type }) => type === "interaction.opened")).toEqual([]);
      }
      expect(ran).toEqual(approved ? ["x", "x", "x"] : []);
      let asked = 0;
      await answering(agent.run("go", { sessionId: "other" }), () => {
        asked += 1;
        return { approved: false };
      });
      expect(asked).toBe(1);
    },
  );

  test.each([true, false])(
    "holds for calls of the same batch that wait for an answer of their own (%s)",
    async (approved) => {
      const { ran, tools } = removing();
      const other = defineTool({ input: z.object({}), permission: true, execute: () => "other" });
      const model = scriptedModel((prompt) => {
        if (prompt.at(-1)!.role === "tool") return "done";
        const calls = ["a", "b"].map((path) => ({ name: "remove", input: { path } }));
        return { calls: [...calls, { name: "other", input: {} }] };
      });
      const agent = await anAgent({ model, tools: { ...tools, other } });
      const run = agent.run("go", s);
      const asked: string[] = [];
      for await (const event of run) {
        if (event.type === "interaction.opened") asked.push(event.id);
        if (event.type === "interaction.opened" && asked.length === 3) {
          await run.respond(asked[0]!, { approved, choice: "always" });
        }
        // Nobody has said anything about the other tool.
        if (event.type === "interaction.expired") {
          expect(event).toMatchObject({ interactionId: asked[1], reason: "not needed" });
          await run.respond(asked[2]!, { approved: true });
        }
      }
      expect(ran).toEqual(approved ? ["a", "b"] : []);
      const { messages } = await run.result;
      expect(messages[2]!.content).toMatchObject([{}, {}, { output: { value: "other" } }]);
      const late = await agent.respond(s, asked[1]!, { approved: true }).catch((error) => error);
      expect(late.code).toBe("interaction_closed");
    },
  );

  test("does not stand above what a person said about a single call, also after a restart", async () => {
    const { ran, tools } = removing();
    const stuck: string[] = [];
    const wait: Middleware = {
      name: "wait",
      wrapToolCall: async (context, next) => {
        if (context.resumed) return next();
        stuck.push(context.call.toolCallId);
        return new Promise(() => {});
      },
    };
    const durable = { pendingWrites: false };
    const agent = await anAgent({ model: removesThenTells("a", "b"), tools, middleware: [wait], durable });
    const run = agent.run("go", s);
    const asked: string[] = [];
    for await (const event of run) {
      if (event.type === "interaction.opened" && asked.push(event.id) === 2) {
        await run.respond(asked[1]!, { approved: false, reason: "Not b." });
        await run.respond(asked[0]!, { approved: true, choice: "always" });
      }
      if (event.type === "interaction.answered" && event.interactionId === asked[0]) break;
    }
    while (stuck.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await run.park();
    expect(ran).toEqual([]);
    const resumed = agent.run(undefined, s);
    expect(outputsIn(await resumed.text())).toEqual([{ type: "text", value: "removed a" }, denied("Not b.")]);
    expect(ran).toEqual(["a"]);
  });

  test("is known to another process at once, and answers given on two branches at once are both kept", async () => {
    const open = await sharedFile();
    const echo = (name: string) =>
      defineTool({ description: name, input: z.object({}), permission: true, execute: () => name });
    const tools = { one: echo("one"), two: echo("two") };
    const calling = (name: string) =>
      scriptedModel((prompt) => (prompt.at(-1)!.role === "tool" ? "done" : { calls: [{ name, input: {} }] }));
    const first = await anAgent({ model: calling("one"), tools, store: await open() });
    const second = await import("../../src/index.ts").then(async ({ createAgent }) =>
      createAgent({ model: calling("two"), tools, store: await open() }),
    );
    await first.forkBranch(s, { newBranchId: "fork" });
    const runs = [first.run("go", { ...s, branchId: "main" }), second.run("go", { ...s, branchId: "fork" })];
    await Promise.all(runs.map((run) => answering(run, () => ({ approved: true, choice: "always" }))));
    const { state } = await first.getSession("s");
    const { data } = state["@permissions"] as { data: object[] };
    expect(data.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))).toMatchObject([
      { tool: "one", decision: "allow" },
      { tool: "two", decision: "allow" },
    ]);
    const again = await answering(second.run("again", { ...s, branchId: "main" }), () => undefined);
    expect(again.filter(({ type }) => type === "interaction.opened")).toEqual([]);
  });
});

describe("what is shown", () => {
  const elsewhere: Middleware = {
    name: "elsewhere",
    beforeToolCall(context) {
      context.input = { path: `/safe/${(context.input as { path: string }).path}` };
    },
  };

  test("is what a hook made of the input, and that is what runs", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, middleware: [elsewhere] });
    const shown: unknown[] = [];
    await answering(agent.run("go", s), ({ request }) => {
      shown.push(request.input);
      return { approved: true };
    });
    expect(shown).toEqual([{ path: "/safe/x" }]);
    expect(ran).toEqual(["/safe/x"]);
  });

  test("is asked again when a hook makes something else of it after a restart", async () => {
    const store = memoryStore();
    const { ran, tools } = removing();
    let place = "/first/";
    const moving: Middleware = {
      name: "moving",
      beforeToolCall(context) {
        context.input = { path: `${place}${(context.input as { path: string }).path}` };
      },
    };
    const agent = await anAgent({ model: removesThenTells("x"), tools, store, middleware: [moving] });
    const run = agent.run("go", { ...s, questions: "park" });
    await run.result;
    const [first] = await questions(agent);
    await agent.answer(s, first!.id, { approved: true });
    place = "/second/";
    const shown: unknown[] = [];
    await answering(agent.run(undefined, s), ({ request }) => {
      shown.push(request.input);
      return { approved: false };
    });
    expect(first!.request.input).toEqual({ path: "/first/x" });
    expect(shown).toEqual([{ path: "/second/x" }]);
    expect(ran).toEqual([]);
  });

  test("is what runs, also when a hook changes the input in place", async () => {
    const { ran, tools } = removing();
    const careful: Middleware = {
      name: "careful",
      beforeToolCall(context) {
        (context.input as { path: string }).path = "/safe/x";
      },
    };
    const agent = await anAgent({ model: removesThenTells("x"), tools, middleware: [careful] });
    const shown: unknown[] = [];
    await answering(agent.run("go", s), ({ request }) => {
      shown.push((request.input as { path: string }).path);
      return { approved: true };
    });
    expect(ran).toEqual(shown);
    expect(ran).toEqual(["/safe/x"]);
  });
});

describe("rules", () => {
  test("a run's mode allows or denies all without asking, and remembers nothing", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools });
    for (const permissionMode of ["allow", "deny"] as const) {
      const seen = await answering(agent.run("go", { ...s, config: { permissionMode } }), () => undefined);
      expect(seen.filter(({ type }) => type === "interaction.opened")).toEqual([]);
    }
    expect(ran).toEqual(["x"]);
    expect((await agent.getSession("s")).state).toEqual({});
  });

  test("what a person always denied stays denied whatever the model says, and a mode of the run stands above it", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools });
    await answering(agent.run("go", s), () => ({ approved: false, choice: "always" }));
    await agent.run("go", { ...s, config: { permissionMode: "allow" } }).result;
    expect(ran).toEqual(["x"]);
    const run = agent.run("go", s);
    expect(outputsIn(await run.text())).toEqual([denied("The user denied this tool for the whole session.")]);
  });
});
