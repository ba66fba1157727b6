// Views that hold a part, and views that go back: on random histories they tell what a fold of the log tells.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Fact, UnknownFact } from "../../src/events/index.ts";
import { foldNext } from "../../src/projection/header.ts";
import { type BranchView, emptyView, fold, project, transcript } from "../../src/projection/index.ts";
import { countShown } from "../../src/projection/overlay.ts";
import { rewind } from "../../src/projection/rewind.ts";
import {
  canSeal,
  cutSegment,
  joinSegments,
  type Piece,
  parseHead,
  parseSegment,
  prepend,
  type Sealed,
  stillSealed,
  visibleFrom,
} from "../../src/projection/segment.ts";
import { PartialView } from "../../src/projection/view.ts";
import { holds } from "../model/property.ts";
import { play, type Step, scripts } from "./histories.ts";

type AnyFact = Fact | UnknownFact;

interface Stored {
  readonly lines: ReadonlyMap<number, string[]>;
  /** Views of the whole log, at each position. */
  readonly texts: readonly string[];
}

/** Cuts where `cuts` says so and the view allows it. */
function cutAll(facts: readonly AnyFact[], cuts: readonly boolean[]): Stored {
  const lines = new Map<number, string[]>();
  const texts = [JSON.stringify(emptyView())];
  const view = emptyView();
  let sealed: Sealed[] = [];
  for (const [i, fact] of facts.entries()) {
    const { messages, turns } = view;
    fold(view, fact);
    texts.push(JSON.stringify(view));
    const shared = (a: readonly unknown[], b: readonly unknown[]) => {
      const changed = a.findIndex((item, n) => item !== b[n]);
      return changed < 0 ? a.length : changed;
    };
    sealed = stillSealed(sealed, { messages: shared(messages, view.messages), turns: shared(turns, view.turns) });
    if (!canSeal(view) || !cuts[i % cuts.length]) continue;
    lines.set(view.seq, cutSegment(view, sealed, fact.id));
    sealed = [...sealed, { to: view.seq, id: fact.id, messages: view.messages.length, turns: view.turns.length }];
  }
  return { lines, texts };
}

/** The pieces up to the newest at or before a position that have messages from `from` on. */
function piecesFrom({ lines }: Stored, seq: number, from: number): Piece[] {
  const pieces: Piece[] = [];
  for (let to: number | undefined = seq; to !== undefined; ) {
    const piece: Piece = parseSegment(lines.get(to)!, () => from)!;
    pieces.unshift(piece);
    const before: Sealed | undefined = piece.before.at(-1);
    to = before && (from === 0 || before.messages > from) ? before.to : undefined;
  }
  return pieces;
}

const cuts = fc.array(fc.boolean(), { minLength: 1, maxLength: 9 });

