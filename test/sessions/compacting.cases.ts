import { describe, expect } from "vitest";
import { historyCleared } from "../../src/events/drafts.ts";
import { keepTurns, type Sessions, type StrategyInput } from "../../src/sessions/index.ts";
import { appendRaw, asks, type Case, deadOwner, idsOf, main, on, refused, result, says, talk } from "./kit.ts";

export const sum = (text = "so far") => ({ replacements: [{ role: "user" as const, content: text }] });

export async function seen(sessions: Sessions, branchId = "main"): Promise<[string[], string[]]> {
  const branch = await sessions.loadBranch({ sessionId: "s", branchId });
  return [idsOf(branch.messages), idsOf(branch.transcript())];
}

/** Something that can be waited for and set off. */
function gate(): { open: () => void; opened: Promise<void> } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

export function compactingCases(test: Case): void {
  describe("compacting by hand", () => {
    test("is soft by default, and gives the strategy what a model sees", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 4);
      const given: StrategyInput[] = [];
      const shorten = (range: StrategyInput) => {
        given.push(range);
        return sum();
      };
      const made = await sessions.compact(main, { keep: { turns: 2 }, strategy: shorten, instructions: "be brief" });
      expect(made).toMatchObject({
        ...{ retention: "soft", first: "q1", last: "a2", messages: 4, kept: 0, inForce: true },
        ...{ reason: "manual", strategy: "shorten", replacements: [`${made.id}.1`] },
      });
      expect(idsOf(given[0]!.messages)).toEqual(["q1", "a1", "q2", "a2"]);
      expect(given[0]!.instructions).toBe("be brief");
      const all = ["q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"];
      for (const reader of [sessions, await other()]) {
        expect(await seen(reader)).toEqual([all, [`${made.id}.1`, "q3", "a3", "q4", "a4"]]);
      }
      await refused(sessions.compact(main, { keep: { turns: 2 }, strategy: shorten }), "nothing_to_compact");
      const again = await sessions.compact(main, { keep: { turns: 1 }, strategy: shorten });
      expect(idsOf(given[1]!.messages)).toEqual([`${made.id}.1`, "q3", "a3"]);
      const [newest, before] = await sessions.listCompactions(main);
      expect([newest, before]).toEqual([again, { ...made, inForce: false }]);
    });

    test("drops old turns without a model, ten of them stay unless it is told otherwise", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 12);
      expect(await sessions.compact(main)).toMatchObject({ last: "a2", strategy: "keepTurns", replacements: [] });
      await sessions.compact(main, { strategy: keepTurns(1), retention: "hard" });
      expect(await seen(sessions)).toEqual([
        ["q12", "a12"],
        ["q12", "a12"],
      ]);
      expect((await sessions.getBranch(main)).messageCount).toBe(2);
    });

    test("is refused in a sentence when it can't be", async ({ sessions }) => {
      await sessions.createSession("s");
      await refused(sessions.compact(main), "nothing_to_compact");
      await talk(sessions, main, 1, 2);
      const wrong: [object, string][] = [
        [{ retentoin: {} }, 'may not have the key "retentoin". Known keys: keep, before, range'],
        [{ keep: { turn: 1 } }, 'keep may not have the key "keep.turn"'],
        [{ keep: { turns: -1 } }, "keep.turns must be an integer ≥ 0"],
        [{ keep: {}, before: "q2" }, "only one of keep, before and range"],
        [{ range: {} }, "range.from must be a string"],
        [{ retention: "gone" }, 'retention must be one of "soft", "hard"'],
        [{ strategy: "summary" }, "strategy must be a strategy"],
        [{ strategy: () => ({}), keep: {} }, 'The strategy "strategy" must return replacements'],
        [{ strategy: { name: "m", needsModel: true, compact: async () => sum() } }, 'The strategy "m" asks a model'],
        [{ strategy: () => ({ ...sum(), keep: ["q9"] }), keep: {} }, 'keeps message "q9"'],
        [{ strategy: () => sum(""), keep: {} }, "must return replacements"],
      ];
      for (const [options, sentence] of wrong) {
        const error = await refused(sessions.compact(main, options as never), "invalid_argument");
        expect(error.message).toContain(sentence);
      }
      await refused(sessions.compact(main, { before: "nothing" }), "message_not_on_branch");
      await refused(sessions.compact(main, { range: { from: "nothing" } }), "message_not_on_branch");
      await expect(
        sessions.compact(main, {
          keep: {},
          strategy: () => {
            throw new Error("boom");
          },
        }),
      ).rejects.toThrow("boom");
      expect(await sessions.listCompactions(main)).toEqual([]);
    });

    test("stops waiting for a strategy that is aborted, and writes nothing", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      const abort = new AbortController();
      const strategy = () => new Promise<never>(() => abort.abort());
      await refused(sessions.compact(main, { keep: {}, strategy, signal: abort.signal }), "aborted");
      await refused(sessions.compact(main, { keep: {}, signal: abort.signal }), "aborted");
      expect(await sessions.listCompactions(main)).toEqual([]);
    });

    test("keeps pins, which fork and revert with the branch", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const { seq } = await sessions.loadBranch("s");
      await sessions.pin(main, "q1");
      await sessions.pin(main, "a2");
      await sessions.pin(main, "a2");
      expect((await sessions.loadBranch("s")).seq).toBe(seq + 2);
      await refused(sessions.pin(main, "nothing"), "message_not_on_branch");
      await sessions.forkBranch(main, { newBranchId: "f" });
      await sessions.unpin(main, "a2");
      await sessions.unpin(main, "nothing");
      expect(await (await other()).listPins(main)).toEqual(["q1"]);
      expect(await sessions.listPins(on("f"))).toEqual(["q1", "a2"]);
      await sessions.compact(main, { strategy: keepTurns(1) });
      const made = await sessions.compact(on("f"), { keep: { turns: 1 }, retention: "hard", strategy: () => sum() });
      expect((await seen(sessions))[1]).toEqual(["q1", "q3", "a3"]);
      expect((await seen(sessions, "f"))[0]).toEqual([`${made.id}.1`, "q1", "a2", "q3", "a3"]);
      const error = await refused(sessions.pin(on("f"), "q2"), "message_not_on_branch");
      expect(error.data.replacements).toEqual([`${made.id}.1`]);
      await refused(sessions.pin(on("f"), `${made.id}.1`), "invalid_argument");
      await sessions.revertBranch(main, { toSeq: seq });
      expect([await sessions.listPins(main), (await sessions.loadBranch(main)).state]).toEqual([[], {}]);
    });

    test("names exact messages, batches and turns", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      const turn = await sessions.beginTurn(main, [says("user", "u", "u")]);
      await turn.add(asks("ask", "c1", "c2"));
      for (const id of ["c1", "c2"]) await turn.toolReturned(result(id));
      await turn.commit({ messages: [says("assistant", "done", "done")] });
      const compact = (range: object) => sessions.compact(main, { range: range as never, strategy: () => sum() });
      const error = await refused(compact({ from: "ask" }), "invalid_argument");
      expect(error.message).toContain('would cut the calls of message "ask"');
      const batch = await compact({ from: "ask", whole: "calls" });
      expect((await seen(sessions))[1]).toEqual(["q1", "a1", "u", `${batch.id}.1`, "done"]);
      const hidden = await refused(compact({ from: "ask", whole: "calls" }), "invalid_argument");
      expect(hidden.message).toContain(`is hidden already, by compaction ${batch.id}`);
      const whole = await compact({ from: "done", whole: "turns" });
      expect((await seen(sessions))[1]).toEqual(["q1", "a1", `${whole.id}.1`]);
      await sessions.uncompact(main);
      expect((await seen(sessions))[1]).toEqual(["q1", "a1", "u", `${batch.id}.1`, "done"]);
    });
  });

  describe("compacting while others work", () => {
    test("is refused while a run is active, and so is taking back", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      await sessions.compact(main, { strategy: keepTurns(2) });
      const turn = await sessions.beginTurn(main, "go");
      await refused(sessions.compact(main, { strategy: keepTurns(0) }), "run_active");
      await refused(sessions.uncompact(main), "run_active");
      await refused(sessions.pin(main, "q1"), "run_active");
      await turn.commit();
      // A run that begins while the strategy works wins.
      const strategy = async () => {
        await sessions.beginTurn(main, "meanwhile");
        return sum();
      };
      await refused(sessions.compact(main, { keep: { turns: 1 }, strategy }), "run_active");
      expect((await sessions.listCompactions(main)).length).toBe(1);
    });

    test("goes on over turns that came meanwhile", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const elsewhere = await other();
      let asked = 0;
      const strategy = async () => {
        asked++;
        await talk(elsewhere, main, 3 + asked);
        return sum();
      };
      const made = await sessions.compact(main, { keep: { turns: 1 }, strategy });
      expect([asked, (await seen(sessions))[1]]).toEqual([1, [`${made.id}.1`, "q3", "a3", "q4", "a4"]]);
    });

    test("decides again when what it decided on changed, twice, and then gives up", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 4);
      const elsewhere = await other();
      let asked = 0;
      const once = async () => {
        if (asked++ === 0) await elsewhere.pin(main, "q1");
        return sum();
      };
      const made = await sessions.compact(main, { keep: { turns: 1 }, strategy: once });
      expect([asked, made.kept]).toEqual([2, 1]);
      await sessions.uncompact(main);
      const pins = ["a1", "q2", "q3"];
      const always = async () => {
        await elsewhere.pin(main, pins.shift()!);
        return sum();
      };
      await refused(sessions.compact(main, { keep: { turns: 1 }, strategy: always }), "sequence_conflict");
      expect(pins).toEqual([]);
      const reverting = async () => {
        if (asked++ === 2) await elsewhere.revertBranch(main, { to: "q3" });
        return sum();
      };
      expect(await sessions.compact(main, { keep: { turns: 1 }, strategy: reverting })).toMatchObject({ last: "a2" });
      expect(asked).toBe(4);
    });

    test("two at once: both apply without cutting each other, or one finds nothing left", async ({
      sessions,
      other,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 6);
      const both = gate();
      let waiting = 0;
      const strategy = async () => {
        if (++waiting >= 2) both.open();
        await both.opened;
        return sum();
      };
      const outcomes = await Promise.allSettled([
        sessions.compact(main, { keep: { turns: 2 }, strategy }),
        (await other()).compact(main, { keep: { turns: 2 }, strategy }),
      ]);
      const done = outcomes.filter(({ status }) => status === "fulfilled");
      expect(done.length).toBe(1);
      expect(outcomes.find(({ status }) => status === "rejected")).toMatchObject({
        reason: { code: "nothing_to_compact" },
      });
      const further = await Promise.all([
        sessions.compact(main, { keep: { turns: 1 }, strategy: () => sum("a") }),
        (await other()).compact(main, { range: { from: "q6", to: "a6" }, strategy: () => sum("b") }),
      ]);
      expect((await seen(sessions))[1]).toEqual(further.map(({ id }) => `${id}.1`));
    });

    test("reaches into a turn that a dead process left: its input and its last calls stay", async ({
      sessions,
      other,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      const dead = await other({ owner: deadOwner() });
      const turn = await dead.beginTurn(main, [says("assistant", "as you said", "said"), says("user", "u", "u")]);
      for (const n of [1, 2]) {
        await turn.add(asks(`ask${n}`, `c${n}`));
        await turn.toolReturned(result(`c${n}`));
      }
      const made = await sessions.compact(main, { keep: { turns: 0 }, strategy: () => sum() });
      expect((await seen(sessions))[1]).toEqual([`${made.id}.1`, "said", "u", "ask2", "ask2.tools"]);
      // The hard one ends where the open turn begins, inside of the soft one.
      await sessions.compact(main, { keep: { turns: 0 }, retention: "hard" });
      expect((await seen(sessions))[0]).toEqual([]);
      const resumed = await sessions.resumeTurn(main);
      await resumed.commit({ messages: [says("assistant", "done", "done")] });
      expect((await seen(sessions))[1]).toEqual([`${made.id}.1`, "said", "u", "ask2", "ask2.tools", "done"]);
    });
  });

  describe("taking back", () => {
    test("brings back what there would be without it: soft or hard, newest or named", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 4);
      const none = await seen(sessions);
      await refused(sessions.uncompact(main), "compaction_not_found");
      const soft = await sessions.compact(main, { keep: { turns: 3 }, strategy: () => sum() });
      const one = await seen(sessions);
      const hard = await sessions.compact(main, { keep: { turns: 2 }, retention: "hard", strategy: () => sum() });
      const two = await seen(sessions);
      const over = await sessions.compact(main, { keep: { turns: 1 }, strategy: () => sum() });
      expect((await sessions.listCompactions(main)).map(({ id, inForce }) => [id, inForce])).toEqual([
        [over.id, true],
        [hard.id, true],
        [soft.id, false],
      ]);
      const error = await refused(sessions.uncompact(main, soft.id), "compaction_not_found");
      expect(error.message).toContain(`Compaction "${hard.id}" took its place`);
      await refused(sessions.uncompact(main, "nothing"), "compaction_not_found");
      expect(await sessions.uncompact(main)).toEqual({ ...over, inForce: false });
      expect(await seen(sessions)).toEqual(two);
      await (await other()).uncompact(main, hard.id);
      expect(await seen(sessions)).toEqual(one);
      expect((await sessions.getBranch(main)).messageCount).toBe(8);
      await sessions.uncompact(main);
      for (const reader of [sessions, await other()]) expect(await seen(reader)).toEqual(none);
    });

    test("of a hard one leaves the soft one over it, and turns that came since", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const hard = await sessions.compact(main, { keep: { turns: 2 }, retention: "hard", strategy: () => sum() });
      const soft = await sessions.compact(main, { keep: { turns: 1 }, strategy: () => sum() });
      await talk(sessions, main, 4);
      await sessions.uncompact(main, hard.id);
      expect(await seen(sessions)).toEqual([
        ["q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"],
        [`${soft.id}.1`, "q3", "a3", "q4", "a4"],
      ]);
    });

    test("of a clearing is that of a compaction: listed, newest or named", async ({
      sessions,
      store,
      clock,
      other,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      const turn = await sessions.beginTurn(main, [says("user", "u", "u")]);
      await turn.add(asks("ask", "c1"));
      await turn.toolReturned(result("c1"));
      await turn.commit({ messages: [says("assistant", "done", "done")] });
      const before = await sessions.loadBranch("s");
      const clear = (id: string) =>
        appendRaw(
          store,
          main,
          historyCleared({ ids: { next: () => id }, clock }, { results: [{ at: 4, callIds: ["c1"] }] }),
        );
      await clear("first");
      const listed = { id: "clearing", first: "ask.tools", last: "ask.tools", messages: 1, cleared: 1, inForce: true };
      expect(await sessions.listCompactions(main)).toMatchObject([{ ...listed, id: "first" }]);
      // The newest of all: so is a compaction that came later.
      expect(await sessions.uncompact(main)).toMatchObject({ ...listed, id: "first", inForce: false });
      expect((await sessions.loadBranch("s")).transcript()).toEqual(before.transcript());
      expect(await sessions.listCompactions(main)).toEqual([]);
      await clear("clearing");
      const made = await sessions.compact(main, { keep: { turns: 1 }, strategy: () => sum() });
      expect(JSON.stringify((await sessions.loadBranch("s")).transcript())).toContain("[Output of add cleared");
      expect(await (await other()).listCompactions(main)).toMatchObject([{ id: made.id }, listed]);
      // A fork there carries it without its fact.
      await sessions.forkBranch(main, { from: "done", newBranchId: "f" });
      expect(await sessions.listCompactions(on("f"))).toMatchObject([{ id: made.id }, listed]);
      expect(await sessions.uncompact(on("f"))).toMatchObject({ id: made.id });
      expect(await (await other()).uncompact(on("f"))).toMatchObject({ id: "clearing", cleared: 1 });
      await refused(sessions.uncompact(on("f")), "compaction_not_found");
      expect(await sessions.uncompact(main, "clearing")).toMatchObject({ id: "clearing" });
      expect((await seen(sessions))[1]).toEqual([`${made.id}.1`, "u", "ask", "ask.tools", "done"]);
      await sessions.uncompact(main);
      expect((await sessions.loadBranch(main)).transcript()).toEqual(before.transcript());
    });

    test("of one that a fork carries gives the original words", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 4);
      const made = await sessions.compact(main, { keep: { turns: 2 }, strategy: () => sum() });
      await sessions.forkBranch(main, { newBranchId: "f", from: "a3" });
      const over = await sessions.compact(on("f"), { keep: { turns: 0 }, strategy: () => sum() });
      expect((await sessions.listCompactions(on("f"))).map(({ id }) => id)).toEqual([over.id]);
      const elsewhere = await other();
      await elsewhere.uncompact(on("f"));
      expect((await seen(elsewhere, "f"))[1]).toEqual([`${made.id}.1`, "q3", "a3"]);
      expect(await elsewhere.listCompactions(on("f"))).toMatchObject([{ id: made.id, messages: 4, inForce: true }]);
      await elsewhere.uncompact(on("f"), made.id);
      expect((await seen(sessions, "f"))[1]).toEqual(["q1", "a1", "q2", "a2", "q3", "a3"]);
      expect((await seen(sessions))[1]).toEqual([`${made.id}.1`, "q3", "a3", "q4", "a4"]);
    });
  });
}
