import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type JsonObject, mergePatch } from "../base/json.ts";
import type { StateHandle } from "../tools/index.ts";
import { defineState } from "./state.ts";
import { StateBag, type StateMigration } from "./state-bag.ts";

/** A session's state in a store: every step takes a moment, and a change is made again when another was faster. */
class FakeSession {
  state: JsonObject;
  writes = 0;
  reads = 0;
  /** Holds up what begins while it is there. */
  gate: Promise<void> | undefined;

  constructor(state: JsonObject = {}) {
    this.state = state;
  }

  async read(): Promise<JsonObject> {
    this.reads++;
    await this.gate;
    return structuredClone(this.state);
  }

  async change(change: (state: JsonObject) => JsonObject): Promise<JsonObject> {
    await this.gate;
    for (;;) {
      const before = this.state;
      await Promise.resolve();
      const patch = change(structuredClone(before));
      await Promise.resolve();
      if (this.state !== before) continue;
      if (Object.keys(patch).length === 0) return before;
      this.writes++;
      this.state = mergePatch(before, JSON.parse(JSON.stringify(patch)));
      return this.state;
    }
  }
}

function givenBag(given: { branch?: JsonObject; session?: FakeSession; declared?: readonly StateHandle[] } = {}) {
  const { branch = {}, session = new FakeSession(), declared = [] } = given;
  const reports: StateMigration[] = [];
  const bag = new StateBag({
    branch,
    session: () => session.read(),
    changeSession: (change) => session.change(change),
    report: (migration) => reports.push(migration),
    declared,
  });
  return { bag, session, reports };
}

const count = defineState({ key: "count", scope: "branch", initial: 0, version: 2, schema: z.number() });
const shared = defineState({ key: "shared", scope: "session", initial: [] as string[], version: 2 });
const fleeting = defineState({ key: "fleeting", scope: "run", initial: { on: false } });

