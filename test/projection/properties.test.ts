import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  callsOf,
  codec,
  type Fact,
  type Message,
  type ToolResultPart,
  type UnknownFact,
} from "../../src/events/index.ts";
import { adopt, foldAhead, shownState, shownTurns, turnPatch } from "../../src/projection/header.ts";
import {
  type BranchView,
  copyView,
  emptyView,
  fold,
  project,
  type Revert,
  transcript,
} from "../../src/projection/index.ts";
import { countShown, outermost, rebuild, unclosedMessages } from "../../src/projection/overlay.ts";
import {
  canSeal,
  cutSegment,
  joinSegments,
  parseSegment,
  type Sealed,
  stillSealed,
} from "../../src/projection/segment.ts";
import { resultsId } from "../../src/projection/tools.ts";
import { copyTurn, PartialView, stateOf } from "../../src/projection/view.ts";
import { holds } from "../model/property.ts";
import { closedMessages, play, type Step, scripts } from "./histories.ts";

type AnyFact = Fact | UnknownFact;

const always = (check: (facts: AnyFact[], script: Step[]) => void, runs = 200) =>
  holds(
    fc.asyncProperty(scripts, async (script) => check(play(script), script)),
    runs,
  );

/** Runs a check at every position of a log. */
function atEach(facts: readonly AnyFact[], check: (view: BranchView, fact: AnyFact) => void): void {
  const view = emptyView();
  for (const fact of facts) {
    fold(view, fact);
    check(view, fact);
  }
}

function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const item of Object.values(value)) deepFreeze(item);
}

function resultsOf(message: Message | undefined): ToolResultPart[] {
  if (message?.role !== "tool" || typeof message.content === "string") return [];
  return message.content.filter((part) => part.type === "tool-result") as ToolResultPart[];
}

function ids(items: readonly { id: string }[]): string[] {
  return items.map(({ id }) => id);
}

/** What is wrong with a list of messages in the eyes of a provider. */
function illegal(messages: readonly Message[]): string[] {
  const problems: string[] = [];
  for (const [i, message] of messages.entries()) {
    const calls = callsOf(message).map(({ toolCallId }) => toolCallId);
    const results = resultsOf(messages[i + 1]).map(({ toolCallId }) => toolCallId);
    if (calls.length > 0 && JSON.stringify(calls) !== JSON.stringify(results)) {
      problems.push(`${message.id} asks for ${calls}, then come ${results}`);
    }
    if (message.role === "tool" && messages[i - 1] === undefined) problems.push(`${message.id} answers nothing`);
    if (message.role === "tool" && resultsId(messages[i - 1]!.id) !== message.id) {
      problems.push(`${message.id} does not follow its call`);
    }
  }
  const all = ids(messages);
  if (new Set(all).size !== all.length) problems.push(`an id is there twice: ${all}`);
  return problems;
}

