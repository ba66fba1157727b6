// What a run loads of a long branch, what a fork of a cached one costs, and that both are what a replay gives.

import { describe, expect } from "vitest";
import type { Draft } from "../../src/events/index.ts";
import type { Store } from "../../src/log/index.ts";
import { type BranchView, transcript } from "../../src/projection/index.ts";
import type { Sessions } from "../../src/sessions/index.ts";
import { counted } from "./counted.ts";
import { appendRaw, type Case, type Given, idsOf, main, on, replay, says } from "./kit.ts";

const perTurn = 20;
const message = (n: number) => says(n % 2 ? "assistant" : "user", `message ${n}`, `m${n}`);

async function write(sessions: Sessions, branchId: string, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n += perTurn) {
    const messages = Array.from({ length: Math.min(perTurn, to - n) }, (_, i) => message(n + i));
    await sessions.appendTurn(on(branchId), messages, { state: { upTo: n + messages.length } });
  }
}

function compaction(id: string, to: number, more: object = {}): Draft {
  const replacements = [{ id: `${id}.sum`, role: "user" as const, content: `sum of ${id}` }];
  const range = { from: 0, to, first: "m0", last: `m${to - 1}` };
  return { type: "history.compacted", id, at: 5, retention: "soft", ...range, replacements, ...more };
}

/** A branch of so many messages of which models see the last sixty, with its pieces stored. */
async function compacted(given: Given, messages: number, more: object = {}): Promise<void> {
  const { context, sessions } = counted(given, "writer");
  await sessions.createSession("s");
  await write(sessions, "main", 0, messages - 40);
  const { view } = await context.views.load(main);
  await context.views.append(main, view, [compaction("h", messages - 60, more)], { expectedSeq: view.seq });
  await write(sessions, "main", messages - 40, messages);
  await context.views.settle();
}

/** The view is what folding the log from 1 gives, in all its parts. */
async function expectWhole(store: Store, branchId: string, view: BranchView): Promise<void> {
  expect(view).toEqual(await replay(store, on(branchId)));
}

