// Remembered permissions and what the log says of calls that nobody was asked about.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type AgentOptions, createAgent, defineState, defineTool, type Middleware } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { checkLogs, scriptedModel } from "../../src/testing/index.ts";
import { anAgent, answering, factsOf, outputsIn, removesThenTells, removing, s } from "./asking-kit.ts";

const always = () => ({ approved: true, choice: "always" });

/** How many questions a run asks; all are denied. */
async function asked(run: Parameters<typeof answering>[0]): Promise<number> {
  const seen = await answering(run, () => ({ approved: false }));
  return seen.filter(({ type }) => type === "interaction.opened").length;
}

/** A tool that needs permission and hangs in its first run. */
function hanging() {
  const ran: string[] = [];
  let began = () => {};
  const hangs = new Promise<void>((resolve) => {
    began = resolve;
  });
  const remove = defineTool({
    input: z.object({ path: z.string() }),
    permission: true,
    execute: ({ path }) => {
      if (ran.push(path) > 1) return "removed";
      began();
      return new Promise<string>(() => {});
    },
  });
  return { ran, hangs, tools: { remove } };
}

describe('"always"', () => {
  test("holds for one agent's tool, not for another agent's of the same name", async () => {
    const store = memoryStore();
    const { ran, tools } = removing();
    const asking = await anAgent({ id: "asking", model: removesThenTells("x"), tools, store });
    const headless = createAgent({ id: "headless", model: removesThenTells("y"), tools, store });
    await answering(asking.run("go", s), always);
    expect(outputsIn(await headless.run("go", s).text())).toMatchObject([{ type: "execution-denied" }]);
    expect(await asked(headless.run("go", s))).toBe(1);
    expect(ran).toEqual(["x"]);
    await asking.run("go", s).result;
    expect(ran).toEqual(["x", "x"]);
  });

  test("is shared by agents without an id, and by no others", async () => {
    const store = memoryStore();
    const { ran, tools } = removing();
    const one = await anAgent({ model: removesThenTells("x"), tools, store });
    const two = createAgent({ name: "two", model: removesThenTells("y"), tools, store });
    await answering(one.run("go", s), always);
    await two.run("go", s).result;
    expect(ran).toEqual(["x", "y"]);
    expect(await asked(createAgent({ id: "id", model: removesThenTells("z"), tools, store }).run("go", s))).toBe(1);
  });

  test("of a store from before, which knew no agents, allows nothing", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ id: "a", model: removesThenTells("x"), tools });
    await agent.updateSession("s", { state: { "@permissions": { version: 1, data: { remove: "allow" } } } });
    expect(await agent.listPermissions("s")).toEqual([]);
    expect(await asked(agent.run("go", s))).toBe(1);
    expect(ran).toEqual([]);
  });

  test("is listed with who gave it and when, until it is revoked; then the next call is asked for", async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ id: "a", model: removesThenTells("x"), tools });
    agent.subscribe("interaction.opened", async ({ id }) => {
      await agent.respond(s, id, { approved: true, choice: "always" }, { by: "ada" });
    });
    await agent.run("go", s).result;
    const [answer] = await factsOf(agent, "interaction.answered");
    const { at, interactionId } = answer as { at: number; interactionId?: string };
    const given = { agentId: "a", tool: "remove", decision: "allow", by: "ada", at, interactionId };
    expect(await agent.listPermissions("s")).toEqual([given]);
    expect(await agent.revokePermission("s", { agentId: "b", tool: "remove" })).toBe(0);
    expect(await agent.revokePermission("s", { agentId: "a", tool: "other" })).toBe(0);
    expect(await agent.listPermissions("s")).toEqual([given]);
    expect(await agent.revokePermission("s", { agentId: "a", tool: "remove" })).toBe(1);
    expect(await agent.revokePermission("s", { agentId: "a", tool: "remove" })).toBe(0);
    expect(await agent.listPermissions("s")).toEqual([]);
    await agent.run("go", s).result;
    expect(await factsOf(agent, "interaction.opened")).toHaveLength(2);
    expect(await agent.listPermissions("s")).toMatchObject([{ tool: "remove", decision: "allow" }]);
    expect(ran).toEqual(["x", "x"]);
    await expect(agent.listPermissions("none")).rejects.toMatchObject({ code: "session_not_found" });
    await expect(agent.revokePermission("none", { tool: "x" })).rejects.toMatchObject({ code: "session_not_found" });
  });

  test("is revoked for all agents when none is named, denials too", async () => {
    const store = memoryStore();
    const { tools } = removing();
    const options = { model: removesThenTells("x"), tools, store };
    const agents = [await anAgent(options), createAgent({ ...options, id: "a" }), createAgent({ ...options, id: "b" })];
    for (const [i, agent] of agents.entries()) {
      await answering(agent.run("go", s), () => ({ approved: i > 0, choice: "always" }));
    }
    expect((await agents[0]!.listPermissions("s")).map(({ decision }) => decision)).toEqual(["deny", "allow", "allow"]);
    expect(await agents[0]!.revokePermission("s", { tool: "remove" })).toBe(3);
    for (const agent of agents) expect(await asked(agent.run("go", s))).toBe(1);
  });

  test("that was revoked does not come back when the run that heard it is taken up", async () => {
    const { ran, hangs, tools } = hanging();
    const agent = await anAgent({ id: "a", model: removesThenTells("x"), tools });
    const run = agent.run("go", s);
    const watching = answering(run, always);
    await hangs;
    expect(await agent.revokePermission("s", { tool: "remove" })).toBe(1);
    await run.park();
    await watching;
    await agent.run(undefined, s).result;
    expect(ran).toEqual(["x", "x"]);
    expect(await agent.listPermissions("s")).toEqual([]);
    expect(await asked(agent.run("go", s))).toBe(1);
  });

  test("is revoked while runs write to the same state, and nothing of theirs is lost", async () => {
    const counter = defineState<number>({ key: "counter", scope: "session", initial: 0 });
    const counting: Middleware = {
      name: "counting",
      async beforeIteration({ state }) {
        for (let i = 0; i < 20; i++) await state.update(counter, (count) => count + 1);
      },
    };
    const { tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools, middleware: [counting] });
    const rounds = 5;
    for (let i = 0; i < rounds; i++) {
      await answering(agent.run("go", s), always);
      const run = agent.run("go", { ...s, config: { permissionMode: "deny" } });
      expect(await agent.revokePermission("s", { tool: "remove" })).toBe(1);
      await run.result;
      expect(await agent.listPermissions("s")).toEqual([]);
    }
    const { state } = await agent.getSession("s");
    expect(state["@counter"]).toMatchObject({ data: rounds * 2 * 2 * 20 });
  });
});

