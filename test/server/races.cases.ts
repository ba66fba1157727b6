// Many clients at once: every one of them gets an answer that fits the others', and nothing is lost between them.

import { expect, test } from "vitest";
import { type Answer, expectProblem, given, type OpenStore, scope, until } from "./kit.ts";

const session = "/agents/helper/sessions/s";
const main = "/sessions/s/branches/main";

async function many(count: number, ask: (i: number) => Promise<Answer>): Promise<Answer[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => ask(i)));
}

/** One is accepted; all others are told the same. */
function expectOne(answers: readonly Answer[], accepted: number, refused: number, code: string): void {
  expect(answers.filter(({ status }) => status === accepted)).toHaveLength(1);
  for (const answer of answers) if (answer.status !== accepted) expectProblem(answer, refused, code);
}

export function describeRaces(open: OpenStore): void {
  const start: typeof given = (script, options = {}) => given(script, { open, ...options });

  test("3.1, 4.2, 4.3, 4.9, 8.2 of many who make the same thing, one makes it", async () => {
    const { ask } = await start([], { definitions: { models: { "scripted/a": {} as never } } });
    expectOne(await many(20, () => ask("POST", "/sessions", { sessionId: "x" })), 201, 409, "session_exists");
    expectOne(await many(20, () => ask("POST", `${session}/branches`, { branchId: "b" })), 201, 409, "branch_exists");
    expectOne(await many(20, () => ask("POST", `${scope}/fork`, { newBranchId: "f" })), 201, 409, "branch_exists");
    const checkpoint = () => ask("POST", `${main}/checkpoints`, { checkpointId: "c" });
    expectOne(await many(20, checkpoint), 201, 409, "checkpoint_exists");
    expect((await ask("GET", "/sessions/s/branches")).body.branches).toHaveLength(3);
  });

  test("3.5, 4.4 of many patches, none is lost", async () => {
    const { ask } = await start([]);
    const patched = await many(30, (i) => ask("PATCH", i % 2 ? "/sessions/s" : main, { metadata: { [`k${i}`]: i } }));
    for (const { status, body } of patched) expect(status, JSON.stringify(body)).toBe(200);
    expect(Object.keys((await ask("GET", "/sessions/s")).body.metadata)).toHaveLength(15);
    expect(Object.keys((await ask("GET", main)).body.metadata)).toHaveLength(15);
  });

  test("4.5, 5.3 a branch that is deleted while an input comes either runs or is gone", async () => {
    const g = await start(() => "Hi.");
    for (let i = 0; i < 8; i++) {
      expect((await g.ask("POST", `${scope}/fork`, { newBranchId: `f${i}` })).status).toBe(201);
      const [deleted, submitted] = await Promise.all([
        g.ask("DELETE", `/sessions/s/branches/f${i}`),
        g.ask("POST", `${session}/branches/f${i}/inputs`, { input: "Hi" }),
      ]);
      if (submitted.status === 202 && deleted.status === 409) expectProblem(deleted, 409, "run_active");
      else {
        // Gone before the input came, or once its run was over.
        expect(deleted.status, JSON.stringify([deleted.body, submitted.body])).toBe(204);
        if (submitted.status !== 202) expectProblem(submitted, 404, "branch_not_found");
      }
    }
  });

  test("4.5 of many who delete the same branch, one does", async () => {
    const { ask } = await start([]);
    await ask("POST", `${scope}/fork`, { newBranchId: "f" });
    expectOne(await many(10, () => ask("DELETE", "/sessions/s/branches/f")), 204, 404, "branch_not_found");
  });

  test("5.4, 5.5 whatever many ask for at once, their turns come one after the other and all close", async () => {
    const g = await start(() => "Hi.");
    const ways = ["reject", "queue", "interrupt"];
    const answers = await many(18, (i) =>
      g.ask("POST", `${scope}/inputs`, { input: `${i}`, ifActive: ways[i % ways.length] }),
    );
    for (const { status, body } of answers) {
      if (status !== 202) expect(["run_active", "queue_full"]).toContain(body.code);
    }
    const accepted = answers.filter(({ status }) => status === 202);
    const messages = await until(async () => {
      const { body } = await g.ask("GET", `${scope}/state`);
      const said = body.messages.filter(({ role }: { role: string }) => role === "user");
      return body.openTurn === undefined && said.length === accepted.length && said;
    });
    // A message of an input that was queued has the input's id and a number (5.5).
    const ids = messages.map(({ id }: { id: string }) => id.replace(/\.1$/, "")).sort();
    expect(ids).toEqual(accepted.map(({ body }) => body.inputId).sort());
    const open: string[] = [];
    for (const event of (await g.ask("GET", `${main}/events?limit=1000`)).body.events) {
      if (event.type === "turn.started") open.push(event.id);
      if (event.type === "turn.committed" || event.type === "turn.ended") expect(open.pop()).toBe(event.turnId);
      expect(open.length).toBeLessThanOrEqual(1);
    }
  });

  test("6.9 a session that is deleted resets its streams", async () => {
    const g = await start([]);
    const live = await g.live(`${scope}/events/live`);
    await live.until(({ type }) => type === "ready");
    expect((await g.ask("DELETE", "/sessions/s")).status).toBe(204);
    const reset = await live.until(({ type }) => type === "reset");
    expect(reset).toMatchObject({ problem: { status: 404 } });
    await live.toEnd();
  });

  test("6.9 a branch that is deleted and made anew is another: a reader of the first is not fed the second", async () => {
    const g = await start([]);
    await g.ask("POST", `${session}/branches`, { branchId: "b" });
    const live = await g.live(`${session}/branches/b/events/live`);
    await live.until(({ type }) => type === "ready");
    await g.ask("DELETE", "/sessions/s/branches/b");
    await g.ask("POST", `${session}/branches`, { branchId: "b" });
    await g.ask("PATCH", "/sessions/s/branches/b", { name: "second" });
    await live.until(({ type }) => type === "reset");
    expect(live.types).toEqual(["branch.created"]);
  });
}