describe("whatever happened on a branch", () => {
  test("its messages and its transcript are legal at every position (Fold-2)", () =>
    always((facts) =>
      atEach(facts, (view) => {
        for (const messages of [view.messages, view.shown!, view.window]) expect(illegal(messages)).toEqual([]);
        expect(illegal(transcript(view))).toEqual([]);
      }),
    ));

  test("its transcript tells what happened in the order in which it happened", () =>
    always((facts) => {
      const born = new Map(facts.map((fact) => [fact.id, fact.seq]));
      atEach(facts, (view) => {
        for (const messages of [view.messages, view.shown!, transcript(view)]) {
          const order = messages.flatMap(({ id }) => born.get(id) ?? []);
          expect(order).toEqual(order.toSorted((a, b) => a - b));
        }
      });
    }));

  test("the same facts give the same view, byte for byte, at once or one by one, read or written", () =>
    always((facts) => {
      const again = facts.map((fact) => JSON.parse(JSON.stringify(fact)) as Fact);
      atEach(facts, (view, { seq }) => {
        expect(JSON.stringify(project(again.slice(0, seq)))).toBe(JSON.stringify(view));
      });
    }, 60));

  test("a revert gives the messages and the state of its position, closed", () =>
    always((facts) =>
      atEach(facts, (view, fact) => {
        if (fact.type !== "branch.reverted") return;
        const then = project(facts.slice(0, fact.to));
        expect(JSON.stringify(view.messages)).toBe(JSON.stringify(closedMessages(then)));
        expect(view.state).toEqual(stateOf(then));
        expect(ids(view.shown!)).toEqual(ids([...then.shown!, ...unclosedMessages(then)]));
        expect(JSON.stringify(view.window)).toBe(JSON.stringify(transcript(then)));
        const withMessages = new Set(view.messages.map(({ turnId }) => turnId));
        const turns = (list: readonly { id: string }[]) => ids(list).filter((id) => withMessages.has(id));
        expect(turns(view.turns)).toEqual(turns([...then.turns, ...then.staged, ...(then.open ? [then.open] : [])]));
        expect([view.open, view.staged, view.interactions]).toEqual([null, [], []]);
      }),
    ));

  test("a fold changes nothing that was handed out before, and no fact", () =>
    always((facts) => {
      for (const fact of facts) deepFreeze(fact);
      atEach(facts, (view) => {
        const { messages, shown, window, turns, staged, interactions, open, state, header, fork } = view;
        for (const items of [messages, shown!, window, turns, staged, interactions])
          for (const each of items) deepFreeze(each);
        for (const items of [view.overlays, view.cleared]) deepFreeze(items);
        for (const each of [open && copyTurn(open), state, header, fork]) deepFreeze(each);
      });
    }));

  test("a slice of the messages and turns taken by length stays true (Views-4)", () =>
    always((facts) => {
      const held: { array: unknown[]; text: string; length: number }[] = [];
      atEach(facts, ({ messages, shown, window, turns }) => {
        for (const array of [messages, shown!, window, turns])
          held.push({ array, length: array.length, text: JSON.stringify(array) });
      });
      for (const { array, length, text } of held) expect(JSON.stringify(array.slice(0, length))).toBe(text);
    }, 100));

  test("a copy of a view is folded further without changing the view", () =>
    always((facts) => {
      atEach(facts.slice(0, -1), (view, { seq }) => {
        const before = JSON.stringify(view);
        fold(copyView(view), facts[seq]!);
        expect(JSON.stringify(view)).toBe(before);
      });
    }, 100));

  test("a reader of the transcript changes nothing", () =>
    always(
      (facts) =>
        atEach(facts, (view) => {
          const before = JSON.stringify(view);
          transcript(view);
          expect(JSON.stringify(view)).toBe(before);
        }),
      100,
    ));

  test("the state is what its turns and changes make it, and turns are told once", () =>
    always((facts) =>
      atEach(facts, (view) => {
        const unclosed = [...view.staged, ...(view.open ? [view.open] : [])].map(({ id }) => id);
        const turns = [...ids(view.turns), ...unclosed];
        const known = new Set(turns);
        expect(known.size).toBe(turns.length);
        expect(closedMessages(view).filter(({ turnId }) => !known.has(turnId))).toEqual([]);
        for (const { from, to } of view.turns) expect(from).toBeLessThanOrEqual(to);
      }),
    ));
});

