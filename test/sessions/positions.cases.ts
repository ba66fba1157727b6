// What people count by: indexes and ids of messages, on whatever two processes did to a session.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import type { Fact } from "../../src/events/index.ts";
import { codec } from "../../src/events/index.ts";
import type { BranchRef, Store } from "../../src/log/index.ts";
import { holds } from "../model/property.ts";
import { type Given, idsOf, on, type Place, refused, replay, withGiven } from "./kit.ts";
import { Work, works } from "./steps.ts";

/** The ids of everything that a compaction of the branch's log ever showed. */
async function everShown(store: Store, ref: BranchRef): Promise<string[]> {
  const events = await store.read(ref, { after: 0, limit: 1000 });
  const facts = events.map((event) => codec.decode(event) as Fact).filter(({ type }) => type === "history.compacted");
  return (facts as Fact<"history.compacted">[]).flatMap(({ replacements }) => replacements.map(({ id }) => id));
}

/** Every index is a fork point, and the fork has as many messages. */
async function checkIndexes({ sessions }: Given, id: string, shown: readonly string[]): Promise<void> {
  for (let index = 0; index <= shown.length; index++) {
    const fork = await sessions.forkBranch(on(id), { fromMessageIndex: index, newBranchId: "probe" });
    const { messages } = await sessions.loadBranch(on("probe"));
    expect(fork.messageCount).toBe(messages.length);
    expect(idsOf(messages).slice(0, index)).toEqual(shown.slice(0, index));
    // One more where calls are left without their results.
    expect(idsOf(messages).slice(index)).toEqual(messages.length > index ? [`${shown[index - 1]}.tools`] : []);
    await sessions.deleteBranch(on("probe"));
  }
  await refused(sessions.forkBranch(on(id), { fromMessageIndex: shown.length + 1 }), "invalid_argument");
}

/** An id that people don't see is refused by all that take one, and the refusal names what stands for it now. */
async function checkHidden({ sessions }: Given, id: string, hidden: string, shown: ReadonlySet<string>) {
  const error = await refused(sessions.forkBranch(on(id), { from: hidden }), "message_not_on_branch");
  const { replacements } = error.data as { replacements: string[] };
  for (const each of replacements) expect(shown).toContain(each);
  await refused(sessions.revertBranch(on(id), { to: hidden }), "message_not_on_branch", { replacements });
  await refused(sessions.pin(on(id), hidden), "message_not_on_branch", { replacements });
  return replacements;
}

export function positionCases(place: Place): void {
  const always = (runs: number, check: (given: Given) => Promise<void>) =>
    holds(
      fc.asyncProperty(works, (steps) =>
        withGiven(place, async (given) => {
          const { sessions, store, other } = given;
          await sessions.createSession("s");
          const work = new Work(store, [sessions, await other()]);
          for (const step of steps) await work.play(step);
          await check(given);
        }),
      ),
      place.kind === "memory" ? runs : Math.ceil(runs / 12),
    );

  describe("positions, on whatever happened before", () => {
    test("indexes and counts are those of what people see; hidden ids are refused by what stands for them", () =>
      always(60, async (given) => {
        const { sessions, store } = given;
        for (const { id, messageCount } of await sessions.listBranches("s")) {
          const view = await replay(store, on(id));
          // What is not closed yet can be pointed at as well.
          if (view.open || view.staged.length > 0) continue;
          const ids = idsOf(view.shown!);
          const shown = new Set(ids);
          expect(messageCount).toBe(ids.length);
          await checkIndexes(given, id, ids);
          for (const [i, message] of view.messages.entries()) {
            if (shown.has(message.id)) continue;
            const over = view.overlays.filter((each) => each.retention === "hard" && each.from <= i && i < each.to);
            const named = await checkHidden(given, id, message.id, shown);
            expect(over.map(({ replacements }) => idsOf(replacements))).toContainEqual(named);
          }
          for (const former of await everShown(store, on(id))) {
            if (!shown.has(former)) await checkHidden(given, id, former, shown);
          }
        }
      }));

    test("once everything is taken back, every message of the log's path has its place again", () =>
      always(40, async (given) => {
        const { sessions, store } = given;
        for (const { id } of await sessions.listBranches("s")) {
          for (;;) {
            const taken = await sessions.uncompact(on(id)).catch((error: unknown) => {
              if (!BoughError.is(error, "compaction_not_found")) throw error;
            });
            if (!taken) break;
          }
          const view = await replay(store, on(id));
          expect(idsOf(view.shown!)).toEqual(idsOf(view.messages));
          for (const [index, { id: from }] of view.messages.entries()) {
            const fork = await sessions.forkBranch(on(id), { from, newBranchId: "probe" });
            expect(fork.fork).toMatchObject({ forkedAtMessageId: from, forkedAtMessageIndex: index });
            await sessions.deleteBranch(on("probe"));
          }
        }
      }));
  });
}
