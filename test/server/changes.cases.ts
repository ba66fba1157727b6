// Feeds of changes: what a list of sessions or a tree of branches needs to stay true, whoever changes what, on whatever node.

import { expect, onTestFinished, test } from "vitest";
import { createAgent } from "../../src/agent/index.ts";
import { subagent } from "../../src/index.ts";
import type { Store } from "../../src/log/store.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { openSessions } from "../../src/sessions/index.ts";
import type { Change, ChangeFrame } from "../../src/wire/index.ts";
import {
  add,
  expectProblem,
  type Given,
  given,
  type LiveStream,
  type OpenStore,
  quiet,
  say,
  scope,
  settled,
} from "./kit.ts";

const main = "/sessions/s/branches/main";

type Told = ChangeFrame & { id?: string };

const framesOf = (live: LiveStream) => live.frames as unknown as Told[];
const changesIn = (live: LiveStream): Change[] =>
  framesOf(live).flatMap((frame) => (frame.type === "change" ? [frame.change] : []));
const untilFrame = async (live: LiveStream, fits: (frame: Told) => boolean): Promise<Told> =>
  (await live.until((frame) => fits(frame as unknown as Told))) as unknown as Told;
const untilChange = (live: LiveStream, wanted: Partial<Change>) =>
  untilFrame(
    live,
    (frame) =>
      frame.type === "change" &&
      Object.entries(wanted).every(([key, value]) => frame.change[key as keyof Change] === value),
  );

async function follow(g: Given, path = "/events/live"): Promise<LiveStream> {
  const live = await g.live(path);
  await untilFrame(live, ({ type }) => type === "ready");
  return live;
}

