import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineState, defineTool, type Middleware } from "../../src/index.ts";
import type { Script } from "../../src/testing/index.ts";
import { eventsOf, factTypes, given, main, ofType, refused, s } from "./kit.ts";

describe("state", () => {
  const counter = (scope: "run" | "branch" | "session") => defineState({ key: `count-${scope}`, scope, initial: 0 });
  const run = counter("run");
  const branch = counter("branch");
  const session = counter("session");

  const counting: Middleware = {
    name: "counts",
    state: [run, branch, session],
    async afterTurn({ state }) {
      for (const handle of [run, branch, session]) await state.update(handle, (n) => n + 1);
    },
  };

  test("of a run goes with it, of a branch stays and forks, of a session is shared", async () => {
    const seen: number[][] = [];
    const looking: Middleware = {
      name: "looks",
      async beforeIteration({ state }) {
        seen.push([await state.get(run), await state.get(branch), await state.get(session)]);
      },
    };
    const { agent, again } = await given(() => "ok", { middleware: [counting, looking] });
    await agent.run("1", main).result;
    await agent.run("2", main).result;
    await agent.forkBranch(main, { newBranchId: "b" });
    const other = again();
    await other.run("3", { sessionId: "s", branchId: "b" }).result;
    await other.run("4", main).result;
    expect(seen).toEqual([
      [0, 0, 0],
      [0, 1, 1],
      [0, 2, 2],
      [0, 2, 3],
    ]);
  });

  test("written in afterTurn closes with the turn, in its append", async () => {
    const { agent } = await given(["ok"], { middleware: [counting] });
    await agent.run("1", s).result;
    expect((await factTypes(agent)).slice(-3)).toEqual(["message.added", "state.changed", "turn.committed"]);
  });

  test("of a fork point is what it was there", async () => {
    const { agent } = await given(() => "ok", { middleware: [counting] });
    await agent.run("1", main).result;
    const { messages } = await agent.loadBranch("s");
    await agent.run("2", main).result;
    const fork = await agent.forkBranch(main, { from: messages[1]!.id, newBranchId: "b" });
    const stateOn = async (branchId: string) =>
      (await agent.loadBranch({ sessionId: "s", branchId })).state["@count-branch"];
    expect([await stateOn("main"), await stateOn(fork.id)]).toMatchObject([{ data: 2 }, { data: 1 }]);
  });

  test("of a session loses no update of runs at the same time", async () => {
    const bump = defineTool({
      description: "Counts.",
      input: z.object({ by: z.number() }),
      execute: ({ by }, { state }) => state.update(session, (n) => n + by),
    });
    const calls = [1, 2, 3, 4, 5].map((by) => ({ name: "bump", input: { by } }));
    const script: Script = (prompt) => (prompt.at(-1)!.role === "user" ? { calls } : "ok");
    const { agent } = await given(script, { tools: { bump } });
    const branchIds = ["b1", "b2", "b3", "b4"];
    for (const branchId of branchIds) await agent.createBranch("s", { branchId });
    await Promise.all(branchIds.map((branchId) => agent.run("Go", { sessionId: "s", branchId }).result));
    expect((await agent.getSession("s")).state["@count-session"]).toMatchObject({ data: 60 });
  });

  test("of an interrupted or failed turn is kept with its end", async () => {
    const { agent } = await given([{ error: new Error("gone") }], { middleware: [counting] });
    await agent.run("1", s).result;
    expect((await agent.loadBranch("s")).state["@count-branch"]).toMatchObject({ data: 1 });
  });

  test("of a turn that is handed over is there when it is taken up, whoever changed it", async () => {
    const byTool = defineState({ key: "by-tool", scope: "branch", initial: 0 });
    const bump = defineTool({
      description: "Counts.",
      input: z.object({}),
      execute: (_, { state }) => state.update(byTool, (n) => n + 1),
    });
    const byHook: Middleware = {
      name: "counts",
      async afterIteration({ state }) {
        await state.update(branch, (n) => n + 1);
      },
    };
    const script = [{ calls: [{ name: "bump", input: {} }] }];
    const { agent, again } = await given(script, { tools: { bump }, middleware: [byHook] });
    const first = agent.run("Go", s);
    await eventsOf(first, (event) => {
      if (event.type === "iteration-start" && event.iteration === 2) void first.park();
    });
    expect((await first.result).status).toBe("parked");
    await again({ script: ["Done."], middleware: [] }).run(undefined, s).result;
    const { state } = await agent.loadBranch("s");
    expect([state["@by-tool"], state["@count-branch"]]).toMatchObject([{ data: 1 }, { data: 1 }]);
  });

  test("beforeFork changes the child's state and metadata, and nothing of the source", async () => {
    const forking: Middleware = {
      name: "forks",
      state: [branch],
      async beforeFork(context) {
        await context.state.set(branch, 100 + (await context.state.get(branch)));
        await context.state.update(session, (n) => n + 1);
        context.metadata = { ...context.metadata, from: context.sourceBranchId, at: context.messageId ?? "start" };
      },
    };
    const { agent } = await given(() => "ok", { middleware: [counting, forking] });
    await agent.run("1", main).result;
    const fork = await agent.forkBranch(main, { newBranchId: "b", metadata: { mine: true } });
    const last = (await agent.loadBranch({ sessionId: "s", branchId: "main" })).messages.at(-1)!.id;
    expect(fork.metadata).toEqual({ mine: true, from: "main", at: last });
    expect((await agent.loadBranch({ sessionId: "s", branchId: "b" })).state["@count-branch"]).toMatchObject({
      data: 101,
    });
    expect((await agent.loadBranch({ sessionId: "s", branchId: "main" })).state["@count-branch"]).toMatchObject({
      data: 1,
    });
    expect((await agent.getSession("s")).state["@count-session"]).toMatchObject({ data: 2 });
  });

  test("beforeFork loses no update of the session's state", async () => {
    const forking: Middleware = {
      name: "forks",
      async beforeFork({ state }) {
        await state.update(session, (n) => n + 1);
      },
    };
    const { agent } = await given(() => "ok", { middleware: [forking] });
    await Promise.all([1, 2, 3, 4, 5].map((n) => agent.forkBranch(main, { newBranchId: `b${n}` })));
    expect((await agent.getSession("s")).state["@count-session"]).toMatchObject({ data: 5 });
  });

  test("a fork hook that throws makes no fork", async () => {
    const { agent } = await given(["ok"], {
      middleware: [{ name: "refuses", beforeFork: () => Promise.reject(new Error("not here")) }],
    });
    await expect(agent.forkBranch(main, { newBranchId: "b" })).rejects.toThrow("not here");
    await refused(agent.loadBranch({ sessionId: "s", branchId: "b" }), "branch_not_found");
  });
});