describe("whatever was compacted on a branch", () => {
  test("what people and models see is what its overlays make of the ledger from scratch", () =>
    always((facts) =>
      atEach(facts, (view) => {
        const anew = copyView(view);
        rebuild(anew);
        expect(JSON.stringify([anew.shown, anew.window])).toBe(JSON.stringify([view.shown, view.window]));
        expect(countShown(view)).toBe(view.shown!.length);
        const { overlays } = view;
        const cuts = overlays.filter((a) => overlays.some((b) => a.from < b.from && b.from < a.to && a.to < b.to));
        expect(cuts, "Overlay-1").toEqual([]);
      }),
    ));

  test("the ledger has every message that it would have without (Overlay-6)", () =>
    always((facts) => {
      const without = facts.map((fact) => (fact.type.startsWith("history.") ? nothingOf(fact) : withoutInForce(fact)));
      const plain = emptyView();
      atEach(facts, (view, { seq }) => {
        fold(plain, without[seq - 1]!);
        expect(JSON.stringify(view.messages)).toBe(JSON.stringify(plain.messages));
      });
    }));

  test("taking it back gives the view there would be without it (Overlay-7)", () =>
    always((facts) =>
      atEach(facts, (view, fact) => {
        if (fact.type !== "history.restored") return;
        const before = facts.slice(0, fact.seq - 1);
        const undone = before.findLastIndex(({ type }) => type.startsWith("history."));
        const without = project(before.map((each, i) => (i === undone ? nothingOf(each) : each)));
        const seen = (each: BranchView) => [each.messages, each.shown, each.window, transcript(each)];
        expect(JSON.stringify(seen(view))).toBe(JSON.stringify(seen(without)));
      }),
    ));

  test("a view that holds only what a model sees shows it the same, as long as it can be folded", async () => {
    let checked = 0;
    await always((facts) => {
      let part: BranchView | undefined;
      atEach(facts, (view, fact) => {
        if (part) part = foldPart(part, fact);
        if (part) {
          checked++;
          expect(JSON.stringify(transcript(part))).toBe(JSON.stringify(transcript(view)));
          expect(countShown(part)).toBe(view.shown!.length);
        }
        part ??= partOf(view);
      });
    });
    expect(checked).toBeGreaterThan(20);
  });

  /** Undefined when nothing can be left out. */
  function partOf(view: BranchView): BranchView | undefined {
    const first = outermost(view.overlays).find(({ from }) => from === 0);
    const skipped = Math.min(first?.to ?? 0, view.messages.length);
    if (skipped === 0) return undefined;
    const part = { ...copyView(view), skipped, messages: view.messages.slice(skipped) };
    rebuild(part);
    return part;
  }

  function foldPart(part: BranchView, fact: AnyFact): BranchView | undefined {
    try {
      fold(part, fact);
      return part;
    } catch (error) {
      expect(error).toBeInstanceOf(PartialView);
      return undefined;
    }
  }

  function nothingOf({ seq, id, at }: AnyFact): UnknownFact {
    return codec.decode({ seq, id, data: `{"type":"moon.rose","v":2,"at":${at}}` }) as UnknownFact;
  }

  function withoutInForce(fact: AnyFact): AnyFact {
    const isCut = fact.type === "branch.reverted" || fact.type === "branch.forked";
    return isCut ? { ...fact, overlays: undefined, cleared: undefined } : fact;
  }
});

describe("the header of a branch's row", () => {
  test("is predicted by turnPatch exactly as the fold then makes it, and the view is left alone", () =>
    holds(
      fc.asyncProperty(scripts, async (script) => {
        const none = { messages: 0, turn: null as string | null, asks: null as string[] | null, state: null };
        const turns = { agent: null as string | null, ended: null as string | null, first: null as object | null };
        const row = { ...none, ...turns, compacted: null as true | null, usage: {}, reverts: [] as readonly Revert[] };
        let expected: (() => void) | undefined;
        play(script, (view, drafts) => {
          expected?.();
          const before = JSON.stringify(view);
          // A fork writes the row of a new branch whole.
          const forks = drafts[0]!.type === "branch.forked";
          Object.assign(row, forks ? {} : turnPatch(view, drafts));
          expect(JSON.stringify(view)).toBe(before);
          expected = () => {
            const turn = view.open?.id ?? view.staged.at(-1)?.id ?? null;
            const asks = view.interactions.length === 0 ? null : view.interactions.map(({ id }) => id);
            const compacted = view.overlays.some(({ retention }) => retention === "hard") || null;
            const { usage } = view;
            const actual = {
              messages: view.shown!.length,
              turn,
              asks,
              state: shownState(view.state),
              compacted,
              usage,
              reverts: view.reverts,
              ...turns,
              ...shownTurns(view),
            };
            if (forks) Object.assign(row, actual);
            expect(row).toEqual(actual);
          };
        });
        expected?.();
      }),
      150,
    ));
});

