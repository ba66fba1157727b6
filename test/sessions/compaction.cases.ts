import { describe, expect } from "vitest";
import type { Draft } from "../../src/events/index.ts";
import { appendRaw, asks, type Case, idsOf, main, on, refused, result, says, talk } from "./kit.ts";

interface Range {
  readonly from: number;
  readonly to: number;
  readonly keep?: number[];
  readonly over?: number[];
  readonly turnId?: string;
}

/** Of the messages with these ids, which are the first and the last of the range. */
export function compaction(id: string, retention: "soft" | "hard", first: string, last: string, range: Range): Draft {
  const replacements = [{ id: `${id}.sum`, role: "system" as const, content: `sum of ${id}` }];
  return { type: "history.compacted", id, at: 5, retention, first, last, replacements, ...range };
}

export function compactionCases(test: Case): void {
  describe("a soft compaction", () => {
    test("changes what the model sees, and nothing else", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const turn = await sessions.beginTurn(main, [says("user", "q4", "q4")]);
      await turn.append(compaction("h", "soft", "q1", "a2", { from: 0, to: 4 }));
      await turn.commit({ messages: [says("assistant", "a4", "a4")] });
      for (const reader of [sessions, await other()]) {
        const branch = await reader.loadBranch("s");
        expect(idsOf(branch.messages)).toEqual(["q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"]);
        expect(idsOf(branch.transcript())).toEqual(["h.sum", "q3", "a3", "q4", "a4"]);
        const { compactions } = JSON.parse(JSON.stringify(branch));
        expect(compactions).toBeUndefined();
      }
      await sessions.forkBranch(main, { newBranchId: "f", from: "q2" });
      const fork = await sessions.loadBranch({ sessionId: "s", branchId: "f" });
      expect([idsOf(fork.messages), idsOf(fork.transcript())]).toEqual([
        ["q1", "a1", "q2"],
        ["q1", "a1", "q2"],
      ]);
    });

    test("can be followed by another, and is undone by a revert to before it", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const { seq } = await sessions.loadBranch("s");
      const turn = await sessions.beginTurn(main, [says("user", "q4", "q4")]);
      await turn.append(compaction("h1", "soft", "q1", "a1", { from: 0, to: 2 }));
      await turn.append(compaction("h2", "soft", "q1", "a2", { from: 0, to: 4 }));
      await turn.commit();
      expect(idsOf((await sessions.loadBranch("s")).transcript())).toEqual(["h2.sum", "q3", "a3", "q4"]);
      await sessions.revertBranch(main, { toSeq: seq });
      expect(idsOf((await sessions.loadBranch("s")).transcript())).toEqual(["q1", "a1", "q2", "a2", "q3", "a3"]);
    });

    test("never takes a call from its results, whatever its range says", async ({ sessions, store }) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn(main, [says("user", "u", "u")]);
      await turn.add(asks("ask1", "c1"));
      await turn.toolReturned(result("c1"));
      await turn.add(asks("ask2", "c2"));
      await turn.toolReturned(result("c2"));
      await turn.commit({ messages: [says("assistant", "done", "done")] });
      await sessions.forkBranch(main, { newBranchId: "f" });
      await appendRaw(store, main, compaction("h", "soft", "ask1.tools", "ask2", { from: 2, to: 4 }));
      await appendRaw(store, on("f"), compaction("h", "hard", "ask1.tools", "ask2", { from: 2, to: 4 }));
      expect(idsOf((await sessions.loadBranch({ sessionId: "s", branchId: "main" })).transcript())).toEqual([
        "u",
        "h.sum",
        "done",
      ]);
      expect(idsOf((await sessions.loadBranch({ sessionId: "s", branchId: "f" })).messages)).toEqual([
        "u",
        "h.sum",
        "done",
      ]);
    });
  });

  describe("a hard compaction", () => {
    test("replaces messages in the branch, while the log keeps them", async ({ sessions, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const before = await sessions.loadBranch("s");
      const turn = await sessions.beginTurn(main, [says("user", "q4", "q4")]);
      await turn.append(compaction("h", "hard", "q1", "a2", { from: 0, to: 4 }));
      await turn.commit();
      for (const reader of [sessions, await other()]) {
        const branch = await reader.loadBranch("s");
        expect(idsOf(branch.messages)).toEqual(["h.sum", "q3", "a3", "q4"]);
        expect((await reader.getBranch({ sessionId: "s", branchId: "main" })).messageCount).toBe(4);
        const then = await reader.loadBranch({ sessionId: "s", branchId: "main" }, { at: before.seq });
        expect(JSON.stringify(then.messages)).toBe(JSON.stringify(before.messages));
        expect(idsOf((await reader.messages(main, { last: 3 })).messages).slice(-3)).toEqual(["q3", "a3", "q4"]);
      }
    });

    test("drops fork points, and the refusal names what replaced them", async ({ sessions, store }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const data = (messageId: string, ...replacements: string[]) => ({ ...main, messageId, replacements });
      const dropped = async (messageId: string, by: string) => {
        const error = await refused(
          sessions.forkBranch(main, { from: messageId }),
          "message_not_on_branch",
          data(messageId, by),
        );
        expect(error.message).toContain(by);
        await refused(sessions.revertBranch(main, { to: messageId }), "message_not_on_branch", data(messageId, by));
      };
      await appendRaw(store, main, compaction("h1", "hard", "q1", "a1", { from: 0, to: 2 }));
      const { seq } = await sessions.loadBranch("s");
      for (const gone of ["q1", "a1"]) await dropped(gone, "h1.sum");
      await appendRaw(store, main, compaction("h2", "hard", "q1", "q2", { from: 0, to: 3, over: [seq] }));
      for (const gone of ["q1", "a1", "h1.sum", "q2"]) await dropped(gone, "h2.sum");
      await refused(sessions.forkBranch(main, { from: "nobody" }), "message_not_on_branch", data("nobody"));
      expect(idsOf((await sessions.loadBranch("s")).messages)).toEqual(["h2.sum", "a2", "q3", "a3"]);
    });

    test("can be forked after, with the state of the point and none of the later turns", async ({
      sessions,
      store,
      other,
    }) => {
      await sessions.createSession("s");
      for (const n of [1, 2, 3, 4]) await talk(sessions, main, n, n, { state: { n } });
      await appendRaw(store, main, compaction("h", "hard", "q1", "a2", { from: 0, to: 4 }));
      await talk(sessions, main, 5, 5, { state: { n: 5 } });
      await sessions.forkBranch(main, { newBranchId: "at summary", from: "h.sum" });
      await sessions.forkBranch(main, { newBranchId: "at a3", from: "a3" });
      await sessions.forkBranch(main, { newBranchId: "at a5", from: "a5" });
      for (const reader of [sessions, await other()]) {
        const load = async (id: string) => {
          const branch = await reader.loadBranch({ sessionId: "s", branchId: id });
          const page = await reader.messages(on(id), { last: 1 });
          expect(idsOf(branch.messages).slice(-page.messages.length)).toEqual(idsOf(page.messages));
          return [idsOf(branch.messages), branch.state, branch.turns.length];
        };
        expect(await load("at summary")).toEqual([["h.sum"], { n: 2 }, 2]);
        expect(await load("at a3")).toEqual([["h.sum", "q3", "a3"], { n: 3 }, 3]);
        expect(await load("at a5")).toEqual([["h.sum", "q3", "a3", "q4", "a4", "q5", "a5"], { n: 5 }, 5]);
      }
      await sessions.revertBranch(main, { to: "a3" });
      const back = await sessions.loadBranch({ sessionId: "s", branchId: "main" });
      expect([idsOf(back.messages), back.state, back.turns.length]).toEqual([["h.sum", "q3", "a3"], { n: 3 }, 3]);
    });

    test("does not bring back to a fork the results that its parent reverted away", async ({ sessions, store }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      const turn = await sessions.beginTurn(main, [says("user", "u", "u")]);
      await turn.add(asks("ask", "c1"));
      await turn.toolReturned(result("c1"));
      await turn.commit({ messages: [says("assistant", "done", "done")] });
      await appendRaw(store, main, compaction("h", "hard", "q1", "a1", { from: 0, to: 2 }));
      await sessions.revertBranch(main, { to: "ask" });
      await sessions.forkBranch(main, { newBranchId: "f" });
      const [parent, fork] = [
        await sessions.loadBranch({ sessionId: "s", branchId: "main" }),
        await sessions.loadBranch({ sessionId: "s", branchId: "f" }),
      ];
      expect(idsOf(parent.messages)).toEqual(["h.sum", "u", "ask", "ask.tools"]);
      expect(JSON.stringify(fork.messages)).toBe(JSON.stringify(parent.messages));
    });

    test("is taken back by a revert to before it, and a fork there has never heard of it", async ({
      sessions,
      store,
    }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const { seq } = await sessions.loadBranch("s");
      await appendRaw(store, main, compaction("h", "hard", "q1", "a1", { from: 0, to: 2 }));
      const all = ["q1", "a1", "q2", "a2", "q3", "a3"];
      await sessions.forkBranch(main, { newBranchId: "f", fromSeq: seq });
      await sessions.revertBranch(main, { toSeq: seq });
      for (const id of ["main", "f"]) {
        const branch = await sessions.loadBranch({ sessionId: "s", branchId: id });
        expect([idsOf(branch.messages), idsOf(branch.transcript()), branch.messageCount]).toEqual([all, all, 6]);
        expect(idsOf((await sessions.messages(on(id))).messages)).toEqual(all);
      }
      await sessions.forkBranch(main, { newBranchId: "g", from: "a1" });
      expect(idsOf((await sessions.loadBranch({ sessionId: "s", branchId: "g" })).messages)).toEqual(["q1", "a1"]);
    });

    test("of a fork leaves its parent as it is", async ({ sessions, store }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 2);
      await sessions.forkBranch(main, { newBranchId: "f" });
      await appendRaw(store, on("f"), compaction("h", "hard", "q1", "a2", { from: 0, to: 4 }));
      await talk(sessions, on("f"), 3);
      expect(idsOf((await sessions.loadBranch({ sessionId: "s", branchId: "f" })).messages)).toEqual([
        "h.sum",
        "q3",
        "a3",
      ]);
      expect(idsOf((await sessions.loadBranch({ sessionId: "s", branchId: "main" })).messages)).toEqual([
        "q1",
        "a1",
        "q2",
        "a2",
      ]);
      await refused(sessions.forkBranch(on("f"), { from: "a1" }), "message_not_on_branch", {
        replacements: ["h.sum"],
      });
    });

    test("of messages that are not there is refused and not written", async ({ sessions }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1);
      const turn = await sessions.beginTurn(main, "go");
      const { seq } = await sessions.loadBranch("s");
      const refuses = (draft: Draft) => refused(turn.append(draft), "event_invalid");
      await refuses(compaction("h", "hard", "nobody", "a1", { from: 0, to: 2 }));
      await refuses(compaction("h", "hard", "q1", "q1", { from: 0, to: 2 }));
      await refuses(compaction("h", "hard", "a1", "q1", { from: 1, to: 0 }));
      await refuses(compaction("h", "soft", "q1", "a1", { from: 0, to: 9 }));
      await refuses(compaction("h", "soft", "q1", "a1", { from: 0, to: 2, keep: [2] }));
      await refuses({ type: "history.cleared", id: "x", at: 5, results: [{ at: 1, callIds: ["c"] }] });
      expect((await sessions.loadBranch("s")).seq).toBe(seq);
      await turn.commit();
    });

    test("is ended by a fork at what stands for it, or at what it keeps", async ({ sessions, store, other }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 3);
      const range = { from: 0, to: 4, keep: [1, 2] };
      const two = {
        ...compaction("h", "hard", "q1", "a2", range),
        replacements: [summary("s1"), summary("s2")],
      } as Draft;
      await appendRaw(store, main, two);
      expect(idsOf((await sessions.loadBranch("s")).messages)).toEqual(["s1", "s2", "a1", "q2", "q3", "a3"]);
      const expected = { s1: ["s1"], s2: ["s1", "s2"], a1: ["s1", "s2", "a1"], q2: ["s1", "s2", "a1", "q2"] };
      for (const from of Object.keys(expected)) await sessions.forkBranch(main, { newBranchId: `at ${from}`, from });
      for (const reader of [sessions, await other()]) {
        for (const [id, messages] of Object.entries(expected)) {
          const fork = await reader.loadBranch({ sessionId: "s", branchId: `at ${id}` });
          const { messageCount } = await reader.getBranch({ sessionId: "s", branchId: `at ${id}` });
          const page = await reader.messages(on(`at ${id}`));
          expect([idsOf(fork.messages), idsOf(fork.transcript()), idsOf(page.messages), messageCount]).toEqual([
            ...[messages, messages, messages],
            messages.length,
          ]);
        }
      }
      await refused(sessions.forkBranch(main, { from: "a2" }), "message_not_on_branch", { replacements: ["s1", "s2"] });
      await talk(sessions, on("at s1"), 4);
      await sessions.revertBranch(main, { toMessageIndex: 3 });
      const back = await sessions.loadBranch({ sessionId: "s", branchId: "main" });
      expect(idsOf(back.messages)).toEqual(["s1", "s2", "a1"]);
    });

    test("of one message by one is still told from the log's, page by page", async ({ sessions, store }) => {
      await sessions.createSession("s");
      await talk(sessions, main, 1, 4);
      await appendRaw(store, main, compaction("h", "hard", "q2", "q2", { from: 2, to: 3 }));
      await sessions.forkBranch(main, { newBranchId: "f", from: "a3" });
      const pages = async (branchId: string, last: number) => {
        const found: string[][] = [];
        for (let before: number | undefined = Number.MAX_SAFE_INTEGER; before !== undefined; ) {
          const page: { messages: readonly { id: string }[]; before?: number } = await sessions.messages(on(branchId), {
            last,
            before,
          });
          found.unshift(idsOf(page.messages as never));
          before = page.before;
        }
        return found;
      };
      for (const [id, count] of [
        ["main", 4],
        ["f", 3],
      ] as const) {
        const { messages } = await sessions.loadBranch({ sessionId: "s", branchId: id });
        expect(idsOf(messages).slice(0, 4)).toEqual(["q1", "a1", "h.sum", "a2"]);
        for (const last of [1, 2, 3, 4, 5, 6, 20]) {
          const found = await pages(id, last);
          expect(found.flat(), `pages of ${last}`).toEqual(idsOf(messages));
          if (last === 1) expect(found).toHaveLength(count);
        }
      }
    });
  });
}

function summary(id: string) {
  return { id, role: "system" as const, content: id };
}
