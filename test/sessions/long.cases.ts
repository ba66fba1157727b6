import { describe, expect } from "vitest";
import type { SegmentCache, Store } from "../../src/log/index.ts";
import type { Branch, Sessions } from "../../src/sessions/index.ts";
import { appendRaw, type Case, type Given, idsOf, main, on, replay, says } from "./kit.ts";

const perTurn = 50;
const message = (n: number) => says(n % 2 ? "assistant" : "user", `message ${n}`, `m${n}`);

/** Messages m{from} … m{to-1}, fifty a turn. */
async function write(sessions: Sessions, branchId: string, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n += perTurn) {
    const messages = Array.from({ length: Math.min(perTurn, to - n) }, (_, i) => message(n + i));
    await sessions.appendTurn(on(branchId), messages, { state: { upTo: n + messages.length } });
  }
}

interface Reads {
  /** How many facts were read, one by one or in pages. */
  facts: number;
  segments: number;
}

/** Sessions with nothing cached, on a store that counts what is read. */
async function counted(given: Given): Promise<{ sessions: Sessions; reads: Reads }> {
  const reads = { facts: 0, segments: 0 };
  const wrap = (store: Store) =>
    new Proxy(store, {
      get(target, key) {
        const member = Reflect.get(target, key, target);
        if (key === "segments" && member) return countedSegments(member, reads);
        if (typeof member !== "function") return member;
        return async (...args: unknown[]) => {
          const answer = await member.apply(target, args);
          if (key === "read") reads.facts += answer.length;
          return answer;
        };
      },
    });
  return { sessions: await given.other({ wrap }), reads };
}

function countedSegments(segments: SegmentCache, reads: Reads): SegmentCache {
  return {
    ...segments,
    async get(ref, at) {
      const segment = await segments.get(ref, at);
      if (segment) reads.segments += 1;
      return segment;
    },
  };
}

/** The branch as a picture, without what a row may know better. */
function told({ lastActivity: _, ...branch }: Branch): string {
  return JSON.stringify([branch, branch.state]);
}

async function same(given: Given, branchId: string): Promise<Reads> {
  const cached = await given.sessions.loadBranch({ sessionId: "s", branchId });
  const { sessions, reads } = await counted(given);
  const cold = await sessions.loadBranch({ sessionId: "s", branchId });
  expect(told(cold)).toBe(told(cached));
  expect(JSON.stringify(cold.messages)).toBe(JSON.stringify((await replay(given.store, on(branchId))).shown));
  return reads;
}