describe("folding ahead", () => {
  test("leaves the view alone until it is adopted, and then gives what folding gives, byte for byte", () =>
    holds(
      fc.asyncProperty(scripts, async (script) => {
        play(script, (view, drafts) => {
          if (drafts[0]!.type === "branch.forked") return;
          const facts = drafts.map((draft, i) => ({ ...draft, seq: view.seq + 1 + i }) as Fact);
          const folded = copyView(view);
          for (const fact of facts) fold(folded, fact);
          const own = copyView(view);
          const before = JSON.stringify(own);
          const messages = own.messages.slice();
          const ahead = foldAhead(own, facts);
          expect(JSON.stringify(own)).toBe(before);
          adopt(ahead);
          expect(JSON.stringify(own)).toBe(JSON.stringify(folded));
          // Views-4: what stays is the same object, not a copy of it.
          if (!ahead.rewrites) expect(messages.every((message, i) => own.messages[i] === message)).toBe(true);
        });
      }),
      150,
    ));
});

describe("segments", () => {
  /** Cuts where `cuts` says so and the view allows it, the way the view cache does. */
  function seal(facts: readonly AnyFact[], cuts: readonly boolean[]): Map<number, string[]> {
    const stored = new Map<number, string[]>();
    const view = emptyView();
    let sealed: Sealed[] = [];
    for (const [i, fact] of facts.entries()) {
      const before = { messages: view.messages, turns: view.turns };
      fold(view, fact);
      const unchanged = {
        messages: sharedStart(before.messages, view.messages),
        turns: sharedStart(before.turns, view.turns),
      };
      sealed = stillSealed(sealed, unchanged);
      if (!canSeal(view) || !cuts[i % cuts.length]) continue;
      stored.set(view.seq, cutSegment(view, sealed, fact.id));
      const { length: messages } = view.messages;
      sealed = [...sealed, { to: view.seq, id: fact.id, messages, turns: view.turns.length }];
    }
    return stored;
  }

  function sharedStart(before: readonly unknown[], after: readonly unknown[]): number {
    let same = 0;
    while (same < before.length && before[same] === after[same]) same++;
    return same;
  }

  /** A cold load at a position: the newest segment, those it names, and the facts after them. */
  function loadCold(stored: ReadonlyMap<number, string[]>, facts: readonly AnyFact[], seq: number): BranchView {
    const pieces = [];
    for (let at = seq; at > 0; ) {
      const to = Math.max(0, ...[...stored.keys()].filter((each) => each <= at));
      if (to === 0) break;
      const piece = parseSegment(stored.get(to)!)!;
      pieces.push(piece);
      at = piece.before.at(-1)?.to ?? 0;
    }
    const joined = pieces.length > 0 ? joinSegments(pieces.reverse()) : undefined;
    if (pieces.length > 0) expect(joined, "the pieces fit").toBeDefined();
    const view = joined?.view ?? emptyView();
    for (const fact of facts.slice(view.seq, seq)) fold(view, fact);
    return view;
  }

  test("cut anywhere, joined and folded on, give the view of a full replay, byte for byte", () =>
    holds(
      fc.asyncProperty(scripts, fc.array(fc.boolean(), { minLength: 1, maxLength: 9 }), async (script, cuts) => {
        const facts = play(script);
        const stored = seal(facts, cuts);
        atEach(facts, (view) => {
          expect(JSON.stringify(loadCold(stored, facts, view.seq))).toBe(JSON.stringify(view));
        });
      }),
      150,
    ));
});
