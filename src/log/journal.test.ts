import { describe, expect, test } from "vitest";
import type { Draft } from "../events/index.ts";
import { decideAppend } from "./decide.ts";
import { Journal, type WrittenListener } from "./journal.ts";
import type { Appended, AppendOptions, BranchRef, NewEvent, Store, StoredEvent } from "./store.ts";

const ref = { sessionId: "s", branchId: "main" };

/** As much of a store as a journal asks for. */
function givenJournal() {
  const log: StoredEvent[] = [];
  const find = (id: string) => log.find((event) => event.id === id);
  const append = async (to: BranchRef, events: readonly NewEvent[], options: AppendOptions = {}): Promise<Appended> => {
    const { first, last, repeated } = decideAppend(
      { ref: to, seq: log.length, epoch: undefined, header: {}, find },
      events,
      options,
    );
    if (!repeated) for (const [i, event] of events.entries()) log.push({ ...event, seq: first + i });
    if (!options.claim) return { first, last };
    const { runId, owner, leaseMs } = options.claim;
    return { first, last, claim: { ...to, runId, owner, epoch: 1, claimedAt: 0, expiresAt: leaseMs } };
  };
  const store = { append, read: async () => log } as unknown as Store;
  return { log, store, journal: new Journal(store) };
}

function draft(id: string, name = "a name"): Draft {
  return { type: "branch.updated", id, at: 5, name };
}

describe("Journal", () => {
  test("pieces have all facts of a range once, in either direction, and few where facts are large", async () => {
    const { journal, store, log } = givenJournal();
    for (let n = 1; n <= 50; n++) await journal.append(ref, [draft(`f${n}`, n > 20 ? "n" : "n".repeat(400_000))]);
    const reads: number[] = [];
    store.read = async (_ref, { after = 0, before = 51, limit = 1000, reverse = false } = {}) => {
      const found = log.filter(({ seq }) => seq > after && seq < before);
      const page = (reverse ? found.reverse() : found).slice(0, limit);
      reads.push(page.length);
      return page;
    };
    const numbers = async (range: Parameters<Journal["pieces"]>[1]) => {
      const found: number[] = [];
      for await (const { facts } of journal.pieces(ref, range)) found.push(...facts.map(({ seq }) => seq));
      return found;
    };
    const all = Array.from({ length: 50 }, (_, i) => i + 1);
    expect(await numbers({})).toEqual(all);
    expect(reads.slice(0, 2)).toEqual([16, 3]);
    expect(await numbers({ reverse: true })).toEqual([...all].reverse());
    expect(await numbers({ after: 10, before: 40 })).toEqual(all.slice(10, 39));
    expect(await numbers({ after: 10, before: 40, reverse: true, limit: 20 })).toEqual(all.slice(19, 39).reverse());
    expect(await numbers({ limit: 0 })).toEqual([]);
    expect(await numbers({ limit: 16 })).toHaveLength(16);
  });

  test("facts come back with their numbers, as a later read shows them (Journal-3)", async () => {
    const { journal } = givenJournal();
    const { facts } = await journal.append(ref, [draft("one"), draft("two")]);
    expect(facts).toEqual([
      { seq: 1, ...draft("one") },
      { seq: 2, ...draft("two") },
    ]);
    expect((await journal.read(ref)).facts).toEqual(facts);
    expect((await journal.append(ref, [draft("one"), draft("two")])).facts).toEqual(facts);
    expect((await journal.read(ref)).facts).toHaveLength(2);
  });

  test("what settled is announced, and whether a run wrote it (Journal-6)", async () => {
    const { journal } = givenJournal();
    const heard: unknown[] = [];
    journal.onWritten((_, { facts, isOfRun }) => void heard.push([facts[0]!.id, isOfRun]));
    const claim = { runId: "r", owner: "o", leaseMs: 1 };
    const appends = [
      journal.append(ref, [draft("command")]),
      journal.append(ref, [draft("brief")], { claim, release: true }),
      journal.append(ref, [draft("run")], { claim }),
      journal.append(ref, [draft("refused")], { expectedSeq: 99 }),
    ];
    const outcomes = Promise.allSettled(appends);
    await journal.settle(ref);
    expect(heard).toEqual([
      ["command", false],
      ["brief", false],
      ["run", true],
    ]);
    await outcomes;
    await journal.settle(ref);
  });

  test("time does not go back within an append when the clock does, and the same drafts are the same facts again (Journal-4)", async () => {
    const { journal } = givenJournal();
    const drafts = [5, 9, 3, 7, 12].map((at, i) => ({ ...draft(`d${i}`), at }));
    const { facts } = await journal.append(ref, drafts);
    expect(facts.map(({ at }) => at)).toEqual([5, 9, 9, 9, 12]);
    expect((await journal.read(ref)).facts).toEqual(facts);
    expect((await journal.append(ref, drafts)).facts).toEqual(facts);
    expect(drafts.map(({ at }) => at)).toEqual([5, 9, 3, 7, 12]);
  });

  test("a fact that is not valid stops the whole append before anything is written (Journal-1)", async () => {
    const { log, journal } = givenJournal();
    const heard: string[] = [];
    journal.onWritten(() => heard.push("something"));
    const bad = { ...draft("two"), name: 7 } as unknown as Draft;
    await expect(journal.append(ref, [draft("one"), bad])).rejects.toMatchObject({ code: "event_invalid" });
    expect(log).toEqual([]);
    expect(heard).toEqual([]);
  });

  test("listeners hear after the store has acknowledged, never of a refused append (Journal-2)", async () => {
    const { store, journal } = givenJournal();
    let acknowledged = 0;
    const slow = new Journal({
      read: (...args: Parameters<Store["read"]>) => store.read(...args),
      async append(...args: Parameters<Store["append"]>) {
        const result = await store.append(...args);
        acknowledged = result.last;
        return result;
      },
    } as Store);
    const heard: number[] = [];
    const listener: WrittenListener = (_, { facts }) => {
      for (const { seq } of facts) {
        expect(seq).toBeLessThanOrEqual(acknowledged);
        heard.push(seq);
      }
    };
    const stop = slow.onWritten(listener);
    await slow.append(ref, [draft("one"), draft("two")]);
    await expect(slow.append(ref, [draft("three")], { expectedSeq: 9 })).rejects.toMatchObject({
      code: "sequence_conflict",
    });
    expect(heard).toEqual([1, 2]);
    stop();
    await slow.append(ref, [draft("four")]);
    expect(heard).toEqual([1, 2]);
    expect((await journal.read(ref)).facts).toHaveLength(3);
  });

  test("the size is that of the text, written or read", async () => {
    const { log, journal } = givenJournal();
    const sizes: number[] = [];
    journal.onWritten((_, { size }) => sizes.push(size));
    await journal.append(ref, [draft("one"), draft("two", "\u00e9".repeat(10))]);
    const size = log.reduce((sum, { data }) => sum + data.length, 0);
    expect(sizes).toEqual([size]);
    expect((await journal.read(ref)).size).toBe(size);
  });

  test("a claim made with the append comes with the facts", async () => {
    const { journal } = givenJournal();
    const written = await journal.append(ref, [draft("one")], { claim: { runId: "r", owner: "o", leaseMs: 10 } });
    expect(written.claim).toMatchObject({ ...ref, runId: "r", owner: "o" });
    expect("claim" in (await journal.append(ref, [draft("two")]))).toBe(false);
  });
});
