// Inputs that are queued, and inputs that steer: which turn takes them, whatever the turn before them does.

import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { textOf } from "../../src/events/index.ts";
import { type Agent, type AgentOptions, createAgent, defineTool, type Store } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { checkLogs, scriptedModel } from "../../src/testing/index.ts";
import { refused, textsOf } from "../sessions/kit.ts";
import { factsOf, s, sharedFile } from "./asking-kit.ts";

/** Answers to the last user message of the prompt; `before` is called with that message's text first. */
function echo(before: (said: string, call: number) => unknown = () => {}) {
  return scriptedModel(async (prompt, call) => {
    const said = saidIn(prompt);
    const reply = await before(said, call);
    return (reply as string | undefined) ?? `re: ${said}`;
  });
}

function saidIn(prompt: readonly { role: string; content: unknown }[]): string {
  const last = prompt.findLast(({ role }) => role === "user")!;
  return textOf(last as Parameters<typeof textOf>[0]);
}

async function anAgent(options: Partial<AgentOptions> & { store?: Store } = {}) {
  const store = options.store ?? memoryStore();
  const agent = createAgent({ model: echo(), ...options, store });
  onTestFinished(async () => {
    const problems = await checkLogs(store).catch((error) => (error.code === "store_closed" ? [] : [error]));
    expect(problems).toEqual([]);
    await agent.close();
  });
  await agent.ensureSession("s");
  return agent;
}

type TestAgent = Awaited<ReturnType<typeof anAgent>>;

/** Resolves when the branch has that many closed turns and nothing waits or is open. */
async function settled(agent: TestAgent, turns: number): Promise<string[][]> {
  for await (const _ of agent.watch(s)) {
    const branch = await agent.loadBranch(s);
    const closed = branch.turns.length + branch.stagedTurns.length;
    if (closed < turns || branch.uncommittedTurn || branch.queue.length > 0) continue;
    const all = [...branch.messages, ...branch.stagedTurns.flatMap(({ messages }) => messages)];
    const ids = [...branch.turns, ...branch.stagedTurns].map(({ id }) => id);
    return ids.map((id) => textsOf(all.filter(({ turnId }) => turnId === id)));
  }
  throw new Error("The log ended.");
}

