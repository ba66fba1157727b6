// Interactions: questions in the log, answered once by whoever has the answer.

import { expect } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import type { Draft } from "../../src/events/index.ts";
import type { InteractionQuery, Sessions, TurnWriter } from "../../src/sessions/index.ts";
import { asks, type Case, main, on, refused, s, says } from "./kit.ts";

/** A turn whose call waits for permission. */
async function waitingTurn(sessions: Sessions, id = "question", more: object = {}): Promise<TurnWriter> {
  const turn = await sessions.beginTurn(s, "go");
  await turn.add(asks(`asked-${id}`, `call-${id}`));
  await turn.append(opened(turn, id, more));
  return turn;
}

function opened({ turnId }: TurnWriter, id: string, more: object = {}): Draft {
  const request = { toolName: "add", input: {} };
  return { type: "interaction.opened", id, at: 1, turnId, kind: "permission", request, ...more } as Draft;
}

export function interactionCases(test: Case): void {
  test("interactions: an open question is on the branch, with what it shows, until it is answered", async ({
    sessions,
  }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions);
    const { interactions } = await sessions.loadBranch("s");
    expect(interactions).toMatchObject([
      { id: "question", kind: "permission", turnId: turn.turnId, request: { toolName: "add", input: {} } },
    ]);
    const fact = await sessions.answer(s, "question", { approved: true }, { by: "ann" });
    expect(fact).toMatchObject({ type: "interaction.answered", interactionId: "question", by: "ann" });
    expect((await sessions.loadBranch("s")).interactions).toEqual([]);
    await turn.commit();
  });

  test("interactions: another process answers while the branch is held, and the holder goes on", async ({
    sessions,
    other,
  }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions);
    await (await other()).answer(s, "question", { approved: true });
    await turn.toolReturned({ callId: "call-question", toolName: "add", output: { type: "text", value: "3" } });
    await turn.commit({ messages: [says("assistant", "Three.")] });
    const types = (await sessions.events(s)).map(({ type }) => type);
    expect(types.slice(-4)).toEqual(["interaction.answered", "tool.returned", "message.added", "turn.committed"]);
  });

  test("interactions: of many answers at once from two processes, one counts", async ({ sessions, other }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions);
    const second = await other();
    const tries = Array.from({ length: 8 }, (_, n) =>
      (n % 2 ? sessions : second).answer(s, "question", { approved: n > 3 }),
    );
    const ends = await Promise.allSettled(tries);
    const won = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
    expect(won).toHaveLength(1);
    for (const end of ends) {
      if (end.status === "rejected")
        expect(end.reason).toMatchObject({ code: "interaction_closed", data: { why: "answered" } });
    }
    const answers = (await sessions.events(s)).filter(({ type }) => type === "interaction.answered");
    expect(answers.map(({ id }) => id)).toEqual([won[0]!.id]);
    await turn.commit();
  });

  test("interactions: an answer and other facts written at the same time all stay", async ({ sessions, other }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions);
    const second = await other();
    await Promise.all([
      second.answer(s, "question", { approved: true }),
      sessions.updateBranch({ sessionId: "s", branchId: "main" }, { name: "renamed" }),
      turn.toolReturned({ callId: "call-question", toolName: "add", output: { type: "text", value: "3" } }),
    ]);
    await turn.commit();
    const types = (await sessions.events(s)).map(({ type }) => type);
    for (const type of ["interaction.answered", "branch.updated", "tool.returned"]) {
      expect(types.filter((each) => each === type)).toHaveLength(1);
    }
  });

  test("interactions: of an answer and an expiry, the first in the log counts", async ({ sessions }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions);
    await turn.append({
      type: "interaction.expired",
      id: "over",
      at: 1,
      interactionId: "question",
      reason: "no answer",
    });
    await refused(sessions.answer(s, "question", {}), "interaction_closed", { why: "expired" });
    await turn.append(opened(turn, "again"));
    await sessions.answer(s, "again", { approved: true });
    await turn.append({ type: "interaction.expired", id: "over2", at: 1, interactionId: "again", reason: "no answer" });
    await refused(sessions.answer(s, "again", {}), "interaction_closed");
    await turn.commit();
  });

  test("interactions: nobody may answer from the moment on that it expires, though the log does not say so yet", async ({
    sessions,
    clock,
  }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions, "question", { expiresAt: clock.now() + 100 });
    const late = { expiresAt: clock.now() + 1000 };
    await turn.append(opened(turn, "later", late));
    clock.advance(100);
    await refused(sessions.answer(s, "question", {}), "interaction_closed", { why: "expired" });
    await sessions.answer(s, "later", { approved: true });
    await turn.commit();
  });

  test("interactions: a question of a closed turn is closed, however it closed", async ({ sessions }) => {
    await sessions.createSession("s");
    const ends = [
      (turn: TurnWriter) => turn.commit(),
      (turn: TurnWriter) => turn.end({ status: "interrupted" }),
      (turn: TurnWriter) => turn.end({ status: "failed", error: { message: "no" } }),
      async (turn: TurnWriter) => {
        await turn.release();
        await (await sessions.beginTurn(s, "new")).commit();
      },
      async (turn: TurnWriter) => {
        await turn.release();
        await sessions.revertBranch(s, { toMessageIndex: 0 });
      },
    ];
    for (const [n, end] of ends.entries()) {
      await end(await waitingTurn(sessions, `q${n}`));
      expect((await sessions.loadBranch("s")).interactions).toEqual([]);
      await refused(sessions.answer(s, `q${n}`, {}), "interaction_closed", { why: "turn-closed" });
    }
  });

  test("interactions: a question survives its process: the one that comes after finds it under its id", async ({
    sessions,
    other,
  }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions);
    await turn.release();
    const later = await other();
    expect((await later.loadBranch("s")).interactions).toMatchObject([{ id: "question" }]);
    await later.answer(s, "question", { approved: true });
    const resumed = await later.resumeTurn(s);
    await resumed.commit();
    await refused(sessions.answer(s, "question", {}), "interaction_closed", { why: "answered" });
  });

  test("interactions: a fork closes the questions of the turn it was taken from; the source keeps them", async ({
    sessions,
  }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions);
    await sessions.forkBranch(main, { newBranchId: "fork" });
    await sessions.forkBranch(main, { fromMessageIndex: 0, newBranchId: "before" });
    expect((await sessions.loadBranch({ sessionId: "s", branchId: "fork" })).interactions).toEqual([]);
    for (const branchId of ["fork", "before"]) {
      await refused(sessions.answer(on(branchId), "question", {}), "interaction_not_found");
    }
    await sessions.answer(main, "question", { approved: true });
    await turn.commit();
  });

  test("interactions: what is no answer is refused, and leaves nothing behind", async ({ sessions }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions);
    const { seq } = await sessions.loadBranch("s");
    for (const answer of ["yes", null, undefined, 7, [], new Date(0), { n: Number.NaN }, { f() {} }]) {
      await refused(sessions.answer(s, "question", answer as never), "invalid_argument");
    }
    await refused(sessions.answer(s, "question", { text: "x".repeat(8 * 1024 * 1024) }), "limit_exceeded");
    const deep = JSON.parse(`${'{"a":'.repeat(80)}1${"}".repeat(80)}`);
    await refused(sessions.answer(s, "question", deep), "limit_exceeded");
    await refused(sessions.answer({ sessionId: "nowhere" }, "question", {}), "session_not_found");
    await refused(sessions.answer(s, "other", {}), "interaction_not_found", { interactionId: "other" });
    expect((await sessions.loadBranch("s")).seq).toBe(seq);
    await sessions.answer(s, "question", { approved: false, reason: "x".repeat(500_000) });
    await turn.commit();
  });

  test("interactions: an answer fits its question's kind, or is refused with what is wanted", async ({ sessions }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions);
    for (const kind of ["clarification", "continuation", "client-tool"] as const) {
      await turn.append(opened(turn, kind, { kind }));
    }
    const wrong: [string, JsonObject, RegExp][] = [
      ["question", { aproved: true }, /"aproved".*approved: true/],
      ["question", { approved: true, always: true }, /"always".*choice/],
      ["question", {}, /lacks "approved"/],
      ["question", { approved: 1 }, /"approved"/],
      ["clarification", { text: "Rome" }, /"text".*answer/],
      ["continuation", { approved: true, iterations: 0 }, /"iterations"/],
      ["client-tool", { result: 3 }, /"result".*output/],
      ["client-tool", { output: 3, tools: { hide: "all" } }, /"tools.hide"/],
    ];
    for (const [id, answer, sentence] of wrong) {
      const error = await sessions.answer(s, id, answer).catch((thrown: unknown) => thrown);
      expect(error, JSON.stringify(answer)).toMatchObject({
        code: "invalid_argument",
        message: expect.stringMatching(sentence),
      });
    }
    await sessions.answer(s, "question", { approved: true, choice: "always", output: { type: "json", value: [1] } });
    await sessions.answer(s, "clarification", { answer: "Rome" });
    await sessions.answer(s, "continuation", { approved: true, iterations: 2 });
    await sessions.answer(s, "client-tool", { output: null, tools: { hide: ["a"], show: [] } });
    await turn.commit();
  });

  test("interactions: the inbox has every question that waits, of all sessions, in pages", async ({
    sessions,
    other,
  }) => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) {
      const sessionId = `s${n}`;
      await sessions.createSession(sessionId);
      const turn = await sessions.beginTurn({ sessionId }, "go", { agentId: n % 2 ? "odd" : "even", runId: `r${n}` });
      if (n === 1) continue;
      const count = n === 2 ? 3 : 1;
      for (let k = 0; k < count; k++)
        await turn.append(opened(turn, `q${n}-${k}`, n === 4 ? { kind: "clarification" } : {}));
      ids.push(...Array.from({ length: count }, (_, k) => `q${n}-${k}`));
      if (n !== 0) await turn.release();
    }
    const later = await other();
    const all = await later.listInteractions();
    expect(all.interactions.map(({ id }) => id)).toEqual(ids);
    expect(all.cursor).toBeUndefined();
    expect(all.interactions[0]).toMatchObject({
      sessionId: "s0",
      branchId: "main",
      agentId: "even",
      runId: "r0",
      kind: "permission",
    });
    for (const limit of [1, 2, 4]) expect(await pages(later, { limit })).toEqual(ids);
    expect(await pages(later, { limit: 2, sessionId: "s2" })).toEqual(["q2-0", "q2-1", "q2-2"]);
    expect(await pages(later, { kind: "clarification" })).toEqual(["q4-0"]);
    expect(await pages(later, { agentId: "odd" })).toEqual(["q3-0"]);
    await later.answer({ sessionId: "s2" }, "q2-1", { approved: true });
    await (await later.resumeTurn({ sessionId: "s3" })).commit();
    expect(await pages(sessions, { limit: 2 })).toEqual(["q0-0", "q2-0", "q2-2", "q4-0"]);
    await refused(sessions.listInteractions({ cursor: "nonsense" }), "invalid_argument");
    await refused(sessions.listInteractions({ limit: -1 }), "invalid_argument");
  });

  test("interactions: the inbox forgets what expires, is forked, reverted, answered or deleted", async ({
    sessions,
    clock,
  }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions, "soon", { expiresAt: clock.now() + 100 });
    await turn.append(opened(turn, "open"));
    await sessions.forkBranch(main, { newBranchId: "fork" });
    expect(await pages(sessions, {})).toEqual(["soon", "open"]);
    clock.advance(100);
    expect(await pages(sessions, {})).toEqual(["open"]);
    await turn.release();
    await sessions.revertBranch(main, { toMessageIndex: 0 });
    expect(await pages(sessions, {})).toEqual([]);
    expect((await sessions.store.listOpen()).branches).toEqual([]);
  });

  test("interactions: a question that belongs to no turn is in the inbox until it is answered", async ({
    sessions,
  }) => {
    await sessions.createSession("s");
    const turn = await sessions.beginTurn(s, "go");
    await turn.append(opened(turn, "free", { turnId: undefined, kind: "clarification" }));
    await turn.commit();
    expect(await pages(sessions, {})).toEqual(["free"]);
    await sessions.answer(s, "free", { answer: "yes" });
    expect(await pages(sessions, {})).toEqual([]);
    expect((await sessions.store.listOpen()).branches).toEqual([]);
  });

  test("interactions: answers of another process are never lost from or left in the header", async ({
    sessions,
    other,
  }) => {
    await sessions.createSession("s");
    const turn = await waitingTurn(sessions, "a");
    const second = await other();
    await turn.append(opened(turn, "b"));
    await second.answer(s, "a", { approved: true });
    await turn.append(
      { type: "interaction.expired", id: "over", at: 1, interactionId: "b", reason: "changed" },
      opened(turn, "c"),
    );
    expect((await sessions.store.listOpen()).branches[0]!.header).toMatchObject({ asks: ["c"] });
    await second.answer(s, "c", { approved: true });
    await turn.commit();
    expect((await sessions.store.listOpen()).branches).toEqual([]);
  });
}

async function pages(sessions: Sessions, query: InteractionQuery): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await sessions.listInteractions({ ...query, ...(cursor !== undefined && { cursor }) });
    ids.push(...page.interactions.map(({ id }) => id));
    if (page.cursor === undefined) return ids;
    cursor = page.cursor;
  }
}