/** Waits until the segments that are being cut are stored: a writer does so before it closes. */
async function sealed(store: Store, branchId: string, at: number): Promise<number> {
  for (;;) {
    const segment = await store.segments!.get(on(branchId), at);
    if (segment) return segment.to;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export function longCases(test: Case): void {
  describe("a long branch", () => {
    test("is loaded cold from its segments and the tail of its log, and is the same", async (given) => {
      const { sessions, store } = given;
      await sessions.createSession("s");
      await write(sessions, "main", 0, 3000);
      const { seq } = await sessions.loadBranch("s");
      const to = await sealed(store, "main", seq);
      const reads = await same(given, "main");
      expect(reads.segments).toBeGreaterThanOrEqual(2);
      // The tail, and one fact to see that the newest piece is ours.
      expect(reads.facts).toBeLessThanOrEqual(seq - to + 1);
      const early = await (await counted(given)).sessions.loadBranch(
        { sessionId: "s", branchId: "main" },
        { at: to + 3 },
      );
      expect(JSON.stringify(early.messages)).toBe(JSON.stringify((await replay(store, main, to + 3)).shown));
    });

    test("is the same after reverts across its segments, and forks before and after them", async (given) => {
      const { sessions, store } = given;
      await sessions.createSession("s");
      await write(sessions, "main", 0, 2600);
      await sealed(store, "main", (await sessions.loadBranch("s")).seq);
      await sessions.forkBranch(main, { newBranchId: "early", from: "m500" });
      await sessions.forkBranch(main, { newBranchId: "between", from: "m1499" });
      await sessions.forkBranch(main, { newBranchId: "late", from: "m2590" });
      await sessions.revertBranch(main, { to: "m1777" });
      await same(given, "main");
      await write(sessions, "main", 3000, 4500);
      await sessions.revertBranch(main, { to: "m20" });
      await same(given, "main");
      await write(sessions, "main", 5000, 6200);
      await sessions.revertBranch(main, { to: "m5999" });
      for (const branchId of ["early", "between", "late"]) await write(sessions, branchId, 7000, 8100);
      for (const branchId of ["main", "early", "between", "late"]) await same(given, branchId);
      const messages = idsOf((await sessions.loadBranch({ sessionId: "s", branchId: "between" })).messages);
      expect([messages.length, messages[1499], messages[1500]]).toEqual([2600, "m1499", "m7000"]);
    });

    test("does not believe a segment that is garbage, of another format, of another log, or its own successor (V3)", async (given) => {
      const { sessions, store } = given;
      await sessions.createSession("s");
      await write(sessions, "main", 0, 200);
      await sessions.createBranch("s", { branchId: "b" });
      await write(sessions, "b", 5000, 6400);
      const b = await sessions.loadBranch({ sessionId: "s", branchId: "b" });
      const foreign = (await store.segments!.get(on("b"), await sealed(store, "b", b.seq)))!;
      await write(sessions, "main", 200, 1000);
      const { seq } = await sessions.loadBranch({ sessionId: "s", branchId: "main" });
      const head = JSON.parse(foreign.lines[0]!);
      const again = JSON.stringify({
        ...head,
        before: [{ to: 60, id: head.id, messages: 0, turns: 0 }],
        rest: { ...head.rest, seq: 60 },
      });
      const [real] = await store.read(main, { after: 59, limit: 1 });
      const lies = [
        ["not JSON"],
        [],
        ["null"],
        ["{}"],
        ['{"format":2}'],
        ['{"format":1}'],
        foreign.lines,
        [again, ...foreign.lines.slice(1)],
      ];
      const lie = async (lines: readonly string[]) => {
        await store.segments!.save(main, { to: 60, lines });
        await store.segments!.save(main, { to: seq, lines });
        await same(given, "main");
      };
      await lie([again.replaceAll(head.id, real!.id)]);
      for (const lines of lies) {
        await lie(lines);
        const { sessions: cold } = await counted(given);
        await cold.forkBranch(main, { newBranchId: "f", from: "m149" });
        await cold.revertBranch(on("f"), { to: "m99" });
        const fork = await cold.loadBranch({ sessionId: "s", branchId: "f" });
        expect([fork.messageCount, fork.state]).toEqual([100, { upTo: 100 }]);
        await cold.deleteBranch({ sessionId: "s", branchId: "f" });
      }
    });

    test("does not believe an older segment that is not the one its successor was cut after (V3)", async (given) => {
      const { sessions, store } = given;
      await sessions.createSession("s");
      await write(sessions, "main", 0, 2600);
      const { seq } = await sessions.loadBranch("s");
      let at = await sealed(store, "main", seq);
      while (JSON.parse((await store.segments!.get(main, at))!.lines[0]!).before.length === 0) {
        at = await sealed(store, "main", seq);
      }
      const older = (await store.segments!.get(main, at - 1))!;
      const { id } = JSON.parse(older.lines[0]!);
      const lines = older.lines.map((line) => line.replaceAll(id, "another").replaceAll("message 1", "a lie"));
      await store.segments!.save(main, { to: older.to, lines });
      await same(given, "main");
    });

    test("keeps the outcome of its turns apart from what segments said of them before a revert", async (given) => {
      const { sessions, store } = given;
      await sessions.createSession("s");
      await write(sessions, "main", 0, 1050);
      const { seq } = await sessions.loadBranch("s");
      await sealed(store, "main", seq);
      // Back to right after the last message: its turn is cut off before its end, and no message is lost.
      await sessions.revertBranch(main, { toSeq: seq - 2 });
      expect((await sessions.loadBranch("s")).turns.at(-1)).toMatchObject({
        status: "interrupted",
        reason: "reverted",
      });
      await same(given, "main");
      await write(sessions, "main", 2000, 3200);
      await same(given, "main");
    });

    test("with large messages is cut by their size, also after compactions", async (given) => {
      const { sessions, store } = given;
      await sessions.createSession("s");
      const large = "x".repeat(400_000);
      const add = async (from: number, to: number) => {
        for (let n = from; n <= to; n++) {
          await sessions.appendTurn(main, [says("user", `${n}`, `q${n}`), says("assistant", large, `a${n}`)]);
        }
      };
      await add(1, 4);
      await sealed(store, "main", (await sessions.loadBranch("s")).seq);
      const replacements = [{ id: "sum", role: "system" as const, content: "short" }];
      const range = { from: 0, to: 4, first: "q1", last: "a2", replacements };
      await appendRaw(store, main, { type: "history.compacted", id: "h1", at: 1, retention: "hard", ...range });
      await add(5, 8);
      const summary = [{ ...replacements[0]!, id: "sum2" }];
      const soft = { from: 4, to: 8, first: "q3", last: "a4", replacements: summary };
      await appendRaw(store, main, { type: "history.compacted", id: "h2", at: 1, retention: "soft", ...soft });
      await add(9, 10);
      const reads = await same(given, "main");
      expect(reads.segments).toBeGreaterThanOrEqual(1);
      const { sessions: cold } = await counted(given);
      expect(idsOf((await cold.loadBranch("s")).transcript()).slice(0, 3)).toEqual(["sum", "sum2", "q5"]);
    });
  });

  describe("a chain of a thousand forks", () => {
    test("reads as one branch, knows its ancestors, and can be forked at its beginning", async (given) => {
      const { sessions } = given;
      const depth = 1000;
      await sessions.createSession("s");
      await sessions.appendTurn(main, [message(0), message(1)]);
      for (let n = 1; n <= depth; n++) {
        const parent = n === 1 ? "main" : `f${n - 1}`;
        await sessions.forkBranch(on(parent), { newBranchId: `f${n}` });
        if (n % 100 === 0) await sessions.appendTurn(on(`f${n}`), [says("user", `at ${n}`, `at${n}`)]);
      }
      await same(given, `f${depth}`);
      const last = await sessions.loadBranch({ sessionId: "s", branchId: `f${depth}` });
      expect(idsOf(last.messages)).toEqual(["m0", "m1", ...Array.from({ length: 10 }, (_, i) => `at${(i + 1) * 100}`)]);
      const { ancestors } = await sessions.getBranch({ sessionId: "s", branchId: `f${depth}` });
      expect([ancestors.length, ancestors[0], ancestors[1], ancestors.at(-1)]).toEqual([
        depth,
        "main",
        "f1",
        `f${depth - 1}`,
      ]);
      await sessions.forkBranch(on(`f${depth}`), { newBranchId: "back", from: "m0" });
      expect(idsOf((await sessions.loadBranch({ sessionId: "s", branchId: "back" })).messages)).toEqual(["m0"]);
      expect(await sessions.listBranches("s")).toHaveLength(depth + 2);
      expect(await sessions.deleteBranch({ sessionId: "s", branchId: "f1" }, { recursive: true })).toHaveLength(
        depth + 1,
      );
    });
  });
}