describe("state that was declared otherwise before a restart", () => {
  const key = "plan";
  const old = defineState({ key, scope: "branch", version: 1, initial: ["first"] });
  const gone = defineState({ key: "gone", scope: "branch", initial: 1 });

  async function restarted(now: Middleware) {
    const before: Middleware = {
      name: "before",
      state: [old, gone],
      async afterTurn({ state }) {
        await state.update(old, (steps) => [...steps, "second"]);
        await state.update(gone, (n) => n + 1);
      },
    };
    const { agent, again } = await given(["1", "2"], { middleware: [before] });
    await agent.run("1", s).result;
    const other = again({ middleware: [now] });
    return { agent: other, events: await eventsOf(other.run("2", s)) };
  }

  test("is migrated, and what is missing or new is reported", async () => {
    const seen: unknown[] = [];
    const current = defineState({
      key,
      scope: "branch",
      version: 2,
      initial: { steps: [] as string[] },
      migrate: (value) => ({ steps: value as string[] }),
    });
    const added = defineState({ key: "added", scope: "branch", initial: 0 });
    const { agent, events } = await restarted({
      name: "now",
      state: [current, added],
      async beforeIteration({ state }) {
        seen.push(await state.get(current));
      },
    });
    expect(seen).toEqual([{ steps: ["first", "second"] }]);
    const changes = ofType(events, "state-migrate").map(({ scope, key, change, from, to }) => ({
      scope,
      key,
      change,
      from,
      to,
    }));
    expect(changes).toHaveLength(3);
    expect(changes).toEqual(
      expect.arrayContaining([
        { scope: "branch", key: "plan", change: "migrated", from: 1, to: 2 },
        { scope: "branch", key: "added", change: "added", from: undefined, to: 1 },
        { scope: "branch", key: "gone", change: "removed", from: 1, to: undefined },
      ]),
    );
    const { state } = await agent.loadBranch("s");
    expect(state["@plan"]).toEqual({ version: 2, data: { steps: ["first", "second"] } });
    expect(state["@gone"]).toEqual({ version: 1, data: 2 });
  });

  test("of a newer version is left alone", async () => {
    const older = defineState({ key, scope: "branch", version: 1, initial: [] as string[] });
    const newer = defineState({ key, scope: "branch", version: 2, initial: ["new"] });
    const writes = (handle: typeof older): Middleware => ({
      name: "writes",
      state: [handle],
      async afterTurn({ state }) {
        await state.update(handle, (steps) => [...steps, "more"]);
      },
    });
    const { agent, again } = await given(["1", "2"], { middleware: [writes(newer)] });
    await agent.run("1", s).result;
    const events = await eventsOf(again({ middleware: [writes(older)] }).run("2", s));
    expect(ofType(events, "state-migrate")).toMatchObject([{ key, change: "newer", from: 2, to: 1 }]);
    expect((await agent.loadBranch("s")).state["@plan"]).toEqual({ version: 2, data: ["new", "more"] });
  });

  test("nothing is reported when nothing changed", async () => {
    const same: Middleware = {
      name: "same",
      state: [old],
      async afterTurn({ state }) {
        await state.update(old, (steps) => [...steps, "more"]);
      },
    };
    const { agent, again } = await given(["1", "2"], { middleware: [same] });
    await agent.run("1", s).result;
    expect(ofType(await eventsOf(again().run("2", s)), "state-migrate")).toEqual([]);
  });
});
