import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { transcript } from "../../src/projection/index.ts";
import { unclosedMessages } from "../../src/projection/overlay.ts";
import type { Branch, Sessions } from "../../src/sessions/index.ts";
import { holds } from "../model/property.ts";
import { type Given, idsOf, on, type Place, replay, says, withGiven } from "./kit.ts";
import { type Step, Work, works } from "./steps.ts";

/** Everything that a loaded branch tells of its position. */
function picture(branch: Branch): string {
  const { lastActivity: _activity, createdAt: _created, fork: _fork, ...told } = branch;
  return JSON.stringify([told, branch.transcript()]);
}

async function branchesOf(sessions: Sessions): Promise<string[]> {
  return (await sessions.listBranches("s")).map(({ id }) => id);
}

/** Plays the steps and calls `look` after each, with the branch it was about. */
async function play(
  { sessions, store, other }: Given,
  steps: readonly Step[],
  look: (id: string) => Promise<void>,
  text?: string,
) {
  await sessions.createSession("s");
  const work = new Work(store, [sessions, await other()], text);
  for (const step of steps) await look(await work.play(step));
}

/** All messages of a branch in pages of at least `last`, from the newest back. */
async function paged(sessions: Sessions, branchId: string, last: number): Promise<string> {
  const pages: unknown[][] = [];
  for (let before: number | undefined, first = true; first || before !== undefined; first = false) {
    const page = await sessions.messages(on(branchId), { last, ...(before !== undefined && { before }) });
    if (page.before !== undefined) expect(page.messages.length).toBeGreaterThanOrEqual(last);
    pages.unshift([...page.messages]);
    before = page.before;
  }
  return JSON.stringify(pages.flat());
}

