import { describe, expect } from "vitest";
import type { LogEvent, Sessions } from "../../src/sessions/index.ts";
import { type Case, idsOf, main, on, refused, says, talk } from "./kit.ts";

/** Collects events until there are so many, then leaves the loop. */
async function take(events: AsyncGenerator<LogEvent>, count: number): Promise<LogEvent[]> {
  const taken: LogEvent[] = [];
  for await (const event of events) {
    taken.push(event);
    if (taken.length === count) break;
  }
  return taken;
}

const upTo = (n: number, from = 1) => Array.from({ length: n }, (_, i) => from + i);

export function logCases(test: Case): void {
  describe("the events of a branch", () => {
    test("of a turn or a type have a cursor only while there are more, forwards and backwards", async ({
      sessions,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 4);
      const all = await sessions.events(main);
      const commits = all.filter(({ type }) => type === "turn.committed");
      const started = all.find(({ id }) => id === "q2")! as { turnId?: string };
      const ofTurn = all.filter(
        (each) => each.id === started.turnId || (each as typeof started).turnId === started.turnId,
      );
      expect([commits.length, ofTurn.length]).toEqual([4, 4]);
      const selections = [
        [{ type: "turn.committed" }, commits],
        [{ turnId: started.turnId! }, ofTurn],
      ] as const;
      for (const [selection, wanted] of selections) {
        for (const reverse of [false, true]) {
          const expected = reverse ? [...wanted].reverse() : wanted;
          const cursor = reverse ? "before" : "after";
          for (const limit of [1, 2, 3, 4, 5]) {
            const pages = [await sessions.events(main, { ...selection, reverse, limit })];
            while (pages.at(-1)![cursor] !== undefined) {
              const range = { [cursor]: pages.at(-1)![cursor] };
              pages.push(await sessions.events(main, { ...selection, reverse, limit, ...range }));
            }
            expect(pages.flat()).toEqual(expected);
            // Nothing is left after the last one, so that nobody asks for an empty page.
            expect(pages.every((page) => page.length > 0)).toBe(true);
            expect(pages).toHaveLength(Math.ceil(4 / limit));
          }
        }
      }
      expect(await sessions.events(main, { type: "turn.committed", limit: 0 })).toEqual([]);
      await expect(sessions.events(main, { type: "turn.committed", limt: 1 } as object)).rejects.toThrow(
        'Did you mean "limit"?',
      );
    });

    test("are numbered from 1, through the lineage of a fork, and are what the log keeps", async ({
      sessions,
      store,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      await sessions.forkBranch(main, { newBranchId: "f", from: "a1" });
      await talk(sessions, on("f"), 3);
      const events = await sessions.events(on("f"));
      expect(events.map(({ seq }) => seq)).toEqual(upTo(10));
      expect(events.map(({ type }) => type).slice(4, 7)).toEqual(["turn.committed", "branch.forked", "turn.started"]);
      // The durable JSON, with the place and the id that it is stored under, and nothing else.
      const stored = await store.read(on("f"));
      expect(events).toEqual(stored.map(({ seq, id, data }) => ({ seq, id, ...JSON.parse(data) })));
      const routing = ["version", "channel", "direction", "sessionId", "branchId", "agent", "traceId", "spanId"];
      for (const event of events) for (const key of routing) expect(event).not.toHaveProperty(key);
      // Whoever watches is told whose they are.
      for (const event of await take(sessions.watch(on("f")), 10)) {
        expect(event).toMatchObject({ sessionId: "s", branchId: "f", version: 1, direction: "down" });
        if (event.id === "q3") expect(event).toMatchObject({ messageId: "q3", turnId: events[6]!.id });
      }
    });

    test("are read in pages, either way", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 5);
      const seqs = async (options: object) => (await sessions.events(main, options)).map(({ seq }) => seq);
      expect(await seqs({ after: 3, limit: 4 })).toEqual([4, 5, 6, 7]);
      expect(await seqs({ before: 5 })).toEqual([1, 2, 3, 4]);
      expect(await seqs({ after: 2, before: 9, limit: 3, reverse: true })).toEqual([8, 7, 6]);
      expect(await seqs({ after: 21 })).toEqual([]);
      for (const wrong of [1.5, Number.NaN, "1", null]) {
        for (const name of ["after", "before", "limit"]) await refused(seqs({ [name]: wrong }), "invalid_argument");
        await refused(sessions.messages(main, { before: wrong as never }), "invalid_argument");
        await refused(take(sessions.watch(main, { after: wrong as never }), 1), "invalid_argument");
      }
      await refused(seqs({ limit: -1 }), "invalid_argument");
      await refused(sessions.events(on("none")), "branch_not_found");
    });
  });

  test("a page of events says whether there are more, and from where", async ({ sessions }) => {
    await sessions.createSession("s");
    await talk(sessions, main, 1, 5);
    const seqs: number[] = [];
    let pages = 0;
    for (let after: number | undefined = 0; after !== undefined; pages++) {
      const page = await sessions.events(main, { after, limit: 7 });
      seqs.push(...page.map(({ seq }) => seq));
      after = page.after;
    }
    const { seq } = await sessions.getBranch({ sessionId: "s", branchId: "main" });
    expect(seqs).toEqual(Array.from({ length: seq }, (_, i) => i + 1));
    expect(pages).toBe(Math.ceil(seq / 7));
    expect((await sessions.events(main)).after).toBeUndefined();
    expect((await sessions.events(main, { limit: seq })).after).toBeUndefined();
    expect((await sessions.events(main, { before: 5, limit: 2, reverse: true })).before).toBe(3);
    expect((await sessions.events(main, { before: 3, limit: 2, reverse: true })).before).toBeUndefined();
  });

  describe("watching a branch", () => {
    test("yields each event once and in order, while several write at once", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      const elsewhere = await other();
      const total = 5 + 3 * 4 + 6;
      const watched = [take(sessions.watch(main), total), take(elsewhere.watch(main, { after: 3 }), total - 3)];
      const writers: Promise<unknown>[] = upTo(6).map((n) =>
        sessions.updateBranch({ sessionId: "s", branchId: "main" }, { metadata: { n } }),
      );
      const turns = (async () => {
        for (const n of [2, 3, 4]) await retried(() => talk(elsewhere, main, n));
      })();
      await Promise.all([...writers, turns]);
      const [all, rest] = await Promise.all(watched);
      expect(all!.map(({ seq }) => seq)).toEqual(upTo(total));
      expect(rest!.map(({ seq }) => seq)).toEqual(upTo(total - 3, 4));
      expect(all!.map(({ id }) => id)).toEqual((await sessions.events(main)).map(({ id }) => id));
    });

    test("ends when the signal aborts, before, while it waits, or between two events", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      const done: number[] = [];
      const aborted = AbortSignal.abort();
      for await (const { seq } of sessions.watch(main, { signal: aborted })) done.push(seq);
      expect(done).toEqual([]);
      const waiting = new AbortController();
      const events = sessions.watch(main, { after: 5, signal: waiting.signal });
      const next = events.next();
      waiting.abort();
      expect(await next).toEqual({ done: true, value: undefined });
      const between = new AbortController();
      for await (const { seq } of sessions.watch(main, { signal: between.signal })) {
        done.push(seq);
        if (seq === 2) between.abort();
      }
      expect(done).toEqual([1, 2]);
    });

    test("can be left and taken up again where it was", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      const first = await take(sessions.watch(main), 2);
      await talk(sessions, main, 2);
      const rest = await take(sessions.watch(main, { after: first.at(-1)!.seq }), 7);
      expect([...first, ...rest].map(({ seq }) => seq)).toEqual(upTo(9));
    });

    test("ends with branch_not_found when the branch is deleted", async ({ sessions }) => {
      await sessions.createSession("s");
      await sessions.forkBranch(main, { newBranchId: "f" });
      const events = sessions.watch(on("f"), { after: 2 });
      const ended = refused(events.next(), "branch_not_found", on("f"));
      await sessions.deleteBranch({ sessionId: "s", branchId: "f" });
      await ended;
      await refused(sessions.watch(on("f")).next(), "branch_not_found");
    });
  });

  describe("the newest messages", () => {
    test("come as whole turns, at least as many as asked for, and lead back to the beginning", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 30);
      const turn = await sessions.beginTurn(main, "not closed yet");
      const page = await sessions.messages(main, { last: 3 });
      const all = idsOf((await sessions.loadBranch("s")).messages);
      expect(page.messages.length).toBeGreaterThanOrEqual(3);
      expect(page.messages[0]!.role).toBe("user");
      const earlier = await sessions.messages(main, { last: 1, before: page.before! });
      const rest = await sessions.messages(main, { last: 100, before: earlier.before! });
      expect(rest.before).toBeUndefined();
      expect(idsOf([...rest.messages, ...earlier.messages, ...page.messages])).toEqual(all);
      expect((await sessions.messages(main)).messages.length).toBeGreaterThanOrEqual(50);
      for (const last of [0, -1, 1.5, Number.NaN]) {
        await refused(sessions.messages(main, { last }), "invalid_argument");
      }
      await turn.commit();
    });

    test("are read without reading the rest", async ({ sessions, other }) => {
      await sessions.createSession("s");
      for (let n = 0; n < 12; n++) await manyMessages(sessions, n);
      let read = 0;
      const reader = await other({
        wrap: (store) =>
          new Proxy(store, {
            get(target, key) {
              const member = Reflect.get(target, key, target);
              if (typeof member !== "function") return member;
              return async (...args: unknown[]) => {
                const answer = await member.apply(target, args);
                if (key === "read") read += answer.length;
                return answer;
              };
            },
          }),
      });
      expect((await reader.messages(main, { last: 10 })).messages.length).toBeGreaterThanOrEqual(10);
      expect(read).toBeLessThan(1100);
    });

    test("of turns that waited long to be saved are all there", async ({ sessions }) => {
      const { session, branch } = await sessions.loadSessionAndBranch("s");
      await talk(sessions, main, 1);
      const first = await sessions.beginTurn(main, [says("user", "first", "first")]);
      for (let n = 0; n < 40; n++) await first.add(says("assistant", `step ${n}`, `step${n}`));
      await first.stage();
      await (await sessions.beginTurn(main, [says("user", "second", "second")])).stage();
      const { branch: saved } = await sessions.saveSessionAndBranch(session, branch);
      expect(await paged(sessions, 1)).toEqual(idsOf(saved.messages));
    });
  });
}

/** All messages, from the newest page back. */
async function paged(sessions: Sessions, last: number): Promise<string[]> {
  let ids: string[] = [];
  for (let before: number | undefined, first = true; first || before !== undefined; first = false) {
    const page = await sessions.messages(main, { last, ...(before !== undefined && { before }) });
    ids = [...idsOf(page.messages), ...ids];
    before = page.before;
  }
  return ids;
}

async function manyMessages(sessions: Sessions, n: number): Promise<void> {
  const messages = upTo(100).map((i) => says(i % 2 ? "user" : "assistant", `message ${n}.${i}`));
  await sessions.appendTurn(main, messages);
}

/** Others may hold the branch for a moment. */
async function retried(work: () => Promise<void>): Promise<void> {
  for (let left = 50; ; left--) {
    try {
      return await work();
    } catch (error) {
      if (left === 0 || (error as { code?: string }).code !== "run_active") throw error;
    }
  }
}