export function describeChanges(open: OpenStore): void {
  test("3.12 a feed of all sessions tells what becomes of sessions, branches, runs, questions and queues", async () => {
    const script = [{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "Three."];
    const g = await given(script, { open, agent: { tools: { add: { ...add, permission: true } } } });
    const live = await follow(g);
    await g.ask("POST", "/sessions", { sessionId: "t" });
    await g.ask("PATCH", "/sessions/t", { metadata: { title: "T" } });
    const { runId } = (await g.ask("POST", `${scope}/inputs`, { input: "Add" })).body;
    const { change: opened } = (await untilChange(live, { type: "question-open" })) as Extract<
      Told,
      { type: "change" }
    >;
    await untilChange(live, { type: "run-end" });
    await g.ask("POST", `${scope}/inputs`, { input: "Later", ifActive: "queue" });
    const { interactionId, kind } = opened as Extract<Change, { type: "question-open" }>;
    expect(kind).toBe("permission");
    await g.ask("POST", `${scope}/responses`, { interactionId, answer: { approved: true } });
    await settled(g);
    await g.ask("POST", `${scope}/fork`, { newBranchId: "f", fromMessageIndex: 1 });
    await g.ask("PATCH", "/sessions/s/branches/f", { name: "F" });
    await g.ask("DELETE", "/sessions/s/branches/f");
    await g.ask("DELETE", "/sessions/t");
    await untilChange(live, { type: "session-delete" });
    const told = changesIn(live).filter(({ type }) => type !== "session-change");
    const at = { sessionId: "s", branchId: "main" };
    expect(told[0]).toEqual({ type: "session-create", sessionId: "t" });
    expect(told[1]).toMatchObject({ type: "run-start", ...at, runId, agentId: "helper" });
    expect(told.map(({ type }) => type)).toEqual(
      expect.arrayContaining(["question-open", "run-end", "queue-change", "question-close", "run-start"]),
    );
    expect(told.filter(({ type }) => type === "run-end")[0]).toMatchObject({ status: "parked" });
    const ofF = told.filter((change) => "branchId" in change && change.branchId === "f");
    expect(ofF).toEqual([
      { type: "branch-fork", sessionId: "s", branchId: "f", forkedFrom: "main" },
      { type: "branch-change", sessionId: "s", branchId: "f" },
      { type: "branch-delete", sessionId: "s", branchId: "f" },
    ]);
    expect(changesIn(live)).toContainEqual({ type: "session-change", sessionId: "t" });
  });

  test("3.13 a feed of one session tells of no other, and ends when the session is deleted", async () => {
    const g = await given(["Hello."], { open });
    await g.ask("POST", "/sessions", { sessionId: "t" });
    const live = await follow(g, "/sessions/t/events/live");
    await say(g, "Hi");
    await g.ask("PATCH", "/sessions/t", { metadata: { a: 1 } });
    await g.ask("DELETE", "/sessions/t");
    await live.toEnd();
    expect(changesIn(live).map(({ sessionId }) => sessionId)).toEqual(["t", "t"]);
    expect(framesOf(live).at(-1)).toMatchObject({ type: "end", reason: "deleted" });
    expectProblem(await g.ask("GET", "/sessions/t/events/live"), 404, "session_not_found");
    expectProblem(await g.ask("GET", "/events/live?from=1"), 400, "invalid_argument");
  });

  test("3.14 a reader continues at its cursor; one whose changes are not remembered is told to read again", async () => {
    const g = await given([], { open });
    const live = await follow(g);
    for (const sessionId of ["a", "b", "c"]) await g.ask("POST", "/sessions", { sessionId });
    const { cursor } = await untilChange(live, { sessionId: "a" });
    await live.leave();
    const again = await g.live(`/events/live?after=${cursor}`);
    const ready = await untilFrame(again, ({ type }) => type === "ready");
    expect(changesIn(again).map(({ sessionId }) => sessionId)).toEqual(["b", "c"]);
    expect(framesOf(again).map(({ id, cursor: at }) => id === at)).not.toContain(false);
    const byHeader = await g.live("/sessions/c/events/live", { "last-event-id": cursor });
    await untilFrame(byHeader, ({ type }) => type === "ready");
    expect(changesIn(byHeader)).toEqual([{ type: "session-create", sessionId: "c" }]);
    for (const strange of ["nobody.3", ready.cursor.replace(/\d+$/, "999")]) {
      const stale = await g.live(`/events/live?after=${strange}`);
      await untilFrame(stale, ({ type }) => type === "ready");
      expect(framesOf(stale).map(({ type }) => type)).toEqual(["stale", "ready"]);
    }
  });

  test("3.12, 2.3, 2.10 a feed needs scope read, the policy's permission, and never tells of another tenant", async () => {
    const auth = (request: Request) => {
      const tenant = request.headers.get("x-who");
      return tenant ? { tenant, scopes: tenant === "c" ? ([] as never[]) : (["read", "write"] as const) } : undefined;
    };
    let isAllowed = true;
    const asked: unknown[] = [];
    const authorize = (_identity: unknown, action: string, where: object) => {
      if (!action.endsWith("Changes")) return true;
      asked.push([action, where]);
      return isAllowed;
    };
    const g = await given([], { open, auth, authorize, limits: { heartbeatMs: 80 } });
    const as = (who: string) => ({ "x-who": who });
    const live = await g.live("/events/live", as("a"));
    await untilFrame(live, ({ type }) => type === "ready");
    await g.ask("POST", "/sessions", { sessionId: "of-b" }, as("b"));
    await g.ask("POST", "/sessions", { sessionId: "of-a" }, as("a"));
    await untilChange(live, { sessionId: "of-a" });
    expect(changesIn(live)).toEqual([{ type: "session-create", sessionId: "of-a" }]);
    expectProblem(await g.ask("GET", "/events/live", undefined, as("c")), 403, "forbidden");
    expectProblem(await g.ask("GET", "/sessions/of-b/events/live", undefined, as("a")), 404, "session_not_found");
    expect(asked).toContainEqual(["tenantChanges", {}]);
    expect(asked).toContainEqual(["sessionChanges", { sessionId: "of-b" }]);
    isAllowed = false;
    await live.toEnd();
    expect(framesOf(live).at(-1)).toMatchObject({ type: "end", reason: "unauthorized" });
    expectProblem(await g.ask("GET", "/events/live", undefined, as("a")), 403, "forbidden");
  });

  test("3.12 a subagent's hidden branch says that it is hidden", async () => {
    const researcher = createAgent({ id: "researcher", model: scriptedModel(["Found."]), logger: quiet });
    const research = subagent(researcher, { description: "Researches.", permission: false });
    const script = [{ calls: [{ name: "research", input: { input: "Look" } }] }, "Done."];
    const g = await given(script, { open, agent: { tools: { research } } });
    const live = await follow(g, "/sessions/s/events/live");
    await say(g, "Hi");
    await untilFrame(
      live,
      (frame) => frame.type === "change" && frame.change.type === "run-end" && frame.change.branchId === "main",
    );
    const ofChild = changesIn(live).filter((change) => "branchId" in change && change.branchId !== "main");
    expect(ofChild.map(({ type }) => type)).toEqual(expect.arrayContaining(["branch-fork", "run-start", "run-end"]));
    for (const change of ofChild) expect(change).toMatchObject({ visibility: "hidden" });
  });

  test("3.15 what another process changes is told, too, without its help", async () => {
    const store = await sharedStore(open);
    const g = await given(["Hello."], { store, limits: { lookMs: 20 } });
    await g.ask("POST", "/sessions", { sessionId: "gone" });
    const live = await follow(g);
    const ofSession = await follow(g, "/sessions/s/events/live");
    const elsewhere = await openSessions(store);
    await elsewhere.createSession("new");
    await untilChange(live, { type: "session-create", sessionId: "new" });
    await elsewhere.appendTurn("s", [{ role: "user", content: "Hi" }]);
    for (const each of [live, ofSession]) await untilChange(each, { type: "session-change", sessionId: "s" });
    await elsewhere.deleteSession("gone");
    await untilChange(live, { type: "session-delete", sessionId: "gone" });
    expect(changesIn(ofSession).every(({ sessionId }) => sessionId === "s")).toBe(true);
    // This process's own are told at once, and never lost between looks.
    await g.ask("POST", `${main}/checkpoints`, {});
    await say(g, "Hi again");
    await untilChange(live, { type: "run-end", sessionId: "s" });
  });

  test("3.15 two nodes tell each other's changes", async () => {
    const store = await sharedStore(open);
    const one = await given(["Hello."], { store, limits: { lookMs: 20 } });
    const other = await given([], { store, isSecond: true, limits: { lookMs: 20 } });
    const live = await follow(other);
    await say(one, "Hi");
    await untilFrame(live, (frame) => frame.type === "change" && frame.change.sessionId === "s");
    await one.ask("DELETE", "/sessions/s");
    await untilChange(live, { type: "session-delete", sessionId: "s" });
  });

  test("6.11 a feed ends with its cursor when the server stops", async () => {
    const g = await given([], { open });
    const live = await follow(g);
    const closing = g.serving.close();
    await live.toEnd();
    await closing;
    const last = framesOf(live).at(-1);
    expect(last).toMatchObject({ type: "end", reason: "closing", cursor: expect.any(String) });
  });
}

/** A store that outlives the servers on it. */
async function sharedStore(open: OpenStore): Promise<Store> {
  const store = await open();
  onTestFinished(() => store.close());
  return new Proxy(store, {
    get(target, name: keyof Store) {
      if (name === "close") return async () => {};
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
