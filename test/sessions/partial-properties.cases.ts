// Whatever happens to a session: what a run loads of a branch, and the view of a fork, are what a replay gives.

import fc from "fast-check";
import { describe, expect, test as once } from "vitest";
import { transcript } from "../../src/projection/index.ts";
import type { Sessions } from "../../src/sessions/index.ts";
import { holds } from "../model/property.ts";
import { counted } from "./counted.ts";
import { type Given, on, type Place, replay, says, withGiven } from "./kit.ts";
import { Work, works } from "./steps.ts";

/** Each history has a store of its own. */
export function partialProperties(place: Place, runs: number): void {
  describe("whatever happens to a session, views for runs and views of forks", () => {
    once("are what a replay of the log gives", async () => {
      const checked = { partial: 0, forks: 0 };
      await holds(
        fc.asyncProperty(works, fc.nat(1000), (steps, pick) =>
          withGiven(place, async (given) => {
            const { context, sessions } = counted(given, "warm");
            await sessions.createSession("s");
            const work = new Work(given.store, [sessions, await given.other()], "long ".repeat(20_000));
            for (const step of steps) await work.play(step);
            const branches = await sessions.listBranches("s");
            for (const branch of pick % 2 > 0 ? branches.keys() : []) {
              await work.play({ do: "compact", branch, second: false, hard: pick % 3 === 0, from: 0, to: pick });
            }
            // A piece is cut behind what was compacted; otherwise the next cold load cuts it.
            const large = says("user", "long ".repeat(220_000));
            if (pick % 4 > 0) for (const { id } of branches) await sessions.appendTurn(on(id), [large]);
            await context.views.settle();
            for (const { id } of branches) await check(given, sessions, id, pick, checked);
          }),
        ),
        runs,
      );
      if (runs > 30) expect(Math.min(checked.partial, checked.forks)).toBeGreaterThan(5);
    });
  });

  async function check(
    given: Given,
    sessions: Sessions,
    id: string,
    pick: number,
    checked: { partial: number; forks: number },
  ): Promise<void> {
    const whole = await replay(given.store, on(id));
    const cold = counted(given, `cold ${id}`);
    const { view } = await cold.context.views.loadForRun(on(id));
    if (view.skipped > 0) checked.partial++;
    expect(transcript(view)).toEqual(transcript(whole));
    // Of the partial view and of the whole one, at a position and at a message.
    for (const from of [cold, counted(given, `warm ${id}`)]) {
      if (from !== cold) await from.context.views.load(on(id));
      const unclosed = [...whole.staged, ...(whole.open ? [whole.open] : [])].flatMap(({ messages }) => messages);
      const messages = [...whole.shown!, ...unclosed];
      const message = messages[pick % Math.max(1, messages.length)];
      const targets = [{ fromSeq: pick % (whole.seq + 1) }, {}, ...(message ? [{ from: message.id }] : [])];
      for (const target of targets) {
        await from.sessions.forkBranch(on(id), { ...target, newBranchId: "probe" });
        const { pieces } = from.reads;
        const { view: child } = await from.context.views.loadForRun(on("probe"));
        if (from.reads.pieces === pieces) checked.forks++;
        const log = await replay(given.store, on("probe"));
        if (child.skipped === 0) expect(child).toEqual(log);
        expect(transcript(child)).toEqual(transcript(log));
        expect((await from.context.views.load(on("probe"))).view).toEqual(log);
        await from.sessions.deleteBranch(on("probe"));
      }
    }
    expect((await cold.context.views.load(on(id))).view).toEqual(whole);
    expect((await sessions.loadBranch(on(id), { at: whole.seq })).seq).toBe(whole.seq);
  }
}
