// The queue of a branch: inputs that wait, exactly once each, whoever queues, edits, withdraws or takes them, and what forks,
// reverts, staged turns and other processes do to them.

import { expect } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import type { Sessions } from "../../src/sessions/index.ts";
import { type Case, deadOwner, idsOf, main, on, refused, s, says, talk, textsOf } from "./kit.ts";

export const queueOf = async (sessions: Sessions, branchId = "main") =>
  (await sessions.loadBranch(on(branchId))).queue.map(({ id }) => id);

/** Takes what is next and completes its turn. */
export async function takeAll(sessions: Sessions): Promise<string[][]> {
  const taken: string[][] = [];
  for (;;) {
    const turn = await sessions.takeInputs(main);
    if (!turn) return taken;
    await turn.commit({ messages: [says("assistant", "done")] });
    const [started] = await sessions.events(main, { turnId: turn.turnId, type: "turn.started" });
    taken.push((started as { inputs?: string[] }).inputs ?? []);
  }
}

export function queueCases(test: Case): void {
  test("queue: an input waits on the branch as it was sent, is found by its row, and begins the next turn", async ({
    sessions,
    store,
    other,
  }) => {
    await sessions.createSession("s");
    const request = { config: { temperature: 0 }, identity: { user: "ann" } };
    const sent = { inputId: "in1", by: "ann", agentId: "a", metadata: { m: 1 }, request };
    expect(await sessions.queueInput(s, "Hello", sent)).toEqual({ inputId: "in1", isNew: true });
    const [queued] = await sessions.listQueue(s);
    const content = [{ type: "text", text: "Hello" }];
    expect(queued).toMatchObject({
      id: "in1",
      when: "idle",
      by: "ann",
      request,
      messages: [{ role: "user", content }],
    });
    expect((await store.listOpen()).branches.map(({ header }) => header.queued)).toEqual([1]);
    expect(await sessions.getBranch(main)).toMatchObject({ queued: 1, messageCount: 0 });
    const turn = (await (await other()).takeInputs(s))!;
    expect(await queueOf(sessions)).toEqual([]);
    const { uncommittedTurn } = await sessions.loadBranch(s);
    expect(uncommittedTurn).toMatchObject({ by: "ann", metadata: { m: 1 }, request });
    expect(uncommittedTurn!.messages).toMatchObject([{ id: "in1.1", role: "user", content, inputId: "in1" }]);
    await turn.commit();
    expect((await store.listOpen()).branches).toEqual([]);
    expect(await sessions.takeInputs(s)).toBeUndefined();
  });

  test("queue: SessionsQueue-1. the same id is queued once, also after it was taken, and also by another process", async ({
    sessions,
    other,
  }) => {
    await sessions.createSession("s");
    const again = await other();
    await sessions.queueInput(s, "one", { inputId: "in1" });
    expect(await sessions.queueInput(s, "one", { inputId: "in1" })).toEqual({ inputId: "in1", isNew: false });
    expect(await again.queueInput(s, "other words", { inputId: "in1" })).toEqual({ inputId: "in1", isNew: false });
    expect(await takeAll(sessions)).toEqual([["in1"]]);
    expect(await again.queueInput(s, "one", { inputId: "in1" })).toEqual({ inputId: "in1", isNew: false });
    // An id that a message has, such as one of an input that began its turn at once.
    await talk(sessions, s, 1);
    expect(await again.queueInput(s, "q1", { inputId: "q1" })).toEqual({ inputId: "q1", isNew: false });
    expect(await takeAll(again)).toEqual([]);
  });

  test("queue: inputs wait while a turn is open, each begins a turn, oldest first; a limit refuses further ones", async ({
    sessions,
    other,
  }) => {
    await sessions.createSession("s");
    const turn = await sessions.beginTurn(s, "go");
    const elsewhere = await other();
    for (const inputId of ["i1", "i2", "i3"]) await elsewhere.queueInput(s, inputId, { inputId, limit: 3 });
    await refused(sessions.queueInput(s, "i4", { inputId: "i4", limit: 3 }), "queue_full", { limit: 3 });
    await refused(sessions.takeInputs(s), "turn_open", { turnId: turn.turnId });
    await turn.commit({ messages: [says("assistant", "done")] });
    expect(await queueOf(sessions)).toEqual(["i1", "i2", "i3"]);
    expect(await takeAll(elsewhere)).toEqual([["i1"], ["i2"], ["i3"]]);
  });

  test("queue: an input that steers joins the open turn, once; what has another request waits for a turn of its own", async ({
    sessions,
    other,
  }) => {
    await sessions.createSession("s");
    const turn = await sessions.beginTurn(s, "go", { agentId: "a" });
    const elsewhere = await other();
    await elsewhere.queueInput(s, "left", { inputId: "i1", when: "steer", agentId: "a" });
    await elsewhere.queueInput(s, "later", { inputId: "i2", agentId: "a" });
    const request = { identity: { user: "eve" } };
    await elsewhere.queueInput(s, "as Eve", { inputId: "i3", when: "steer", agentId: "a", request });
    await elsewhere.queueInput(s, "behind it", { inputId: "i4", when: "steer", agentId: "a" });
    expect(await turn.steer()).toMatchObject([{ type: "message.added", source: "steer", inputId: "i1", id: "i1.1" }]);
    expect(await turn.steer()).toEqual([]);
    await turn.commit();
    expect(textsOf((await sessions.loadBranch(s)).messages)).toEqual(["go", "left"]);
    expect((await sessions.loadBranch(s)).messages.at(-1)).toMatchObject({ source: "steer", inputId: "i1" });
    expect(await takeAll(sessions)).toEqual([["i2"], ["i3"], ["i4"]]);
  });

  test("queue: Q4. ends of tasks are taken together, and so are messages that came too late to steer", async ({
    sessions,
  }) => {
    await sessions.createSession("s");
    const task = (taskId: string) => ({ inputId: `${taskId}.in`, source: { kind: "task" as const, taskId } });
    await sessions.queueInput(s, "one ended", task("k1"));
    await sessions.queueInput(s, "hi", { inputId: "i1" });
    await sessions.queueInput(s, "two ended", task("k2"));
    await sessions.queueInput(s, "left", { inputId: "i2", when: "steer" });
    await sessions.queueInput(s, "right", { inputId: "i3", when: "steer" });
    await sessions.queueInput(s, "as Eve", { inputId: "i4", when: "steer", by: "eve" });
    expect(await takeAll(sessions)).toEqual([["k1.in", "k2.in"], ["i1"], ["i2", "i3"], ["i4"]]);
    const { messages } = await sessions.loadBranch(s);
    expect(messages.filter(({ source }) => source === "task").map(({ inputId }) => inputId)).toEqual([
      "k1.in",
      "k2.in",
    ]);
  });

  test("queue: an input can be edited and withdrawn until it is taken, and says what became of it afterwards", async ({
    sessions,
    other,
  }) => {
    await sessions.createSession("s");
    const elsewhere = await other();
    for (const inputId of ["i1", "i2"]) await sessions.queueInput(s, inputId, { inputId });
    expect(await elsewhere.editInput(s, "i1", { input: "other words", when: "steer" })).toMatchObject({
      when: "steer",
    });
    expect((await sessions.listQueue(s))[0]).toMatchObject({ id: "i1", when: "steer", editedAt: expect.any(Number) });
    await elsewhere.withdrawInput(s, "i2", { by: "ann", reason: "not needed" });
    const why = { inputId: "i2", why: "withdrawn" };
    await refused(sessions.withdrawInput(s, "i2"), "input_closed", why);
    await refused(sessions.editInput(s, "i2", { input: "x" }), "input_closed", why);
    const turn = (await sessions.takeInputs(s))!;
    const taken = { inputId: "i1", why: "taken", turnId: turn.turnId };
    await refused(elsewhere.withdrawInput(s, "i1"), "input_closed", taken);
    await refused(elsewhere.editInput(s, "i1", { when: "idle" }), "input_closed", taken);
    await refused(sessions.withdrawInput(s, "i9"), "input_not_found", { inputId: "i9" });
    await refused(sessions.editInput(s, "i9", {}), "invalid_argument");
    await turn.commit();
    expect(textsOf((await sessions.loadBranch(s)).messages)).toEqual(["other words"]);
    const check = () => {
      throw new BoughError("invalid_argument", "Not yours.");
    };
    await sessions.queueInput(s, "mine", { inputId: "i3" });
    await refused(sessions.withdrawInput(s, "i3", { check }), "invalid_argument");
    expect(await queueOf(sessions)).toEqual(["i3"]);
  });

  test("queue: SessionsQueue-2. of a withdrawal and a taking at the same moment one wins, and the other says so", async ({
    sessions,
    other,
  }) => {
    await sessions.createSession("s");
    const elsewhere = await other();
    for (let n = 0; n < 12; n++) {
      const inputId = `i${n}`;
      await sessions.queueInput(s, inputId, { inputId });
      const [taken, withdrawn] = await Promise.all([
        sessions.takeInputs(s),
        elsewhere.withdrawInput(s, inputId).then(
          () => true,
          (error: unknown) => {
            expect(error).toMatchObject({ code: "input_closed", data: { why: "taken" } });
            return false;
          },
        ),
      ]);
      expect(withdrawn).toBe(taken === undefined);
      await taken?.commit();
    }
  });

  test("queue: forks begin with an empty queue, reverts keep it, and what was taken is not queued again", async ({
    sessions,
    other,
  }) => {
    await sessions.createSession("s");
    await talk(sessions, s, 1);
    await sessions.queueInput(s, "i1", { inputId: "i1" });
    await (await sessions.takeInputs(s))!.commit();
    await sessions.queueInput(s, "i2", { inputId: "i2" });
    await sessions.forkBranch(s, { newBranchId: "fork" });
    for (const each of [sessions, await other()]) {
      expect(await queueOf(each, "fork")).toEqual([]);
      expect(await each.getBranch(on("fork"))).not.toHaveProperty("queued");
    }
    await sessions.revertBranch(main, { to: "q1" });
    expect(await queueOf(sessions)).toEqual(["i2"]);
    expect(await queueOf(await other())).toEqual(["i2"]);
    // As it was before, and the log keeps it.
    const { seq } = await sessions.loadBranch(main);
    expect((await sessions.loadBranch(main, { at: seq - 1 })).queue.map(({ id }) => id)).toEqual(["i2"]);
    expect((await sessions.loadBranch(main, { at: 3 })).queue).toEqual([]);
    expect(await takeAll(sessions)).toEqual([["i2"]]);
  });

  test("queue: a turn whose process died keeps what it took, and the rest waits behind it", async ({
    sessions,
    other,
  }) => {
    await sessions.createSession("s");
    const dying = await other({ owner: deadOwner() });
    for (const inputId of ["i1", "i2"]) await sessions.queueInput(s, inputId, { inputId });
    const turn = (await dying.takeInputs(s))!;
    await refused(sessions.takeInputs(s), "turn_open");
    const resumed = await sessions.resumeTurn(s);
    expect(resumed.turnId).toBe(turn.turnId);
    await refused(
      turn.steer().then(() => turn.add(says("assistant", "late"))),
      "epoch_stale",
    );
    await resumed.commit({ messages: [says("assistant", "done")] });
    expect(idsOf((await sessions.loadBranch(s)).messages).slice(0, 1)).toEqual(["i1.1"]);
    expect(await takeAll(sessions)).toEqual([["i2"]]);
  });

  test("queue: staged turns don't hold it up, and go without it when they are discarded", async ({
    sessions,
    other,
  }) => {
    await sessions.createSession("s");
    const staging = await other({ owner: deadOwner() });
    for (const inputId of ["i1", "i2"]) await sessions.queueInput(s, inputId, { inputId });
    await (await staging.takeInputs(s))!.stage();
    expect(await queueOf(sessions)).toEqual(["i2"]);
    expect((await sessions.loadBranch(s)).stagedTurns).toEqual([]);
    expect(await takeAll(sessions)).toEqual([["i2"]]);
  });

  test("queue: a long branch with a queue is loaded cold as it is", async ({ sessions, other }) => {
    await sessions.createSession("s");
    await sessions.queueInput(s, "waits", { inputId: "i0" });
    const turn = (messages: number) =>
      sessions.appendTurn(
        s,
        Array.from({ length: messages }, (_, i) => says("user", `m${i}`)),
      );
    for (let n = 0; n < 3; n++) await turn(600);
    await sessions.queueInput(s, "waits, too", { inputId: "i1" });
    await sessions.withdrawInput(s, "i0");
    expect(await queueOf(await other())).toEqual(["i1"]);
    expect((await (await other()).listQueue(s)).map(({ id }) => id)).toEqual(["i1"]);
  });

  test("queue: what can't be an input is refused, and nothing is queued", async ({ sessions }) => {
    await sessions.createSession("s");
    const tool = { role: "tool" as const, content: [] };
    await refused(sessions.queueInput(s, [tool]), "invalid_argument");
    await refused(sessions.queueInput(s, []), "event_invalid");
    await refused(sessions.queueInput(s, "x", { inputId: "" }), "invalid_argument");
    await refused(sessions.queueInput("no", "x"), "session_not_found");
    await refused(sessions.listQueue(on("no")), "branch_not_found");
    expect(await queueOf(sessions)).toEqual([]);
  });
}