describe("a view that holds only what a model sees", () => {
  test("shows it as the whole does, from any piece on, and becomes the whole when the rest is put in front", async () => {
    const checked = { parts: 0, folded: 0, refused: 0, completed: 0 };
    await holds(
      fc.asyncProperty(scripts, cuts, async (script, where) => {
        const facts = play(script);
        const stored = cutAll(facts, where);
        for (const seq of stored.lines.keys()) {
          const from = visibleFrom(parseHead(stored.lines.get(seq)!)!.rest);
          if (from === 0) continue;
          checked.parts++;
          const pieces = piecesFrom(stored, seq, from);
          expect(pieces.slice(1).every((piece) => piece.from >= from)).toBe(true);
          const { view } = joinSegments(pieces, from)!;
          expect([view.skipped, view.shown]).toEqual([from, null]);
          for (const fact of facts.slice(seq)) {
            const before = JSON.stringify(view);
            if (!foldPart(view, fact)) {
              // A fact that can't be folded leaves the view as it was (Views-6).
              expect(JSON.stringify(view)).toBe(before);
              checked.refused++;
              break;
            }
            checked.folded++;
            const whole = project(facts.slice(0, fact.seq));
            expect(JSON.stringify(transcript(view))).toBe(JSON.stringify(transcript(whole)));
            expect(countShown(view)).toBe(whole.shown!.length);
          }
          prepend(view, joinSegments(piecesFrom(stored, seq, 0))!.view);
          checked.completed++;
          expect(JSON.stringify(view)).toBe(stored.texts[view.seq]);
          for (const fact of facts.slice(view.seq)) foldNext(view, fact);
          expect(JSON.stringify(view)).toBe(stored.texts.at(-1));
        }
      }),
      1000,
    );
    for (const count of Object.values(checked)) expect(count).toBeGreaterThan(10);
  });

  test("a fork that needs what it does not hold leaves it as it was, turns that wait to be saved included", () => {
    const turn = { do: "turn", batches: [], state: 0, polite: false } as const;
    const facts = play([
      { ...turn, end: "commit" },
      { do: "compact", hard: false, from: 0, to: 0, keep: [], calls: false, undo: false },
      { ...turn, end: "stage" },
      { do: "fork", keep: 2533, none: false },
    ] as unknown as Step[]);
    const stored = cutAll(facts, [true]);
    const at = facts.findIndex(({ type }) => type === "history.compacted") + 1;
    const { view } = joinSegments(piecesFrom(stored, at, 1), 1)!;
    for (const fact of facts.slice(at, -1)) expect(foldPart(view, fact)).toBe(true);
    const before = JSON.stringify(view);
    expect(facts.at(-1)!.type).toBe("branch.forked");
    expect(foldPart(view, facts.at(-1)!)).toBe(false);
    expect(JSON.stringify(view)).toBe(before);
  });

  function foldPart(view: BranchView, fact: AnyFact): boolean {
    try {
      foldNext(view, fact);
      return true;
    } catch (error) {
      expect(error).toBeInstanceOf(PartialView);
      return false;
    }
  }
});

describe("a view that goes back", () => {
  test("has the messages and turns of the position, or says that it can't tell", async () => {
    const checked = { told: 0, untold: 0 };
    await holds(
      fc.asyncProperty(scripts, async (script) => {
        const facts = play(script);
        const view = project(facts);
        const before = JSON.stringify(view);
        for (let seq = 0; seq <= view.seq; seq++) {
          const then = rewind(view, seq);
          checked[then ? "told" : "untold"]++;
          if (!then) continue;
          for (const fact of facts.slice(then.seq, seq)) {
            if (fact.type.startsWith("history.")) then.seq = fact.seq;
            else fold(then, fact);
          }
          const whole = project(facts.slice(0, seq));
          const told = ({ messages, turns, staged, open }: BranchView) =>
            JSON.stringify([messages, turns, staged, open]);
          expect(told(then)).toBe(told(whole));
        }
        expect(JSON.stringify(view)).toBe(before);
      }),
      200,
    );
    for (const count of Object.values(checked)) expect(count).toBeGreaterThan(100);
  });

  test("tells the state of every position that no change of it came after", () =>
    holds(
      fc.asyncProperty(scripts, async (script) => {
        const facts = play(script);
        const view = project(facts);
        for (let seq = view.lastState; seq <= view.seq; seq++) {
          expect(stateAt(facts.slice(0, seq))).toEqual(stateAt(facts));
        }
      }),
      100,
    ));

  function stateAt(facts: readonly AnyFact[]) {
    const { state, staged, open } = project(facts);
    const unclosed = [...staged, ...(open ? [open] : [])];
    return unclosed.reduce((sum, { set }) => merged(sum, set), state as Record<string, unknown>);
  }

  function merged(state: Record<string, unknown>, set: Record<string, unknown>): Record<string, unknown> {
    return Object.fromEntries(Object.entries({ ...state, ...set }).filter(([, value]) => value !== null));
  }
});
