import { setImmediate } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { Store } from "../../src/log/index.ts";
import { asks, type Case, deadOwner, idsOf, main, on, refused, result, resultsIn, says, talk, textsOf } from "./kit.ts";

/** A store that writes down which of its methods are called. */
function spied(calls: string[]): (store: Store) => Store {
  return (store) =>
    new Proxy(store, {
      get(target, key) {
        const member = Reflect.get(target, key, target);
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          calls.push(String(key));
          return member.apply(target, args);
        };
      },
    });
}

export function turnCases(test: Case): void {
  describe("a turn", () => {
    test("is uncommitted until it closes, then it is told with what it took", async ({ sessions, clock, other }) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn(main, "What is 1+2?", { runId: "r1", agentId: "calc", metadata: { a: 1 } });
      const elsewhere = await other();
      const open = await elsewhere.loadBranch("s");
      expect(open).toMatchObject({ messages: [], openTurnId: turn.turnId, uncommittedTurn: { id: turn.turnId } });
      expect(textsOf(open.uncommittedTurn!.messages)).toEqual(["What is 1+2?"]);
      expect(open.runs).toEqual([
        { runId: "r1", agentId: "calc", turnId: turn.turnId, startedAt: clock.now(), status: "open" },
      ]);
      clock.advance(7);
      const close = { usage: { inputTokens: 9 }, iterations: 1, reason: "stop", state: { asked: 1 } };
      await turn.commit({ messages: [says("assistant", "3")], ...close });
      const closed = await elsewhere.loadBranch("s");
      expect([textsOf(closed.messages), closed.uncommittedTurn, closed.openTurnId]).toEqual([
        ["What is 1+2?", "3"],
        undefined,
        undefined,
      ]);
      expect(closed.turns).toMatchObject([
        {
          id: turn.turnId,
          status: "committed",
          usage: { inputTokens: 9 },
          iterations: 1,
          reason: "stop",
          endedAt: clock.now(),
        },
      ]);
      expect(closed.runs).toMatchObject([{ runId: "r1", status: "committed", endedAt: clock.now() }]);
      expect(closed.state).toEqual({ asked: 1 });
      expect(open.messages).toEqual([]);
    });

    test("without tools is two appends (Turns-2)", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const calls: string[] = [];
      const writer = await other({ wrap: spied(calls) });
      const turn = await writer.beginTurn(main, "hello");
      await turn.commit({ messages: [says("assistant", "hi")], state: { a: 1 } });
      const writes = calls.filter((name) => !name.startsWith("get") && !["read", "kind"].includes(name));
      expect(writes).toEqual(["append", "append"]);
    });

    test("is one of its branch, and branches run at the same time", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await sessions.forkBranch(main, { newBranchId: "f" });
      const [one, two] = await Promise.all([sessions.beginTurn(main, "one"), sessions.beginTurn(on("f"), "two")]);
      await Promise.all([one.add(asks("m1", "c1")), two.add(asks("m2", "c2"))]);
      const elsewhere = await other();
      expect((await elsewhere.loadBranch({ sessionId: "s", branchId: "main" })).uncommittedTurn).toMatchObject({
        id: one.turnId,
      });
      expect((await elsewhere.loadBranch({ sessionId: "s", branchId: "f" })).uncommittedTurn).toMatchObject({
        id: two.turnId,
      });
      await refused(elsewhere.beginTurn(main, "no"), "run_active", { runId: one.runId, branchId: "main" });
      await refused(elsewhere.resumeTurn(on("f")), "run_active", { runId: two.runId, branchId: "f" });
      await Promise.all([one.toolReturned(result("c1")), two.toolReturned(result("c2"))]);
      await Promise.all([one.commit(), two.end({ status: "failed", error: { message: "boom", code: "x" } })]);
      expect(await elsewhere.loadBranch({ sessionId: "s", branchId: "main" })).toMatchObject({
        turns: [{ status: "committed" }],
      });
      expect(await elsewhere.loadBranch({ sessionId: "s", branchId: "f" })).toMatchObject({
        turns: [{ status: "failed", error: { message: "boom", code: "x" } }],
      });
    });

    test("gets its results in the order of the calls, however they come, each once", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn(main, "go");
      const calls = ["c1", "c2", "c3", "c4", "c5"];
      await turn.add(asks("ask", ...calls));
      await Promise.all(calls.toReversed().map((call) => turn.toolReturned(result(call))));
      await turn.toolReturned(result("c1", "a second result"));
      await turn.toolReturned(result("nobody's"));
      const tools = {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "c9",
            toolName: "add",
            output: { type: "text", value: "v" },
            providerOptions: { p: { q: 1 } },
          },
        ],
      } as const;
      // A part that would have no fact is refused, not dropped.
      const mixed = { ...tools, content: [...tools.content, { type: "custom", kind: "x" }] } as const;
      await refused(turn.add(asks("ask2", "c9"), mixed), "invalid_argument");
      await turn.add(asks("ask2", "c9"), tools);
      await turn.commit();
      const { messages } = await (await other()).loadBranch("s");
      expect(idsOf(messages).slice(1)).toEqual(["ask", "ask.tools", "ask2", "ask2.tools"]);
      expect(Object.entries(resultsIn(messages)[0]!)).toEqual(calls.map((call) => [call, `result of ${call}`]));
      expect(messages.at(-1)!.content).toEqual(tools.content);
    });

    test("closes after the results that are on their way, and before those that come later", async ({
      sessions,
      other,
    }) => {
      await sessions.createSession("s");
      const slow = (store: Store) =>
        new Proxy(store, {
          get(target, key) {
            const member = Reflect.get(target, key, target);
            if (key !== "append") return typeof member === "function" ? member.bind(target) : member;
            return async (...args: Parameters<Store["append"]>) => {
              if (args[1][0]!.data.includes("tool.returned")) await setImmediate();
              return target.append(...args);
            };
          },
        });
      const turn = await (await other({ wrap: slow })).beginTurn(main, "go");
      await turn.add(asks("ask", "c1", "c2"));
      const [first, commit] = [turn.toolReturned(result("c1")), turn.commit()];
      await Promise.all([first, commit]);
      await refused(turn.toolReturned(result("c2")), "epoch_stale");
      const { messages } = await sessions.loadBranch("s");
      expect(resultsIn(messages)).toEqual([{ c1: "result of c1", c2: expect.stringContaining("Not executed") }]);
    });

    test("that is cut off keeps what was seen and answers its calls", async ({ sessions }) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn(main, "go");
      await turn.add(asks("ask", "c1", "c2"));
      await turn.toolReturned(result("c1"));
      const seen = { ...says("assistant", "I was ab", "cut"), partial: true } as const;
      await turn.end({ status: "interrupted", reason: "stopped by ada", messages: [seen] });
      const branch = await sessions.loadBranch("s");
      expect(branch.turns).toMatchObject([{ status: "interrupted", reason: "stopped by ada" }]);
      expect(branch.messages.at(-1)).toMatchObject({ id: "cut", partial: true });
      expect(resultsIn(branch.messages)).toEqual([{ c1: "result of c1", c2: expect.stringContaining("Not executed") }]);
      expect(branch.transcript()).toEqual(branch.messages);
    });

    test("that was left open is closed legally before the next begins (Turns-3)", async ({ sessions }) => {
      await sessions.createSession("s");
      const left = await sessions.beginTurn(main, "first");
      await left.add(asks("ask", "c1"));
      await left.release();
      const next = await sessions.beginTurn(main, "second");
      const open = await sessions.loadBranch("s");
      expect(open.turns).toMatchObject([{ id: left.turnId, status: "interrupted", reason: "superseded" }]);
      expect(resultsIn(open.transcript())).toEqual([{ c1: expect.stringContaining("Not executed") }]);
      await next.release();
      await talk(sessions, main, 1);
      const types = (await sessions.events(main)).map(({ type }) => type);
      expect(types.filter((type) => type === "turn.ended")).toHaveLength(2);
      expect((await sessions.loadBranch("s")).turns.map(({ status }) => status)).toEqual([
        "interrupted",
        "interrupted",
        "committed",
      ]);
    });

    test("writes nothing that is not valid, and goes on", async ({ sessions }) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn(main, "go");
      const { seq } = await sessions.loadBranch("s");
      await refused(turn.add({ role: "robot" as never, content: "x" }), "event_invalid", { path: "role" });
      await refused(
        turn.add(says("assistant", "fine"), { role: "assistant", content: [{ type: "text" }] as never }),
        "event_invalid",
        {
          path: "content.0.text",
        },
      );
      await refused(turn.add({ role: "tool", content: "no result" }), "invalid_argument");
      await refused(turn.commit({ state: { f: (() => 1) as never } }), "invalid_argument");
      await refused(turn.append({ type: "turn.committed", id: "x", at: 1, turnId: "another" }), "event_invalid");
      expect((await sessions.loadBranch("s")).seq).toBe(seq);
      await turn.commit({ messages: [says("assistant", "done")] });
      await refused(sessions.appendTurn(main, [{ role: "user", content: 5 as never }]), "event_invalid");
      expect((await sessions.loadBranch("s")).messages).toHaveLength(2);
    });

    test("uses an id of its own for every message", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      await refused(sessions.appendTurn(main, [says("user", "another", "q1")]), "event_conflict", { eventId: "q1" });
      const turn = await sessions.beginTurn(main, "go");
      await refused(turn.add(says("assistant", "x", "a1")), "event_conflict", { eventId: "a1" });
      await refused(turn.add(says("assistant", "x", "twice"), says("assistant", "y", "twice")), "event_conflict");
      await turn.commit();
    });
  });

  describe("resuming a turn", () => {
    test("takes up what release left: recorded results stay, missing ones are added", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const first = await sessions.beginTurn(main, "go", { runId: "r1" });
      await first.add(asks("ask", "c1", "c2"));
      await first.toolReturned(result("c1"));
      await first.release();
      const elsewhere = await other();
      const { uncommittedTurn } = await elsewhere.loadBranch("s");
      expect(resultsIn(uncommittedTurn!.messages)).toEqual([{ c1: "result of c1" }]);
      const second = await elsewhere.resumeTurn(main, { runId: "r2", agentId: "a" });
      expect(second.turnId).toBe(first.turnId);
      await second.toolReturned(result("c2"));
      await second.commit({ messages: [says("assistant", "done")] });
      const branch = await sessions.loadBranch("s");
      expect(resultsIn(branch.messages)).toEqual([{ c1: "result of c1", c2: "result of c2" }]);
      expect(branch.runs).toMatchObject([
        { runId: "r1", status: "interrupted" },
        { runId: "r2", agentId: "a", status: "committed" },
      ]);
      expect(branch.turns).toHaveLength(1);
    });

    test("takes a dead process's turn at once, and keeps that process out", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const dead = await other({ owner: deadOwner() });
      const lost = await dead.beginTurn(main, "go");
      await lost.add(asks("ask", "c1"));
      const turn = await sessions.resumeTurn(main);
      expect(turn.turnId).toBe(lost.turnId);
      expect(turn.claim.epoch).toBeGreaterThan(lost.claim.epoch);
      const { seq } = await sessions.loadBranch("s");
      await refused(lost.toolReturned(result("c1", "too late")), "epoch_stale", { epoch: lost.claim.epoch });
      await refused(lost.commit(), "epoch_stale");
      await refused(lost.renew(), "epoch_stale");
      await lost.release();
      expect((await sessions.loadBranch("s")).seq).toBe(seq);
      await turn.toolReturned(result("c1"));
      await turn.commit();
      expect(resultsIn((await dead.loadBranch("s")).messages)).toEqual([{ c1: "result of c1" }]);
    });

    test("waits for the lease of a process that may be alive", async ({ sessions, other, clock }) => {
      await sessions.createSession("s");
      const far = await other({ owner: "another-host/1" });
      const theirs = await far.beginTurn(main, "go", { leaseMs: 1000 });
      await refused(sessions.resumeTurn(main), "run_active", { owner: "another-host/1" });
      await refused(sessions.beginTurn(main, "mine"), "run_active", { runId: theirs.runId });
      clock.advance(900);
      await theirs.renew(1000);
      clock.advance(900);
      await refused(sessions.resumeTurn(main), "run_active");
      clock.advance(101);
      const mine = await sessions.resumeTurn(main);
      await refused(theirs.add(says("assistant", "late")), "epoch_stale");
      await mine.commit();
    });

    test("is refused when there is nothing to resume", async ({ sessions }) => {
      await sessions.createSession("s");
      await refused(sessions.resumeTurn(main), "nothing_to_resume", main);
      await talk(sessions, main, 1);
      await refused(sessions.resumeTurn(main), "nothing_to_resume");
      await (await sessions.beginTurn(main, "x")).end({ status: "failed" });
      await refused(sessions.resumeTurn(main), "nothing_to_resume");
      await (await sessions.beginTurn(main, "x")).stage();
      await refused(sessions.resumeTurn(main), "nothing_to_resume");
    });

    test("is won by one of many who try, and nobody else writes", async ({ sessions, other }) => {
      await sessions.createSession("s");
      const dead = await other({ owner: deadOwner() });
      await dead.beginTurn(main, "go");
      const rivals = await Promise.all(Array.from({ length: 5 }, () => other()));
      const outcomes = await Promise.allSettled(rivals.map((rival) => rival.resumeTurn(main)));
      const won = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
      expect(won).toHaveLength(1);
      for (const outcome of outcomes) {
        if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "run_active" });
      }
      await won[0]!.commit();
      expect((await sessions.loadBranch("s")).runs).toHaveLength(2);
    });
  });

  describe("a writer whose branch another has taken over (Turns-4)", () => {
    test("writes nothing, whatever it tries, after a new turn began", async ({ sessions, other, clock }) => {
      await sessions.createSession("s");
      const old = await sessions.beginTurn(main, "old", { leaseMs: 10 });
      await old.add(asks("ask", "c1"));
      clock.advance(11);
      const turn = await (await other()).beginTurn(main, "new");
      const { seq } = await sessions.loadBranch("s");
      const attempts = [
        () => old.add(says("assistant", "x")),
        () => old.toolReturned(result("c1")),
        () => old.append({ type: "state.changed", id: "sc", at: 1, set: { a: 1 } }),
        () => old.commit(),
        () => old.stage(),
        () => old.end({ status: "interrupted" }),
        () => old.renew(),
      ];
      for (const attempt of attempts) await refused(attempt(), "epoch_stale", { epoch: old.claim.epoch });
      await old.release();
      expect((await sessions.loadBranch("s")).seq).toBe(seq);
      await turn.commit();
    });

    test("writes nothing after it closed", async ({ sessions }) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn(main, "go");
      await turn.commit();
      const { seq } = await sessions.loadBranch("s");
      for (const attempt of [
        () => turn.add(says("assistant", "x")),
        () => turn.commit(),
        () => turn.renew(),
        () => turn.release(),
      ]) {
        await refused(attempt(), "epoch_stale");
      }
      expect((await sessions.loadBranch("s")).seq).toBe(seq);
      const other = await sessions.beginTurn(main, "again");
      const closes = await Promise.allSettled([other.commit(), other.commit(), other.end({ status: "failed" })]);
      expect(closes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      expect((await sessions.loadBranch("s")).turns).toHaveLength(2);
    });
  });
}