describe("StateBag", () => {
  describe("branch scope", () => {
    test("what changed is in the patch, in its stored form; the rest is not (StateBag-3)", async () => {
      const other = defineState({ key: "other", scope: "branch", initial: "" });
      const { bag } = givenBag({ branch: { mine: 1, "@other": { version: 1, data: "as it was" } } });
      expect(bag.branchPatch()).toEqual({});
      await bag.set(count, 3);
      expect(await bag.update(count, (value) => value + 1)).toBe(4);
      expect(await bag.get(other)).toBe("as it was");
      expect(bag.branchPatch()).toEqual({ "@count": { version: 2, data: 4 } });
    });

    test("a value that comes back to what is stored is no change", async () => {
      const { bag } = givenBag({ branch: { "@count": { version: 2, data: 7 } } });
      await bag.set(count, 8);
      await bag.set(count, 7);
      expect(bag.branchPatch()).toEqual({});
    });

    test("a value that was handed out can't be changed behind the bag's back (StateBag-1)", async () => {
      const branch = { "@list": { version: 1, data: [{ done: false }] } };
      const list = defineState({ key: "list", scope: "branch", initial: [] as { done: boolean }[] });
      const { bag } = givenBag({ branch });
      const read = await bag.get(list);
      expect(() => {
        read[0]!.done = true;
      }).toThrow(TypeError);
      const mine = [{ done: true }];
      await bag.set(list, mine);
      mine[0]!.done = false;
      expect(await bag.get(list)).toEqual([{ done: true }]);
      expect(Object.isFrozen(branch["@list"])).toBe(false);
      expect(Object.isFrozen(branch["@list"].data)).toBe(false);
    });

    test("the initial value stays what it is, whatever is done with what was read (StateBag-1)", async () => {
      const first = givenBag().bag;
      await first.update(fleeting, () => ({ on: true }));
      expect(await first.get(fleeting)).toEqual({ on: true });
      expect(await givenBag().bag.get(fleeting)).toEqual({ on: false });
    });

    test("a value that does not fit is refused and changes nothing", async () => {
      const { bag } = givenBag();
      await bag.set(count, 1);
      await expect(bag.set(count, "many" as never)).rejects.toMatchObject({ code: "invalid_argument" });
      await expect(bag.update(count, () => Number.NaN)).rejects.toMatchObject({ code: "invalid_argument" });
      expect(await bag.get(count)).toBe(1);
    });

    test("a value too large to be kept is refused at once; one of the run's own is not", async () => {
      const text = defineState({ key: "text", scope: "branch", initial: "" });
      const big = defineState({ key: "big", scope: "run", initial: "" });
      const { bag } = givenBag();
      await expect(bag.set(text, "x".repeat(70_000))).rejects.toMatchObject({ code: "limit_exceeded" });
      await bag.set(big, "x".repeat(70_000));
      expect(bag.branchPatch()).toEqual({});
    });

    test("a key that is no own property is not there", async () => {
      const branch = Object.create({ "@count": { version: 2, data: 9 } }) as JsonObject;
      expect(await givenBag({ branch }).bag.get(count)).toBe(0);
    });
  });

  describe("versions", () => {
    const doubled = defineState({ ...base(), migrate: (value, from) => (value as number) * 2 + from });

    function base() {
      return { key: "count", scope: "branch", initial: 0, version: 3, schema: z.number() } as const;
    }

    test("an older value is migrated, reported once, and kept with the turn (StateBag-6)", async () => {
      const { bag, reports } = givenBag({ branch: { "@count": { version: 1, data: 5 } } });
      expect(await bag.get(doubled)).toBe(11);
      expect(await bag.get(doubled)).toBe(11);
      expect(reports).toEqual([{ scope: "branch", key: "count", change: "migrated", from: 1, to: 3 }]);
      expect(bag.branchPatch()).toEqual({ "@count": { version: 3, data: 11 } });
    });

    test("an older value that nobody migrates is reset", async () => {
      const { bag, reports } = givenBag({ branch: { "@count": { version: 1, data: 5 } } });
      expect(await bag.get(count)).toBe(0);
      expect(reports).toEqual([{ scope: "branch", key: "count", change: "reset", from: 1, to: 2 }]);
    });

    test.each([
      ["does not fit the schema", { version: 2, data: "five" }],
      ["is no stored form", "five"],
      ["has no data", { version: 2 }],
      ["has no version", { data: 5 }],
    ])("a value that %s is reset; it is replaced by the next change and not before (StateBag-6)", async (_, stored) => {
      const { bag, reports } = givenBag({ branch: { "@count": stored as never } });
      expect(await bag.get(count)).toBe(0);
      expect(reports).toMatchObject([{ change: "reset", key: "count", to: 2 }]);
      expect(bag.branchPatch()).toEqual({});
      await bag.set(count, 1);
      expect(bag.branchPatch()).toEqual({ "@count": { version: 2, data: 1 } });
    });

    test("a migration that throws, or gives what does not fit, is a reset", async () => {
      for (const migrate of [() => "five" as never, () => JSON.parse("{")]) {
        const { bag, reports } = givenBag({ branch: { "@count": { version: 1, data: 5 } } });
        expect(await bag.get(defineState({ ...base(), migrate }))).toBe(0);
        expect(reports).toMatchObject([{ change: "reset", from: 1, to: 3 }]);
      }
    });

    test("a newer branch value is never written; the run works on its own (StateBag-4)", async () => {
      const { bag, reports } = givenBag({ branch: { "@count": { version: 9, data: { other: "shape" } } } });
      expect(await bag.get(count)).toBe(0);
      await bag.set(count, 4);
      expect(await bag.get(count)).toBe(4);
      expect(bag.branchPatch()).toEqual({});
      expect(reports).toEqual([{ scope: "branch", key: "count", change: "newer", from: 9, to: 2 }]);
    });

    test("a newer session value is never written; nothing of the run's own is lost (StateBag-4)", async () => {
      const stored = { "@shared": { version: 9, data: 1 } };
      const { bag, session, reports } = givenBag({ session: new FakeSession(stored) });
      await Promise.all(["a", "b", "c"].map((name) => bag.update(shared, (list) => [...list, name])));
      await bag.update(shared, (list) => [...list, "d"]);
      expect([...(await bag.get(shared))].sort()).toEqual(["a", "b", "c", "d"]);
      expect(session.state).toEqual(stored);
      expect(reports).toEqual([{ scope: "session", key: "shared", change: "newer", from: 9, to: 2 }]);
    });

    test("a change that waited while another met the newer value keeps what that one did (StateBag-4)", async () => {
      const session = new FakeSession({ "@shared": { version: 9, data: 1 } });
      const { bag } = givenBag({ session });
      let open = () => {};
      session.gate = new Promise((resolve) => {
        open = resolve;
      });
      const waiting = bag.update(shared, (list) => [...list, "late"]);
      session.gate = undefined;
      await bag.update(shared, (list) => [...list, "first"]);
      open();
      expect(await waiting).toEqual(["first", "late"]);
      expect(await bag.get(shared)).toEqual(["first", "late"]);
    });

    test("a read that waited while another met the newer value sees what that one did (StateBag-4)", async () => {
      const session = new FakeSession({ "@shared": { version: 9, data: 1 } });
      const { bag } = givenBag({ session });
      let open = () => {};
      session.gate = new Promise((resolve) => {
        open = resolve;
      });
      const waiting = bag.get(shared);
      session.gate = undefined;
      await bag.set(shared, ["first"]);
      open();
      expect(await waiting).toEqual(["first"]);
    });

    test("an older session value is migrated when read and stored with its next change (StateBag-6)", async () => {
      const session = new FakeSession({ "@old": { version: 1, data: 5 } });
      const old = defineState({ key: "old", scope: "session", initial: "", version: 2, migrate: String });
      const { bag, reports } = givenBag({ session });
      expect(await bag.get(old)).toBe("5");
      expect(await bag.get(old)).toBe("5");
      expect(session.writes).toBe(0);
      await bag.update(old, (value) => value);
      expect(session.state).toEqual({ "@old": { version: 2, data: "5" } });
      expect(reports).toEqual([{ scope: "session", key: "old", change: "migrated", from: 1, to: 2 }]);
    });
  });

  describe("session scope", () => {
    test("a change is written at once and leaves the rest alone (StateBag-3, StateBag-5)", async () => {
      const session = new FakeSession({ mine: true, "@gone": { version: 1, data: 0 } });
      const { bag } = givenBag({ session });
      await bag.set(shared, ["a"]);
      expect(session.state).toEqual({
        mine: true,
        "@gone": { version: 1, data: 0 },
        "@shared": { version: 2, data: ["a"] },
      });
      expect(bag.branchPatch()).toEqual({});
    });

    test("what another run writes is seen", async () => {
      const session = new FakeSession();
      const [one, two] = [givenBag({ session }).bag, givenBag({ session }).bag];
      expect(await one.get(shared)).toEqual([]);
      await two.set(shared, ["news"]);
      expect(await one.get(shared)).toEqual(["news"]);
    });

    test("a change that changes nothing writes nothing", async () => {
      const { bag, session } = givenBag();
      await bag.set(shared, []);
      await bag.update(shared, (list) => [...list]);
      expect(session.writes).toBe(0);
    });

    test("a change that throws writes nothing and is told", async () => {
      const { bag, session } = givenBag();
      const change = () => {
        throw new Error("no");
      };
      await expect(bag.update(shared, change)).rejects.toThrow("no");
      expect(session.state).toEqual({});
    });
  });

  describe("begin", () => {
    const declared = [count, shared, fleeting, defineState({ key: "plan", scope: "branch", initial: [] as string[] })];

    test("the keys that Bough keeps for itself can't be declared", () => {
      expect(() => defineState({ key: "pins", scope: "branch", initial: {} })).toThrow(
        'The state key "pins" is reserved.',
      );
    });

    test("stored keys that nobody declares are reported and kept, declared ones that are missing too", () => {
      const branch = { mine: 1, "@plan": { version: 1, data: [] }, "@gone": { version: 4, data: 1 }, "@odd": 7 };
      // Bough's own keys are no declared state.
      Object.assign(branch, { "@pins": { m1: 0 } });
      const { bag, reports } = givenBag({ branch, declared });
      bag.begin();
      bag.begin();
      expect(reports).toEqual([
        { scope: "branch", key: "count", change: "added", to: 2 },
        { scope: "branch", key: "gone", change: "removed", from: 4 },
        { scope: "branch", key: "odd", change: "removed" },
      ]);
      expect(bag.branchPatch()).toEqual({});
    });

    test("nothing is reported of an empty state, and the session is not read", () => {
      const { bag, reports, session } = givenBag({ branch: { mine: 1 }, declared });
      bag.begin();
      expect(reports).toEqual([]);
      expect(session.reads).toBe(0);
    });

    test("the session's state is compared when it is first read, once", async () => {
      const session = new FakeSession({ "@gone": { version: 1, data: 0 } });
      const { bag, reports } = givenBag({ session, declared });
      bag.begin();
      expect(reports).toEqual([]);
      await bag.get(shared);
      await bag.set(shared, ["a"]);
      expect(reports).toEqual([
        { scope: "session", key: "shared", change: "added", to: 2 },
        { scope: "session", key: "gone", change: "removed", from: 1 },
      ]);
    });
  });

  test("one key is one handle", async () => {
    const twin = defineState({ key: "count", scope: "run", initial: 0 });
    await expect(givenBag({ declared: [count] }).bag.get(twin)).rejects.toMatchObject({ code: "invalid_argument" });
    const { bag } = givenBag();
    await bag.get(count);
    await expect(bag.set(twin, 1)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("two runs that work at the same time lose nothing, whatever they do (StateBag-2)", async () => {
    const handles = {
      run: defineState({ key: "r", scope: "run", initial: {} as Record<string, number> }),
      branch: defineState({ key: "b", scope: "branch", initial: {} as Record<string, number> }),
      session: defineState({ key: "s", scope: "session", initial: {} as Record<string, number> }),
    };
    const scopes = ["run", "branch", "session"] as const;
    const step = fc.record({
      run: fc.constantFrom(0, 1),
      scope: fc.constantFrom(...scopes),
      name: fc.constantFrom("x", "y", "z"),
      by: fc.integer({ min: -2, max: 3 }),
      pause: fc.integer({ min: 0, max: 4 }),
      isRead: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const session = new FakeSession({ kept: "yes" });
        const bags = [givenBag({ session }).bag, givenBag({ session }).bag];
        const sums: Record<string, Record<string, number>> = {};
        const work = steps.map(async ({ run, scope, name, by, pause, isRead }) => {
          for (let i = 0; i < pause; i++) await Promise.resolve();
          const bag = bags[run]!;
          if (isRead) return bag.get(handles[scope]);
          const place = scope === "session" ? "session" : `${scope}${run}`;
          sums[place] ??= {};
          const sum = sums[place];
          sum[name] = (sum[name] ?? 0) + by;
          return bag.update(handles[scope], (values) => ({ ...values, [name]: (values[name] ?? 0) + by }));
        });
        await Promise.all(work);
        for (const [run, bag] of bags.entries()) {
          expect(await bag.get(handles.run)).toEqual(sums[`run${run}`] ?? {});
          expect(await bag.get(handles.branch)).toEqual(sums[`branch${run}`] ?? {});
          expect(await bag.get(handles.session)).toEqual(sums.session ?? {});
          const changed = sums[`branch${run}`];
          expect(bag.branchPatch()).toEqual(changed ? { "@b": { version: 1, data: changed } } : {});
        }
        expect(session.state.kept).toBe("yes");
      }),
    );
  });
});