describe("a guarded call that nobody is asked about", () => {
  /** What the log says, and what it said when the tool began. */
  async function granted(options: Partial<AgentOptions>, config: { permissionMode?: "allow" } = {}) {
    const store = memoryStore();
    const before: unknown[] = [];
    const remove = defineTool({
      input: z.object({ path: z.string() }),
      permission: true,
      async execute(_, { sessionId, branchId }) {
        const stored = await store.read({ sessionId, branchId });
        before.push(...stored.map(({ data }) => JSON.parse(data)).filter(({ type }) => type === "permission.granted"));
        return "removed";
      },
    });
    const agent = await anAgent({ id: "a", model: removesThenTells("x"), tools: { remove }, store, ...options });
    await agent.run("go", { ...s, config }).result;
    expect(await checkLogs(store)).toEqual([]);
    return { before, facts: await factsOf(agent, "permission.granted") };
  }

  test.each([
    ["agent", { permissions: { mode: "allow" } }, {}],
    ["run", {}, { permissionMode: "allow" }],
  ] as const)("because of the %s's mode leaves a fact before it runs", async (modeOf, options, config) => {
    const { before, facts } = await granted(options, config);
    expect(facts).toMatchObject([{ toolName: "remove", callId: expect.any(String), how: "mode", modeOf }]);
    expect(before).toMatchObject([{ how: "mode", modeOf }]);
  });

  test('because of an "always" leaves a fact that names who gave it and where', async () => {
    const { ran, tools } = removing();
    const agent = await anAgent({ model: removesThenTells("x"), tools });
    agent.subscribe("interaction.opened", async ({ id }) => {
      await agent.respond(s, id, { approved: true, choice: "always" }, { by: "ada" });
    });
    await agent.run("go", s).result;
    expect(await factsOf(agent, "permission.granted")).toEqual([]);
    await agent.run("go", s).result;
    const [question] = await factsOf(agent, "interaction.opened");
    const [fact, ...others] = await factsOf(agent, "permission.granted");
    expect(fact).toMatchObject({ toolName: "remove", how: "always", by: "ada", interactionId: question!.id });
    expect(others).toEqual([]);
    expect(ran).toEqual(["x", "x"]);
  });

  test("of a client's tool leaves a fact before the client is asked to run it", async () => {
    const locate = defineTool({ input: z.object({}), permission: true });
    const model = scriptedModel((prompt) =>
      prompt.at(-1)!.role === "tool" ? "done" : { calls: [{ name: "locate", input: {} }] },
    );
    const agent = await anAgent({ model, tools: { locate }, permissions: { mode: "allow" } });
    await answering(agent.run("go", s), () => ({ output: "Rome" }));
    const types = (await factsOf(agent)).map(({ type }) => type);
    expect(types.indexOf("permission.granted")).toBe(types.indexOf("interaction.opened") - 1);
  });

  test("leaves none when its tool needs no permission, or when it is denied", async () => {
    const { ran, tools } = removing();
    const free = await anAgent({
      model: removesThenTells("x"),
      tools,
      permissions: { mode: "allow", tools: { remove: false } },
    });
    await free.run("go", s).result;
    expect(ran).toEqual(["x"]);
    const strict = await anAgent({ model: removesThenTells("x"), tools, permissions: { mode: "deny" } });
    await strict.run("go", s).result;
    for (const agent of [free, strict]) expect(await factsOf(agent, "permission.granted")).toEqual([]);
    expect(await factsOf(strict, "tool.returned")).toMatchObject([{ output: { type: "execution-denied" } }]);
  });

  test("shares one append with the others of its batch", async () => {
    const store = memoryStore();
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
    const { tools } = removing();
    const model = removesThenTells("a", "b", "c");
    const agent = await anAgent({ model, tools, store: counting, permissions: { mode: "allow" } });
    await agent.run("go", s).result;
    expect(appends.filter((types) => types.includes("permission.granted"))).toEqual([
      Array(3).fill("permission.granted"),
    ]);
  });

  test("has no second fact when it runs again after a crash", async () => {
    const { ran, hangs, tools } = hanging();
    const agent = await anAgent({ model: removesThenTells("x"), tools, permissions: { mode: "allow" } });
    const run = agent.run("go", s);
    await hangs;
    await run.park();
    await agent.run(undefined, s).result;
    expect(ran).toEqual(["x", "x"]);
    expect(await factsOf(agent, "permission.granted")).toHaveLength(1);
  });
});
