import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { BoughError } from "../base/errors.ts";
import {
  type AppendTarget,
  decideAppend,
  decideClaim,
  decideDelete,
  isLive,
  repeatedClaim,
  withDescendants,
} from "./decide.ts";
import type { RunClaim, StoredEvent } from "./store.ts";

const ref = { sessionId: "s", branchId: "b" };
const log: StoredEvent[] = ["a", "b", "c"].map((id, i) => ({ seq: i + 11, id, data: `data of ${id}` }));
const header = { born: "x" };
const target: AppendTarget = { ref, seq: 13, epoch: 5, header, find: (id) => log.find((event) => event.id === id) };
const claim: RunClaim = { ...ref, runId: "r", owner: "o", epoch: 5, claimedAt: 0, expiresAt: 100 };

describe("decideAppend", () => {
  test("new facts go after the newest", () => {
    expect(decideAppend(target, [{ id: "x", data: "" }], {})).toEqual({ first: 14, last: 14, repeated: false });
    const two = ["x", "y"].map((id) => ({ id, data: "" }));
    expect(decideAppend(target, two, { epoch: 5, expectedSeq: 13 })).toEqual({ first: 14, last: 15, repeated: false });
  });

  test("of any batch: a stretch of the log is a repeat, without any of it it is new, the rest is a conflict", () => {
    const event = fc.record({ id: fc.constantFrom("a", "b", "c", "x", "y"), other: fc.boolean() });
    fc.assert(
      fc.property(fc.array(event, { minLength: 1, maxLength: 4 }), (drafts) => {
        const events = drafts.map(({ id, other }) => ({ id, data: other ? "other" : `data of ${id}` }));
        const texts = events.map(({ id, data }) => `${id}:${data}`).join("|");
        const stretches = [0, 1, 2].flatMap((from) =>
          [1, 2, 3].map((to) => ({ first: from + 11, events: log.slice(from, to) })),
        );
        const same = stretches.find(
          (stretch) =>
            stretch.events.length > 0 && stretch.events.map(({ id, data }) => `${id}:${data}`).join("|") === texts,
        );
        const distinct = new Set(events.map(({ id }) => id)).size === events.length;
        const fresh = distinct && events.every(({ id }) => target.find(id) === undefined);
        const decide = () => decideAppend(target, events, {});
        if (same) {
          const last = same.first + events.length - 1;
          expect(decide()).toEqual({ first: same.first, last, repeated: true });
        } else if (fresh) expect(decide()).toEqual({ first: 14, last: 13 + events.length, repeated: false });
        else expect(decide).toThrow(expect.objectContaining({ code: "event_conflict" }));
      }),
      { numRuns: 500 },
    );
  });

  test("a free slot has no epoch that writes", () => {
    const free = { ...target, epoch: undefined };
    expect(() => decideAppend(free, [{ id: "x", data: "" }], { epoch: 5 })).toThrow(
      expect.objectContaining({ code: "epoch_stale" }),
    );
  });
});

describe("decideClaim", () => {
  const asked = { runId: "r2", owner: "o", leaseMs: 10 };

  test("a free slot is claimed, one's own is renewed, also when it ran out", () => {
    expect(decideClaim(undefined, asked, 0)).toBe("claim");
    expect(decideClaim(claim, { ...asked, runId: "r" }, 0)).toBe("renew");
    expect(decideClaim(claim, { ...asked, runId: "r" }, 1000)).toBe("renew");
  });

  test("another's is refused until its lease ends, or taken over by its epoch", () => {
    for (const over of [undefined, 4, 6]) {
      const options = over === undefined ? asked : { ...asked, over };
      expect(() => decideClaim(claim, options, 99)).toThrow(expect.objectContaining({ code: "run_active" }));
      expect(decideClaim(claim, options, 100)).toBe("claim");
    }
    expect(decideClaim(claim, { ...asked, over: 5 }, 0)).toBe("claim");
  });

  test("a lease is live until the moment it ends", () => {
    expect([0, 99, 100, 101].map((now) => isLive(claim, now))).toEqual([true, true, false, false]);
  });
});

describe("repeatedClaim", () => {
  test("it is there only for the run that asked and still holds the slot", () => {
    const asked = { runId: "r", owner: "o", leaseMs: 1 };
    expect(repeatedClaim(claim, asked)).toEqual({ claim });
    expect(repeatedClaim(claim, asked).claim).not.toBe(claim);
    for (const other of [undefined, { ...asked, runId: "x" }, { ...asked, owner: "x" }]) {
      expect(repeatedClaim(claim, other)).toEqual({});
    }
    expect(repeatedClaim(undefined, asked)).toEqual({});
  });
});

const branch = (branchId: string, parent?: string) => ({ branchId, ...(parent && { parent: { branchId: parent } }) });
const idsOf = (branches: readonly { branchId: string }[]) => branches.map(({ branchId }) => branchId);

describe("withDescendants", () => {
  test("finds everything below the named branches, whatever the order they are given in, and keeps that order", () => {
    const all = [branch("d", "c"), branch("a"), branch("c", "b"), branch("b", "a"), branch("e", "b"), branch("x")];
    expect(idsOf(withDescendants(all, ["b"]))).toEqual(["d", "c", "b", "e"]);
    expect(idsOf(withDescendants(all, ["x", "c", "nobody"]))).toEqual(["d", "c", "x"]);
    expect(withDescendants(all, ["nobody"])).toEqual([]);
  });

  test("a chain of any length is no problem", () => {
    const chain = Array.from({ length: 20_000 }, (_, i) => branch(`b${i}`, i === 0 ? undefined : `b${i - 1}`));
    expect(withDescendants(chain, ["b0"])).toHaveLength(chain.length);
  });
});

describe("decideDelete", () => {
  const all = [branch("a"), branch("b", "a"), branch("c", "b"), branch("d", "b"), branch("free"), branch("f", "free")];
  const of = (branchId: string) => ({ sessionId: "s", branchId });

  test("takes what is named, and with recursive what is below it", () => {
    expect(idsOf(decideDelete(all, of("c"), {}))).toEqual(["c"]);
    expect(idsOf(decideDelete(all, of("b"), { also: ["d", "nobody", "c", "f"] }))).toEqual(["b", "c", "d", "f"]);
    expect(idsOf(decideDelete(all, of("b"), { also: ["free"], recursive: true }))).toEqual([
      "b",
      "c",
      "d",
      "free",
      "f",
    ]);
  });

  test("names the direct forks that are left, of all that would go", () => {
    const left = (branchId: string, also?: string[]) => {
      try {
        return decideDelete(all, of(branchId), { also });
      } catch (error) {
        return (error as BoughError).data.children;
      }
    };
    expect(left("a")).toEqual(["b"]);
    expect(left("b", ["c"])).toEqual(["d"]);
    expect(left("b", ["free"])).toEqual(["c", "d", "f"]);
  });
});
