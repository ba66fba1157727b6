// Questions over the wire: they wait as long as people do, and hold nothing meanwhile.

import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createAgent, defineTool } from "../../src/index.ts";
import type { Store } from "../../src/log/store.ts";
import { type Script, scriptedModel } from "../../src/scripted/index.ts";
import type { ServerOptions } from "../../src/server/index.ts";
import { manualClock } from "../../src/testing/index.ts";
import { scopes } from "../../src/wire/index.ts";
import { add, expectProblem, type Given, gate, given, isEvent, type OpenStore, scope, settled, until } from "./kit.ts";

const sum = { calls: [{ name: "add", input: { a: 1, b: 2 } }] };
const guarded = { tools: { add: { ...add, permission: true } } };
const locate = defineTool({ description: "Where the client is.", input: z.object({}) });

export function describeQuestions(open: OpenStore): void {
  const start = (script: Script, options: Partial<ServerOptions> & Parameters<typeof given>[1] = {}) =>
    given(script, { open, agent: guarded, ...options });

  test("5.15 a question parks its run: nothing is held, the stream shows it, and the answer resumes the turn", async () => {
    const g = await start([sum, "Three."]);
    const live = await g.live(`${scope}/events/live`);
    const { runId } = (await g.ask("POST", `${scope}/inputs`, { input: "Add" })).body;
    const ended = await live.until(isEvent("run-end"));
    expect(ended).toMatchObject({ event: { status: "parked", runId } });
    expect(live.frames.some(isEvent("interaction.opened"))).toBe(true);
    expect(await g.store.listRuns()).toEqual([]);
    const { activeRun, openTurn, interactions } = (await g.ask("GET", `${scope}/state`)).body;
    expect({ activeRun, interactions }).toMatchObject({ activeRun: null, interactions: [{ turnId: openTurn.id }] });
    expect(interactions[0]).not.toHaveProperty("expiresAt");
    expect((await g.ask("GET", `${scope}/runs/${runId}`)).body).toMatchObject({ status: "parked" });
    const said = await respond(g, interactions[0].id, { approved: true });
    expect(said).toMatchObject({ status: 200, body: { runId: expect.any(String) } });
    expect(said.body.runId).not.toBe(runId);
    await live.until(isEvent("turn.committed"));
    const resumed = live.frames.filter(isEvent("turn.resumed"));
    expect(resumed).toHaveLength(1);
  });

  test("5.18 a branch or a session that is deleted while questions are listed is left out", async () => {
    const store = await sharedStore(open);
    let vanish: (() => Promise<unknown>) | undefined;
    const vanishing = new Proxy(store, {
      get(target, name: keyof Store) {
        if (name !== "listOpen") return target[name];
        return async (...args: Parameters<Store["listOpen"]>) => {
          const page = await target.listOpen(...args);
          await vanish?.();
          return page;
        };
      },
    });
    const script: Script = () => sum;
    const g = await start(script, { store: vanishing });
    const places = [
      ["s", "main"],
      ["s", "side"],
      ["t", "main"],
      ["z", "main"],
    ] as const;
    const ask = async () => {
      for (const [sessionId, branchId] of places) {
        await g.ask("POST", "/sessions", { sessionId });
        await g.ask("POST", `/agents/helper/sessions/${sessionId}/branches`, { branchId });
        const path = `/agents/helper/sessions/${sessionId}/branches/${branchId}`;
        await g.ask("POST", `${path}/inputs`, { input: "Add" });
        await until(async () => (await g.ask("GET", `${path}/state`)).body.interactions.length === 1);
        await until(async () => (await g.ask("GET", `${path}/runs/active`)).body === null);
      }
    };
    const remove = async () => {
      vanish = undefined;
      await store.deleteBranch({ sessionId: "s", branchId: "side" });
      await store.deleteSession("t");
    };
    const sessionsOf = (found: readonly { sessionId: string; branchId: string }[]) =>
      found.map(({ sessionId, branchId }) => `${sessionId}/${branchId}`);
    await ask();
    vanish = remove;
    const listed = await g.ask("GET", "/interactions");
    expect(listed.status).toBe(200);
    expect(sessionsOf(listed.body.interactions)).toEqual(["s/main", "z/main"]);
    // A page that goes on where the last one ended, on a branch that is gone now.
    await ask();
    const first = (await g.ask("GET", "/interactions?limit=2")).body;
    expect(sessionsOf(first.interactions)).toEqual(["s/main", "s/side"]);
    await remove();
    const second = await g.ask("GET", `/interactions?cursor=${encodeURIComponent(first.cursor)}`);
    expect(sessionsOf(second.body.interactions)).toEqual(["z/main"]);
    // Recovery goes by the same list.
    await ask();
    const agent = createAgent({ id: "helper", model: scriptedModel(script), ...guarded, store: vanishing });
    vanish = remove;
    expect(sessionsOf(await agent.recover())).toEqual(["s/main", "z/main"]);
  });

  test("5.15 with questions: wait, of the server or the input, the run waits and goes on itself", async () => {
    const g = await start([sum, sum, "Three."], { questions: "wait" });
    const one = (await g.ask("POST", `${scope}/inputs`, { input: "Add" })).body.runId;
    const id = await asked(g);
    expect((await g.ask("GET", `${scope}/runs/active`)).body).toMatchObject({ runId: one });
    expect((await respond(g, id, { approved: false })).body).toEqual({ interactionId: id });
    const next = await until(async () => {
      const found = await asked(g);
      return found !== id && found;
    });
    expect((await g.ask("GET", `${scope}/runs/active`)).body).toMatchObject({ runId: one });
    await respond(g, next, { approved: true });
    await settled(g);
    const other = await start([sum, "Three."]);
    const { runId } = (await other.ask("POST", `${scope}/inputs`, { input: "Add", questions: "wait" })).body;
    const waits = await asked(other);
    expect((await other.ask("GET", `${scope}/runs/active`)).body).toMatchObject({ runId, status: "active" });
    expect((await respond(other, waits, { approved: true })).body).toEqual({ interactionId: waits });
    await settled(other);
    const bad = await other.ask("POST", `${scope}/inputs`, { input: "Add", questions: "deny" });
    expectProblem(bad, 400, "invalid_argument");
  });

  test("5.15 any node takes the answer and resumes the turn, of two answers at once exactly one run comes", async () => {
    const store = await sharedStore(open);
    const two = { calls: [...sum.calls, { name: "add", input: { a: 3, b: 4 } }] };
    const script: Script = (prompt) => (prompt.at(-1)!.role === "tool" ? "Done." : two);
    const one = await start(script, { store });
    const other = await start(script, { store, isSecond: true });
    await one.ask("POST", `${scope}/inputs`, { input: "Add" });
    const ids = await until(async () => {
      const { interactions, activeRun } = (await one.ask("GET", `${scope}/state`)).body;
      return interactions.length === 2 && !activeRun && interactions.map(({ id }: { id: string }) => id);
    });
    const said = await Promise.all([
      respond(other, ids[0], { approved: true }),
      respond(one, ids[1], { approved: true }),
    ]);
    expect(said.map(({ status }) => status)).toEqual([200, 200]);
    await settled(other);
    const { events } = (await one.ask("GET", "/sessions/s/branches/main/events")).body;
    // The other server looks for open turns when it starts: it may have taken this one up, and parked it again, before the answers.
    const first = events.findIndex((event: { type: string }) => event.type === "interaction.answered");
    const count = (type: string) => events.slice(first).filter((event: { type: string }) => event.type === type).length;
    expect([count("turn.resumed"), count("tool.returned"), count("turn.committed")]).toEqual([1, 2, 1]);
  });

  test("5.15 an answer given on another node at the moment of parking is not lost", async () => {
    const store = await sharedStore(open);
    const { passed, open: release } = gate();
    const slow = new Proxy(store, {
      get(target, name: keyof Store) {
        if (name !== "releaseRun") return target[name];
        return (...args: Parameters<Store["releaseRun"]>) => passed.then(() => target.releaseRun(...args));
      },
    });
    const script: Script = (prompt) => (prompt.at(-1)!.role === "tool" ? "Three." : sum);
    const one = await start(script, { store: slow });
    const other = await start(script, { store, isSecond: true });
    await one.ask("POST", `${scope}/inputs`, { input: "Add" });
    const id = await asked(other);
    expect((await respond(other, id, { approved: true })).body).toEqual({ interactionId: id });
    release();
    await settled(one);
    expect((await one.ask("GET", `${scope}/state`)).body.messages.at(-1).content[0].text).toBe("Three.");
  });

  test("5.15 while another call runs, an answer is taken at once; the run parks when nothing else is left", async () => {
    const { passed, open: finish } = gate();
    const slow = defineTool({ description: "Slow.", input: z.object({}), execute: () => passed.then(() => "slow") });
    const both = { calls: [{ name: "slow", input: {} }, ...sum.calls, { name: "add", input: { a: 3, b: 4 } }] };
    const g = await start([both, "Done."], { agent: { tools: { ...guarded.tools, slow } } });
    const { runId } = (await g.ask("POST", `${scope}/inputs`, { input: "Add" })).body;
    const ids = await until(async () => {
      const { interactions } = (await g.ask("GET", `${scope}/state`)).body;
      return interactions.length === 2 && interactions.map(({ id }: { id: string }) => id);
    });
    expect((await respond(g, ids[0], { approved: true })).body).toEqual({ interactionId: ids[0] });
    const live = await g.live(`${scope}/events/live`);
    await live.until(isEvent("tool.returned"));
    expect((await g.ask("GET", `${scope}/runs/active`)).body).toMatchObject({ runId });
    finish();
    await until(async () => (await g.ask("GET", `${scope}/runs/active`)).body === null);
    expect((await g.ask("GET", `${scope}/state`)).body.interactions).toMatchObject([{ id: ids[1] }]);
    await respond(g, ids[1], { approved: true });
    await settled(g);
  });

  test("5.15 a client's tool that answers soon keeps its run", async () => {
    const clock = manualClock();
    const call = { calls: [{ name: "locate", input: {} }] };
    const g = await start([call, "There.", call, "There."], { clock, agent: { tools: { locate } } });
    const { runId } = (await g.ask("POST", `${scope}/inputs`, { input: "Where?" })).body;
    const id = await asked(g);
    expect((await g.ask("GET", `${scope}/runs/active`)).body).toMatchObject({ runId });
    expect((await respond(g, id, { output: "Oslo" })).body).toEqual({ interactionId: id });
    await settled(g);
    await g.ask("POST", `${scope}/inputs`, { input: "And now?" });
    const late = await asked(g);
    await until(async () => {
      clock.advance(1000);
      return (await g.ask("GET", `${scope}/runs/active`)).body === null;
    });
    expect((await respond(g, late, { output: "Rome" })).body).toMatchObject({ runId: expect.any(String) });
    await settled(g);
  });

  test("5.16 an input does not end a turn that waits for an answer, unless it says interrupt", async () => {
    const script: Script = (prompt) => (JSON.stringify(prompt.at(-1)).includes("Add") ? sum : "Done.");
    const g = await start(script);
    const { runId } = (await g.ask("POST", `${scope}/inputs`, { input: "Add" })).body;
    const id = await asked(g);
    await until(async () => (await g.ask("GET", `${scope}/runs/active`)).body === null);
    const refused = expectProblem(await g.ask("POST", `${scope}/inputs`, { input: "Hi" }), 409, "turn_open");
    expect(refused.data).toMatchObject({ runId, interactionIds: [id] });
    const queued = await g.ask("POST", `${scope}/inputs`, { input: "Later", ifActive: "queue" });
    expect(queued.body).toMatchObject({ status: "queued" });
    await respond(g, id, { approved: true });
    await until(async () => JSON.stringify((await g.ask("GET", `${scope}/state`)).body.messages).includes("Later"));
    await settled(g);
    await g.ask("POST", `${scope}/inputs`, { input: "Add" });
    const again = await asked(g);
    const body = { input: "Never mind", ifActive: "interrupt" };
    expect((await g.ask("POST", `${scope}/inputs`, body)).body).toMatchObject({ status: "started" });
    await settled(g);
    expectProblem(await respond(g, again, { approved: true }), 409, "interaction_closed");
  });

  test("5.17 nothing expires unless limits.answerMs says so; then it says when, and a late answer is refused", async () => {
    const clock = manualClock();
    const g = await start([sum, "Done."], { clock });
    const config = { limits: { answerMs: 1000 } };
    await g.ask("POST", `${scope}/inputs`, { input: "Add", config });
    const id = await asked(g);
    const [question] = (await g.ask("GET", `${scope}/state`)).body.interactions;
    expect(question.expiresAt).toBe(question.openedAt + 1000);
    expect((await g.ask("GET", "/interactions")).body.interactions).toMatchObject([{ expiresAt: question.expiresAt }]);
    clock.advance(1000);
    const late = expectProblem(await respond(g, id, { approved: true }), 409, "interaction_closed");
    expect(late.data).toMatchObject({ why: "expired" });
    expect((await g.ask("GET", "/interactions")).body.interactions).toEqual([]);
  });

  test("5.18 the inbox has the questions of all of a tenant's sessions, in pages, and of no other tenant", async () => {
    const auth = (request: Request) => {
      const tenant = request.headers.get("x-tenant");
      return tenant ? { tenant, scopes: [...scopes] } : undefined;
    };
    const headers = (tenant: string) => ({ "x-tenant": tenant });
    const script: Script = (prompt) => (prompt.at(-1)!.role === "tool" ? "Done." : sum);
    const g = await start(script, { auth });
    const path = (id: string) => `/agents/helper/sessions/${id}/branches/main`;
    for (const [tenant, count] of [
      ["ann", 3],
      ["bob", 1],
    ] as const) {
      for (let n = 0; n < count; n++) {
        await g.ask("POST", "/sessions", { sessionId: `s${n}` }, headers(tenant));
        await g.ask("POST", `${path(`s${n}`)}/inputs`, { input: "Add" }, headers(tenant));
      }
    }
    const inbox = async (tenant: string, query = "") =>
      (await g.ask("GET", `/interactions${query}`, undefined, headers(tenant))).body;
    await until(async () => (await inbox("ann")).interactions.length === 3);
    await until(async () => (await inbox("bob")).interactions.length === 1);
    const first = await inbox("ann", "?limit=2");
    expect(first.interactions).toMatchObject([
      { sessionId: "s0", branchId: "main", agentId: "helper", kind: "permission" },
      { sessionId: "s1" },
    ]);
    const rest = await inbox("ann", `?limit=2&cursor=${encodeURIComponent(first.cursor)}`);
    expect(rest.interactions).toMatchObject([{ sessionId: "s2" }]);
    expect(rest.cursor).toBeUndefined();
    expect((await inbox("ann", "?sessionId=s1")).interactions).toHaveLength(1);
    expect((await inbox("ann", "?kind=clarification")).interactions).toEqual([]);
    expect((await inbox("ann", "?agentId=other")).interactions).toEqual([]);
    const [{ id }] = first.interactions;
    const answer = { interactionId: id, answer: { approved: true } };
    expectProblem(await g.ask("POST", `${path("s0")}/responses`, answer, headers("bob")), 404, "interaction_not_found");
    expect((await g.ask("POST", `${path("s0")}/responses`, answer, headers("ann"))).status).toBe(200);
    await until(async () => (await inbox("ann")).interactions.length === 2);
    expect((await g.ask("GET", "/interactions?limit=0", undefined, headers("ann"))).status).toBe(400);
    expect((await g.ask("GET", "/interactions?cursor=x", undefined, headers("ann"))).status).toBe(400);
  });
}

function respond(g: Given, interactionId: string, answer: object) {
  return g.ask("POST", `${scope}/responses`, { interactionId, answer });
}

/** The id of a question that waits. */
function asked(g: Given): Promise<string> {
  return until(async () => (await g.ask("GET", `${scope}/state`)).body.interactions[0]?.id);
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