export function partialCases(test: Case): void {
  describe("a run on a long branch of which models see little", () => {
    test("reads one piece and the facts behind it, whatever the length", async (given) => {
      await compacted(given, 6000);
      const { context, sessions, reads } = counted(given);
      const { view } = await context.views.loadForRun(main);
      expect([view.skipped, view.messages.length, view.shown]).toEqual([5940, 60, null]);
      expect(reads.pieces).toBe(1);
      expect(reads.facts).toBeLessThan(100);
      const read = reads.size;
      expect(view.turns.length + view.skippedTurns).toBe(300);
      const whole = await replay(given.store, main);
      expect(transcript(view)).toEqual(transcript(whole));
      // A piece has up to 512 messages that no one asked for, and no more of them on a longer branch.
      expect(read).toBeLessThan(JSON.stringify(whole.messages.slice(-700)).length);
      const turn = await sessions.beginTurn(main, "go");
      await turn.commit({ messages: [says("assistant", "done")], state: { last: true } });
      await sessions.saveCheckpoint(main, { id: "c" });
      expect([reads.pieces, (await context.views.loadForRun(main)).view.skipped]).toEqual([1, 5940]);
      expect((await sessions.getBranch(main)).messageCount).toBe(6002);
    });

    test("becomes whole where more is needed, by the pieces that are missing", async (given) => {
      await compacted(given, 3000, { keep: [0, 7] });
      const { context, sessions, reads } = counted(given);
      const { view } = await context.views.loadForRun(main);
      expect(view.skipped).toBe(2940);
      expect(idsOf(view.window).slice(0, 4)).toEqual(["h.sum", "m0", "m7", "m2940"]);
      const { window } = view;
      const { bytes } = context.views.cache;
      const { facts } = reads;
      const branch = await sessions.loadBranch(main);
      expect(branch.messages).toHaveLength(3000);
      // It is the same view, and prompts go on by the same array.
      expect(context.views.cachedAt(main, view.seq)).toBe(view);
      expect([view.window === window, view.skipped, reads.facts]).toEqual([true, 0, facts]);
      await expectWhole(given.store, "main", view);
      const other = counted(given, "whole").context.views;
      await other.load(main);
      expect(context.views.cache.bytes / other.cache.bytes).toBeGreaterThan(0.9);
      expect(context.views.cache.bytes / other.cache.bytes).toBeLessThan(1.1);
      expect(bytes).toBeLessThan(other.cache.bytes / 10);
    });

    test("is compacted again, taken back and reverted by another process, and stays right", async (given) => {
      await compacted(given, 2000);
      const { context, sessions, reads } = counted(given);
      const { view } = await context.views.loadForRun(main);
      const told = async () => {
        const { view: part } = await context.views.loadForRun(main);
        expect(transcript(part)).toEqual(transcript(await replay(given.store, main)));
        return part.skipped;
      };
      await appendRaw(given.store, main, compaction("h2", 1960, { over: [view.lastOverlay] }));
      expect(await told()).toBe(1940);
      await sessions.revertBranch(main, { to: "m1999" });
      await write(sessions, "main", 2000, 2040);
      context.views.forgetAll();
      expect(await told()).toBe(1940);
      // Behind what is held: the whole is read, and the fact folded into that.
      await appendRaw(given.store, main, {
        type: "history.restored",
        id: "r",
        at: 6,
        of: "h2",
        overlays: [],
        cleared: [],
      });
      const { pieces } = reads;
      expect(await told()).toBe(0);
      expect(reads.pieces).toBeGreaterThan(pieces);
      await expectWhole(given.store, "main", (await context.views.loadForRun(main)).view);
    });

    test("writes facts that look back further than it holds", async (given) => {
      await compacted(given, 2000);
      const { context } = counted(given);
      const { view } = await context.views.loadForRun(main);
      expect(view.skipped).toBe(1940);
      const keep = compaction("h2", 1960, { keep: [3], over: [view.lastOverlay] });
      await context.views.append(main, view, [keep], { expectedSeq: view.seq });
      const loaded = (await context.views.loadForRun(main)).view;
      expect(idsOf(loaded.window).slice(0, 3)).toEqual(["h2.sum", "m3", "m1960"]);
      await expectWhole(given.store, "main", loaded);
    });

    test("cuts pieces that a cold load can use, also after a revert took those in which it began", async (given) => {
      await compacted(given, 2000);
      const { context, sessions } = counted(given);
      await context.views.loadForRun(main);
      await write(sessions, "main", 2000, 2600);
      await context.views.settle();
      const cold = counted(given, "second");
      expect((await cold.context.views.loadForRun(main)).view.skipped).toBe(1940);
      await expectWhole(given.store, "main", (await cold.context.views.load(main)).view);
      await sessions.revertBranch(main, { to: "m1950" });
      const third = counted(given, "third");
      await third.context.views.loadForRun(main);
      await write(third.sessions, "main", 3000, 4600);
      await third.context.views.settle();
      const fourth = counted(given, "fourth");
      await expectWhole(given.store, "main", (await fourth.context.views.load(main)).view);
      expect(fourth.reads.facts).toBeLessThan(800);
    });

    test("finds turns and refuses ids that it does not hold", async (given) => {
      await compacted(given, 2000);
      const { turns } = await replay(given.store, main);
      const early = turns[3]!;
      const { context, sessions } = counted(given);
      await context.views.loadForRun(main);
      const events = await sessions.events(main, { turnId: early.id });
      expect([events[0]?.seq, events.at(-1)?.seq]).toEqual([early.from, early.to]);
      await sessions.forkBranch(main, { newBranchId: "f" });
      const cold = counted(given, "cold fork");
      expect((await cold.context.views.loadForRun(on("f"))).view.skipped).toBe(1940);
      await expect(cold.sessions.beginTurn(on("f"), [message(3)])).rejects.toMatchObject({ code: "event_conflict" });
      await (await cold.sessions.beginTurn(on("f"), [message(3000)])).commit();
    });

    test("is forked at a message that it holds without reading more, and elsewhere by reading the whole", async (given) => {
      await compacted(given, 3000);
      const { context, sessions, reads } = counted(given);
      await context.views.loadForRun(main);
      const { pieces } = reads;
      await sessions.forkBranch(main, { newBranchId: "held", from: "m2979" });
      await sessions.forkBranch(main, { newBranchId: "latest" });
      expect(reads.pieces - pieces).toBeLessThanOrEqual(1);
      const child = (await context.views.loadForRun(on("held"))).view;
      expect(reads.pieces - pieces).toBeLessThanOrEqual(1);
      expect([child.skipped, child.fork?.messages]).toEqual([2940, 2980]);
      expect(transcript(child)).toEqual(transcript(await replay(given.store, on("held"))));
      await sessions.forkBranch(main, { newBranchId: "behind", from: "m99" });
      for (const id of ["held", "latest", "behind"]) {
        await expectWhole(given.store, id, (await context.views.load(on(id))).view);
      }
    });
  });

  describe("a moment of the past", () => {
    test("has the compactions of that moment, by position, checkpoint and fork", async (given) => {
      await compacted(given, 1500);
      const { context, sessions } = counted(given);
      await context.views.loadForRun(main);
      const { lastOverlay, seq } = await replay(given.store, main);
      const ids = async (at: number) => idsOf((await sessions.loadBranch(main, { at })).transcript());
      expect((await ids(lastOverlay - 1)).slice(0, 2)).toEqual(["m0", "m1"]);
      expect((await ids(lastOverlay)).slice(0, 2)).toEqual(["h.sum", "m1440"]);
      await sessions.saveCheckpoint(main, { id: "before", seq: lastOverlay - 1 });
      await sessions.saveCheckpoint(main, { id: "after", seq: lastOverlay });
      expect((await sessions.listCheckpoints(main)).map(({ messageIndex }) => messageIndex)).toEqual([1460, 1460]);
      for (const [id, first] of [
        ["before", "m0"],
        ["after", "h.sum"],
      ] as const) {
        const fork = await sessions.loadAtCheckpoint(main, id, { ifStale: "fork", newBranchId: id });
        expect([fork.messageCount, idsOf(fork.transcript())[0]]).toEqual([1460, first]);
        await expectWhole(given.store, id, (await context.views.load(on(id))).view);
      }
      expect((await ids(seq)).at(-1)).toBe("m1499");
    });
  });

  describe("a fork of a cached branch", () => {
    test("is cached: its first turn reads nothing, and a hundred share their messages", async (given) => {
      const { context, sessions, reads } = counted(given);
      await sessions.createSession("s");
      await write(sessions, "main", 0, 3000);
      const { cache } = context.views;
      const { bytes } = cache;
      reads.reads = 0;
      reads.pieces = 0;
      for (let n = 0; n < 100; n++) await sessions.forkBranch(main, { newBranchId: `f${n}`, from: "m2999" });
      for (let n = 0; n < 100; n++) await (await sessions.beginTurn(on(`f${n}`), "go")).commit();
      expect([reads.reads, reads.pieces]).toEqual([0, 0]);
      const { messages } = (await context.views.load(main)).view;
      const child = (await context.views.load(on("f99"))).view;
      expect(child.messages.slice(0, 3000).every((each, i) => each === messages[i])).toBe(true);
      await expectWhole(given.store, "f99", child);
      // Pointers, not copies: 24 KB each for 3,000 messages.
      expect(cache.bytes - bytes).toBeLessThan(100 * 40_000);
      // What they share is counted until the last of them goes (ViewCache-4).
      context.views.forget(main);
      for (let n = 0; n < 99; n++) context.views.forget(on(`f${n}`));
      expect(cache.size).toBe(1);
      expect(cache.bytes).toBeGreaterThan(bytes);
      context.views.forgetAll();
      expect(cache.bytes).toBe(0);
    });

    test("is made of it also when another process forked, or it was let go", async (given) => {
      const { context, sessions, reads } = counted(given);
      await sessions.createSession("s");
      await write(sessions, "main", 0, 3000);
      await sessions.forkBranch(main, { newBranchId: "own", from: "m2979" });
      await write(sessions, "own", 3000, 3040);
      await (await given.other()).forkBranch(main, { newBranchId: "other", from: "m2979" });
      context.views.forget(on("own"));
      for (const id of ["own", "other"]) {
        Object.assign(reads, { facts: 0, pieces: 0 });
        const { view } = await context.views.load(on(id));
        await expectWhole(given.store, id, view);
        // For the state, which changed since: that is not in the parent's view.
        expect(reads.pieces).toBe(1);
      }
    });

    test("is not made of another branch that had its parent's name", async (given) => {
      const { context, sessions } = counted(given);
      await sessions.createSession("s");
      await sessions.createBranch("s", { branchId: "b" });
      await write(sessions, "b", 0, 40);
      const elsewhere = await given.other();
      await elsewhere.deleteBranch(on("b"));
      await elsewhere.createBranch("s", { branchId: "b" });
      await write(elsewhere, "b", 100, 160);
      await elsewhere.forkBranch(on("b"), { newBranchId: "f", from: "m119" });
      await expectWhole(given.store, "f", (await context.views.load(on("f"))).view);
    });

    test("at a position costs the turn that was open there, as one by message does", async (given) => {
      const { context, sessions, reads } = counted(given);
      await sessions.createSession("s");
      await write(sessions, "main", 0, 3000);
      const { turns, seq } = (await context.views.load(main)).view;
      await context.views.settle();
      // Without state that changed since, which has to be read.
      const at = (place: number) =>
        sessions.forkBranch(main, { newBranchId: `at ${place}`, fromSeq: place, state: "none" });
      const last = turns.at(-1)!;
      for (const place of [seq, last.from + 5, last.from - 1, turns[20]!.to, turns[20]!.from + 3]) {
        Object.assign(reads, { facts: 0, pieces: 0 });
        const state = await context.views.stateAt(main, place);
        const forState = { ...reads };
        Object.assign(reads, { facts: 0, pieces: 0 });
        await at(place);
        expect(reads.pieces).toBeLessThanOrEqual(forState.pieces);
        expect(reads.facts - forState.facts).toBeLessThanOrEqual(2 * (perTurn + 4));
        expect(state).toBeDefined();
        Object.assign(reads, { facts: 0, pieces: 0 });
        const { view } = await context.views.load(on(`at ${place}`));
        expect(reads.pieces).toBe(0);
        expect(reads.facts).toBeLessThanOrEqual(perTurn + 4);
        await expectWhole(given.store, `at ${place}`, view);
      }
    });

    test("is right at every message and position, also of a turn that is open, staged or was cut", async (given) => {
      const { context, sessions, reads } = counted(given);
      await sessions.createSession("s");
      await write(sessions, "main", 0, 60);
      await sessions.revertBranch(main, { to: "m50" });
      await (await sessions.beginTurn(main, [says("user", "a", "a")])).stage({
        messages: [says("assistant", "b", "b")],
      });
      const open = await sessions.beginTurn(main, [says("user", "c", "c")]);
      await open.add(says("assistant", "d", "d"));
      const { seq } = (await context.views.load(main)).view;
      let cached = 0;
      for (let place = 0; place <= seq; place++) {
        await sessions.forkBranch(main, { newBranchId: `p${place}`, fromSeq: place });
        const { pieces } = reads;
        const { view } = await context.views.load(on(`p${place}`));
        if (reads.pieces === pieces) cached++;
        await expectWhole(given.store, `p${place}`, view);
      }
      expect(cached).toBeGreaterThanOrEqual(6);
    });
  });
}