/** Properties of whatever two processes do to a session; each history has a store of its own. */
export function propertyCases(place: Place): void {
  const always = (runs: number, check: (given: Given, steps: Step[]) => Promise<void>) =>
    holds(
      fc.asyncProperty(works, (steps) => withGiven(place, (given) => check(given, steps))),
      place.kind === "memory" ? runs : Math.ceil(runs / 12),
    );

  describe("whatever happens to a session", () => {
    test("a branch loaded at a position is what it was when that position was its newest", () =>
      always(80, async (given, steps) => {
        const seen: { id: string; seq: number; text: string }[] = [];
        await play(given, steps, async (id) => {
          if (!(await branchesOf(given.sessions)).includes(id)) return;
          const branch = await given.sessions.loadBranch({ sessionId: "s", branchId: id });
          seen.push({ id, seq: branch.seq, text: picture(branch) });
        });
        const there = new Set(await branchesOf(given.sessions));
        const elsewhere = await given.other();
        for (const { id, seq, text } of seen.filter((each) => there.has(each.id))) {
          expect(picture(await elsewhere.loadBranch({ sessionId: "s", branchId: id }, { at: seq }))).toBe(text);
        }
      }));

    const sameEverywhere = async (given: Given) => {
      const cold = await given.other();
      for (const id of await branchesOf(given.sessions)) {
        const branch = await given.sessions.loadBranch({ sessionId: "s", branchId: id });
        expect(picture(await cold.loadBranch({ sessionId: "s", branchId: id }))).toBe(picture(branch));
        const view = await replay(given.store, on(id));
        expect(JSON.stringify(branch.messages)).toBe(JSON.stringify(view.shown));
        expect(JSON.stringify(branch.transcript())).toBe(JSON.stringify(transcript(view)));
        expect([branch.state, branch.seq, branch.turns]).toEqual([view.state, view.seq, view.turns]);
      }
    };

    test("what is cached, what is loaded cold, and a replay of the log are the same", () =>
      always(80, async (given, steps) => {
        await play(given, steps, async () => {});
        await sameEverywhere(given);
      }));

    test("and so they are when every few turns fill a segment", () =>
      always(18, async (given, steps) => {
        await play(given, steps, async () => {}, "long ".repeat(100_000));
        await sameEverywhere(given);
      }));

    test("pages of messages, from the newest back to the beginning, are the messages of the branch", () =>
      always(80, async (given, steps) => {
        await play(given, steps, async () => {});
        for (const id of await branchesOf(given.sessions)) {
          const messages = JSON.stringify((await given.sessions.loadBranch({ sessionId: "s", branchId: id })).messages);
          for (const last of [1, 2, 5, 100]) expect(await paged(given.sessions, id, last)).toBe(messages);
        }
      }));

    test("every message of a branch is a point to fork at, and the fork ends there", () =>
      always(40, async (given, steps) => {
        await play(given, steps, async () => {});
        for (const id of await branchesOf(given.sessions)) {
          const { messages } = await given.sessions.loadBranch({ sessionId: "s", branchId: id });
          for (const [i, { id: from }] of messages.entries()) {
            const fork = await given.sessions.forkBranch(on(id), { from, newBranchId: "probe" });
            const child = await given.sessions.loadBranch({ sessionId: "s", branchId: "probe" });
            expect(idsOf(child.messages).slice(0, i + 1)).toEqual(idsOf(messages).slice(0, i + 1));
            expect(idsOf(child.messages).slice(i + 1)).toEqual(fork.messageCount > i + 1 ? [`${from}.tools`] : []);
            expect(fork.fork).toMatchObject({ forkedAtMessageId: from, forkedAtMessageIndex: i });
            await given.sessions.deleteBranch({ sessionId: "s", branchId: "probe" });
          }
        }
      }));

    test("a fork that goes back to a turn of its own shows a model what it showed there", () =>
      always(40, async (given, steps) => {
        const { sessions, store } = given;
        await sessions.createSession("s");
        const work = new Work(store, [sessions, await given.other()]);
        for (const step of steps) await work.play(step);
        const probe = on("probe");
        const seen = async () => JSON.stringify(transcript(await replay(store, probe)));
        for (const [branch, id] of (await branchesOf(sessions)).entries()) {
          await work.play({ do: "clear", branch, second: false, which: steps.length });
          const { messages } = await sessions.loadBranch(on(id));
          for (const { id: from } of messages.filter((_, i) => i % 4 === 1)) {
            await sessions.forkBranch(on(id), { from, newBranchId: "probe" });
            await sessions.appendTurn(probe, [says("user", "one", "one")]);
            const before = await seen();
            await sessions.appendTurn(probe, [says("user", "two", "two")]);
            await sessions.revertBranch(probe, { to: "one" });
            expect(await seen()).toBe(before);
            await sessions.deleteBranch(probe);
          }
        }
      }));

    test("every position of a branch is a point to fork at, and the fork has what was there, closed", () =>
      always(20, async (given, steps) => {
        await play(given, steps, async () => {});
        for (const id of await branchesOf(given.sessions)) {
          const { seq } = await given.sessions.getBranch({ sessionId: "s", branchId: id });
          for (let at = 0; at <= seq; at += 2) {
            const view = await replay(given.store, on(id), at);
            const then = [...view.shown!, ...unclosedMessages(view)];
            await given.sessions.forkBranch(on(id), { fromSeq: at, newBranchId: "probe" });
            const child = await given.sessions.loadBranch({ sessionId: "s", branchId: "probe" });
            expect(JSON.stringify(child.messages)).toBe(JSON.stringify(then));
            expect(JSON.stringify(child.transcript())).toBe(JSON.stringify(transcript(view)));
            expect((await given.sessions.getBranch({ sessionId: "s", branchId: "probe" })).messageCount).toBe(
              then.length,
            );
            expect(await paged(given.sessions, "probe", 2)).toBe(JSON.stringify(then));
            await given.sessions.deleteBranch({ sessionId: "s", branchId: "probe" });
          }
        }
      }));
  });
}
