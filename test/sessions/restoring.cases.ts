import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import { transcript } from "../../src/projection/index.ts";
import { unclosedMessages } from "../../src/projection/overlay.ts";
import { holds } from "../model/property.ts";
import { on, type Place, replay, withGiven } from "./kit.ts";
import { Work, works } from "./steps.ts";

/** What taking compactions back leads to, on whatever two processes did to a session before. */
export function restoreCases(place: Place): void {
  const runs = place.kind === "memory" ? 120 : 12;

  describe("compactions on whatever happened before", () => {
    test("the newest, taken back, gives the view before it; all of them, the uncompacted view (Overlay-7)", () =>
      holds(
        fc.asyncProperty(works, fc.nat(3), fc.boolean(), (steps, turns, isHard) =>
          withGiven(place, async ({ sessions, store, other }) => {
            await sessions.createSession("s");
            const elsewhere = await other();
            const work = new Work(store, [sessions, elsewhere]);
            for (const step of steps) await work.play(step);
            for (const { id } of await sessions.listBranches("s")) {
              const seen = async () => {
                const view = await replay(store, on(id));
                return { shown: JSON.stringify(view.shown), model: JSON.stringify(transcript(view)), view };
              };
              const before = await seen();
              const retention = isHard ? "hard" : "soft";
              const made = await elsewhere
                .compact(on(id), { keep: { turns }, retention, strategy: () => ({ replacements: [] }) })
                .catch((error: unknown) => {
                  if (!BoughError.is(error, "nothing_to_compact")) throw error;
                });
              if (made) {
                await sessions.uncompact(on(id), made.id);
                const { shown, model, view } = await seen();
                expect({ shown, model }).toEqual({ shown: before.shown, model: before.model });
                expect(view.overlays.map((each) => each.id)).toEqual(before.view.overlays.map((each) => each.id));
              }
              const left = () => sessions.listCompactions(on(id)).then((all) => all.filter(({ inForce }) => inForce));
              while ((await left()).length > 0) await sessions.uncompact(on(id));
              const cleared = new Set((await seen()).view.cleared.map((each) => each.id));
              for (const clearing of cleared) await sessions.uncompact(on(id), clearing);
              const { view, shown, model } = await seen();
              expect(shown).toBe(JSON.stringify(view.messages));
              expect(model).toBe(JSON.stringify([...view.messages, ...unclosedMessages(view)]));
            }
          }),
        ),
        runs,
      ));
  });
}