/** A gate that a script or a tool waits at. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let arrive = () => {};
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const pass = () => {
    arrive();
    return opened;
  };
  return { pass, open, arrived };
}

const look = (pass: () => Promise<void>) =>
  defineTool({
    description: "Looks.",
    input: z.object({}),
    execute: async () => {
      await pass();
      return "seen";
    },
  });
const looking = { calls: [{ name: "look", input: {} }] };

describe("an input that is queued", () => {
  test("begins a turn of its own when the one before it is closed, in the order in which they came", async () => {
    const first = gate();
    const agent = await anAgent({ model: echo((said) => (said === "one" ? first.pass() : undefined)) });
    const run = agent.run("one", s);
    await first.arrived;
    const answers = [];
    for (const input of ["two", "three"]) answers.push(await agent.submit(input, { ...s, ifActive: "queue" }));
    expect(answers.map(({ status }) => status)).toEqual(["queued", "queued"]);
    expect((await agent.listQueue(s)).map(({ id }) => id)).toEqual(answers.map(({ inputId }) => inputId));
    first.open();
    expect(await run.text()).toBe("re: one");
    expect(await settled(agent, 3)).toEqual([
      ["one", "re: one"],
      ["two", "re: two"],
      ["three", "re: three"],
    ]);
    const { messages } = await agent.loadBranch(s);
    expect(messages[2]).toMatchObject({ inputId: answers[0]!.inputId, id: `${answers[0]!.inputId}.1` });
  });

  test("starts at once on a branch that is free, under its id, and costs no more than a run", async () => {
    const store = memoryStore();
    let appends = 0;
    const append = store.append.bind(store);
    store.append = (...args) => {
      appends++;
      return append(...args);
    };
    const agent = await anAgent({ store });
    const { status, run, inputId } = await agent.submit("hi", { ...s, ifActive: "queue", inputId: "in1" });
    expect({ status, inputId }).toEqual({ status: "started", inputId: "in1" });
    await run!.result;
    expect((await agent.loadBranch(s)).messages[0]!.id).toBe("in1");
    expect(appends).toBe(2);
    appends = 0;
    const sessions = await agent.queueInput(s, "later", { agentId: "another" });
    expect(sessions.isNew).toBe(true);
    expect(appends).toBe(1);
    // Behind what waits, though nothing runs.
    expect(await agent.submit("behind", { ...s, ifActive: "queue" })).toMatchObject({ status: "queued" });
    // But not one that does not queue.
    await agent.run("now", s).result;
    expect((await agent.listQueue(s)).map(({ agentId }) => agentId)).toEqual(["another", undefined]);
  });

  test("is asked as it was sent: config, context, identity, output, metadata", async () => {
    const first = gate();
    const seen: unknown[] = [];
    const model = scriptedModel(async (prompt) => {
      if (saidIn(prompt) === "one") await first.pass();
      return saidIn(prompt) === "two" ? '{"sum":3}' : "fine";
    });
    const agent = await anAgent({
      model,
      context: z.object({ team: z.string() }).optional() as never,
      middleware: [
        {
          name: "see",
          beforeTurn: ({ context, identity, by, metadata }) => void seen.push({ context, identity, by, metadata }),
        },
      ],
    });
    const run = agent.run("one", s);
    await first.arrived;
    const identity = { user: "ann", scopes: ["a"] };
    const asked = { config: { temperature: 0.5 }, context: { team: "x" }, identity, metadata: { m: 1 } };
    const output = { schema: z.object({ sum: z.number() }) };
    await agent.submit("two", { ...s, ...asked, output, ifActive: "queue" });
    first.open();
    await run.result;
    await settled(agent, 2);
    expect(seen[1]).toEqual({ context: { team: "x" }, identity, by: "ann", metadata: { m: 1 } });
    expect(model.calls[1]).toMatchObject({ temperature: 0.5, responseFormat: { type: "json" } });
    const [, started] = await factsOf(agent, "turn.started");
    expect(started).toMatchObject({ by: "ann", metadata: { m: 1 }, request: { config: { temperature: 0.5 } } });
  });

  test("that the log can't keep is refused, and one that no turn can begin with is withdrawn", async () => {
    const first = gate();
    const warnings: unknown[] = [];
    const agent = await anAgent({
      model: echo((said) => (said === "one" ? first.pass() : undefined)),
      context: z.object({ team: z.string() }).optional() as never,
      logger: { warn: (...words: unknown[]) => void warnings.push(words) },
    });
    const run = agent.run("one", s);
    await first.arrived;
    const config = { middleware: [{ name: "mine" }] };
    const queue = { ...s, ifActive: "queue" } as const;
    await refused(agent.submit("two", { ...queue, config }), "request_incomplete", {
      missing: ["config.middleware.mine"],
    });
    await refused(agent.submit("two", { ...queue, context: { team: 1 } as never }), "invalid_argument");
    await agent.queueInput(s, "bad", { inputId: "bad", request: { context: { team: 1 } } });
    await agent.submit("good", queue);
    first.open();
    await run.result;
    expect((await settled(agent, 2))[1]).toEqual(["good", "re: good"]);
    expect(await factsOf(agent, "input.withdrawn")).toMatchObject([{ inputId: "bad", reason: "invalid_argument" }]);
    expect(warnings).toHaveLength(1);
  });

  test.each(["interrupted", "failed"] as const)("begins after a turn that is %s", async (how) => {
    const first = gate();
    const agent = await anAgent({
      model: echo(async (said) => {
        if (said !== "one") return;
        await first.pass();
        if (how === "failed") throw new Error("broken");
      }),
      retry: { attempts: 1 },
    });
    const run = agent.run("one", s);
    await first.arrived;
    await agent.submit("two", { ...s, ifActive: "queue" });
    if (how === "interrupted") await agent.interrupt(s);
    first.open();
    expect(await run.result).toMatchObject({ status: how });
    expect((await settled(agent, 2))[1]).toEqual(["two", "re: two"]);
  });

  test("waits for a turn that waits for an answer, and begins when that turn is closed or ended", async () => {
    const ask = defineTool({
      description: "Asks.",
      input: z.object({}),
      execute: (_, context) => context.ask("Go on?"),
    });
    const model = scriptedModel((prompt) => {
      if (prompt.at(-1)!.role === "tool") return "asked";
      return saidIn(prompt) === "ask" ? { calls: [{ name: "ask", input: {} }] } : `re: ${saidIn(prompt)}`;
    });
    const agent = await anAgent({ model, tools: { ask } });
    const { interactions } = await agent.run("ask", { ...s, questions: "park" }).result;
    await agent.submit("next", { ...s, ifActive: "queue", inputId: "next" });
    await agent.submit("steer", { ...s, ifActive: "steer", inputId: "steer" });
    expect((await agent.listQueue(s)).map(({ id }) => id)).toEqual(["next", "steer"]);
    const resumed = await agent.respond(s, interactions![0]!.id, { answer: "yes" });
    await resumed!.result;
    const turns = await settled(agent, 2);
    expect(turns[0]!.slice(-2)).toEqual(["steer", "re: steer"]);
    expect(turns[1]).toEqual(["next", "re: next"]);
    // Ended instead of answered.
    await agent.run("ask", { ...s, questions: "park" }).result;
    await agent.submit("last", { ...s, ifActive: "queue" });
    await agent.interrupt(s);
    expect((await settled(agent, 4))[3]).toEqual(["last", "re: last"]);
  });

  test("is taken after a restart: by recover, by an agent that keeps recovering, and once by several", async () => {
    const open = await sharedFile();
    const agent = await anAgent({ store: await open() });
    for (const inputId of ["a", "b", "c"]) await agent.queueInput(s, inputId, { inputId, agentId: "other" });
    await agent.close();
    const others: Agent[] = [];
    for (let n = 0; n < 3; n++) others.push(createAgent({ id: "other", model: echo(), store: await open() }));
    onTestFinished(async () => void (await Promise.all(others.map((each) => each.close()))));
    others[0]!.keepRecovering({ everyMs: 5, scanEveryMs: 5 });
    await others[1]!.recover();
    others[2]!.keepRecovering({ everyMs: 5, scanEveryMs: 5 });
    expect(await settled(others[0] as never, 3)).toEqual(["a", "b", "c"].map((said) => [said, `re: ${said}`]));
  });

  test("begins no turn before those that wait when it interrupts, but they follow", async () => {
    const first = gate();
    const agent = await anAgent({ model: echo((said) => (said === "one" ? first.pass() : undefined)) });
    const run = agent.run("one", s);
    await first.arrived;
    await agent.submit("two", { ...s, ifActive: "queue" });
    const { status, runId } = await agent.submit("now", { ...s, ifActive: "interrupt" });
    first.open();
    expect(status).toBe("started");
    expect(await run.result).toMatchObject({ status: "interrupted" });
    expect((await factsOf(agent, "turn.started"))[1]).toMatchObject({ runId });
    expect((await settled(agent, 3)).map(([said]) => said)).toEqual(["one", "now", "two"]);
  });

  test("waits for its agent when another agent's is before it", async () => {
    const open = await sharedFile();
    const [a, b] = [
      await anAgent({ id: "a", store: await open() }),
      createAgent({ id: "b", model: echo(), store: await open() }),
    ];
    onTestFinished(() => b.close());
    await a.queueInput(s, "for b", { agentId: "b" });
    await a.queueInput(s, "for a");
    expect((await a.listQueue(s)).map(({ agentId }) => agentId)).toEqual(["b", "a"]);
    await b.recover();
    expect(await settled(a, 2)).toEqual([
      ["for b", "re: for b"],
      ["for a", "re: for a"],
    ]);
  });

  test("is taken behind turns that wait to be saved", async () => {
    const first = gate();
    const agent = await anAgent({
      persistAfterTurn: false,
      model: echo((said) => (said === "one" ? first.pass() : undefined)),
    });
    const run = agent.run("one", s);
    await first.arrived;
    await agent.submit("two", { ...s, ifActive: "queue" });
    first.open();
    await run.result;
    expect((await settled(agent, 2)).map(([said]) => said)).toEqual(["one", "two"]);
    const { session, branch } = await agent.loadSessionAndBranch(s);
    expect((await agent.saveSessionAndBranch(session, branch)).savedTurns).toHaveLength(2);
  });
});

describe("an input that steers", () => {
  test("joins the turn behind the results of its tools, and the next model call sees it", async () => {
    const tool = gate();
    const model = scriptedModel((prompt, call) => (call === 0 ? looking : `re: ${saidIn(prompt)}`));
    const agent = await anAgent({ model, tools: { look: look(tool.pass) } });
    const run = agent.run("go", s);
    await tool.arrived;
    const { status, inputId } = await agent.submit("left", { ...s, ifActive: "steer" });
    expect(status).toBe("queued");
    tool.open();
    const { messages, iterations } = await run.result;
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user", "assistant"]);
    expect(messages[3]).toMatchObject({ source: "steer", inputId });
    expect(textOf(messages.at(-1)!)).toBe("re: left");
    expect(iterations).toBe(2);
    expect(model.calls[1]!.prompt.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
    expect(await agent.listQueue(s)).toEqual([]);
  });

  test.each(["this", "another"])(
    "that %s process queued while the answer was written keeps the turn open",
    async (whose) => {
      const open = await sharedFile();
      const other = createAgent({ model: echo(), store: await open() });
      onTestFinished(() => other.close());
      const agent = await anAgent({
        store: await open(),
        model: echo(async (_, call) => {
          const from = whose === "this" ? agent : other;
          if (call === 0) await from.submit("wait", { ...s, ifActive: "steer" });
        }),
      });
      const { messages, usage } = await agent.run("go", s).result;
      expect(textsOf(messages)).toEqual(["go", "re: go", "wait", "re: wait"]);
      const replies = (await factsOf(agent, "message.added")).filter(
        (fact) => fact.type === "message.added" && fact.role === "assistant",
      );
      // The first reply did not close the turn, so it says what it used.
      expect(replies.map((fact) => "usage" in fact)).toEqual([Object.keys(usage).length > 0, false]);
      expect((await agent.loadBranch(s)).turns).toHaveLength(1);
    },
  );

  test("that comes when hooks were told of the end begins the next turn", async () => {
    let ends = 0;
    const agent = await anAgent({
      middleware: [
        {
          name: "late",
          afterTurn: async () => {
            if (ends++ === 0) await agent.submit("late", { ...s, ifActive: "steer" });
          },
        },
      ],
    });
    await agent.run("go", s).result;
    expect(await settled(agent, 2)).toEqual([
      ["go", "re: go"],
      ["late", "re: late"],
    ]);
    expect(ends).toBe(2);
  });

  test("Steering-1. that finds no room for another model call begins the next turn", async () => {
    const agent = await anAgent({
      limits: { iterations: 1 },
      model: echo((_, call) =>
        call === 0 ? agent.submit("more", { ...s, ifActive: "steer" }).then(() => undefined) : undefined,
      ),
    });
    await agent.run("go", s).result;
    expect(await settled(agent, 2)).toEqual([
      ["go", "re: go"],
      ["more", "re: more"],
    ]);
  });

  test("starts a turn on a branch that is free, and joins the turn of what waits before it", async () => {
    const agent = await anAgent();
    const { status, run } = await agent.submit("hi", { ...s, ifActive: "steer" });
    expect(status).toBe("started");
    expect(await run!.text()).toBe("re: hi");
    await agent.queueInput(s, "first", { agentId: "none" });
    await agent.queueInput(s, "second", { agentId: "none", when: "steer" });
    const turn = (await agent.takeInputs(s))!;
    expect(textsOf((await turn.steer()) as never)).toEqual(["second"]);
    await turn.commit();
  });

  test("passes the hooks that see input: they may rewrite it, and what they refuse is withdrawn", async () => {
    const tool = gate();
    const agent = await anAgent({
      model: scriptedModel((prompt, call) => (call === 0 ? looking : `re: ${saidIn(prompt)}`)),
      tools: { look: look(tool.pass) },
      middleware: [
        {
          name: "guard",
          beforeTurn: (context) => {
            if (context.input.some((message) => textOf(message as never).includes("secret")))
              throw new Error("No secrets.");
            if (context.isSteering) {
              context.input = context.input.map(({ id, role }) => ({
                id: id!,
                role,
                content: [{ type: "text", text: "[cut]" }],
              }));
            }
          },
        },
      ],
    });
    const run = agent.run("go", s);
    await tool.arrived;
    await agent.submit("secret", { ...s, ifActive: "steer", inputId: "i1" });
    tool.open();
    expect(textsOf((await run.result).messages).at(-1)).toBe("re: go");
    expect(await factsOf(agent, "input.withdrawn")).toMatchObject([
      { inputId: "i1", reason: expect.stringContaining("No secrets.") },
    ]);
    const again = gate();
    const second = createAgent({
      store: agent.store,
      model: scriptedModel((prompt, call) => (call === 0 ? looking : `re: ${saidIn(prompt)}`)),
      tools: { look: look(again.pass) },
      middleware: [
        {
          name: "guard",
          beforeTurn: (context) => {
            if (context.isSteering) context.input = [{ role: "user", content: [{ type: "text", text: "[cut]" }] }];
          },
        },
      ],
    });
    const other = second.run("go", s);
    await again.arrived;
    await second.submit("left", { ...s, ifActive: "steer", inputId: "i2" });
    again.open();
    const { messages } = await other.result;
    expect(textsOf(messages).slice(-2)).toEqual(["[cut]", "re: [cut]"]);
    expect(messages.at(-2)).toMatchObject({ inputId: "i2", source: "steer" });
    expect(JSON.stringify(messages)).not.toContain("left");
  });

  test("who is not the caller of the turn does not steer it: their message begins the next turn", async () => {
    const tool = gate();
    const agent = await anAgent({
      model: scriptedModel((prompt) =>
        saidIn(prompt) === "go" && prompt.at(-1)!.role === "user" ? looking : `re: ${saidIn(prompt)}`,
      ),
      tools: { look: look(tool.pass) },
    });
    const run = agent.run("go", { ...s, identity: { user: "ann" } });
    await tool.arrived;
    await agent.submit("as Eve", { ...s, ifActive: "steer", identity: { user: "eve" } });
    tool.open();
    expect(textsOf((await run.result).messages).at(-1)).toBe("re: go");
    expect((await settled(agent, 2))[1]).toEqual(["as Eve", "re: as Eve"]);
    const started = await factsOf(agent, "turn.started");
    expect(started.map((fact) => (fact as { by?: string }).by)).toEqual(["ann", "eve"]);
  });

  test.each(["native", "tool"] as const)("makes the model give its output again (%s)", async (mode) => {
    const give = (sum: number) =>
      mode === "native" ? JSON.stringify({ sum }) : { calls: [{ name: "return_output", input: { sum } }] };
    const agent = await anAgent({
      model: scriptedModel(async (_, call) => {
        if (call === 0) await agent.submit("add one", { ...s, ifActive: "steer" });
        return give(call + 3);
      }),
    });
    const output = { schema: z.object({ sum: z.number() }), mode };
    const result = await agent.run("1 and 2?", { ...s, output }).result;
    expect(result).toMatchObject({ status: "completed", output: { sum: 4 }, iterations: 2 });
    // A run that resumes such a turn does not take the first output for the last.
    const branch = await agent.loadBranch(s);
    expect(branch.turns).toHaveLength(1);
  });

  test("that was taken when its run was handed over is answered by the run that resumes the turn", async () => {
    const open = await sharedFile();
    const second = gate();
    const give = (sum: number) => ({ calls: [{ name: "return_output", input: { sum } }] });
    const agent = await anAgent({
      store: await open(),
      model: scriptedModel(async (_, call) => {
        if (call === 0) await agent.submit("add one", { ...s, ifActive: "steer" });
        if (call === 1) await second.pass();
        return give(3);
      }),
    });
    const output = { schema: z.object({ sum: z.number() }), mode: "tool" } as const;
    const run = agent.run("1 and 2?", { ...s, output });
    await second.arrived;
    await run.park();
    const again = createAgent({ store: await open(), model: scriptedModel([give(4)]) });
    onTestFinished(() => again.close());
    expect(await again.run(undefined, s).result).toMatchObject({
      status: "completed",
      output: { sum: 4 },
      iterations: 2,
    });
    second.open();
  });
});
