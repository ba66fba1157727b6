import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { callsOf, type Fact, type Message, type ToolResultPart, type UnknownFact } from "../../src/events/index.ts";
import { turnPatch } from "../../src/projection/header.ts";
import { type BranchView, copyView, emptyView, fold, project, transcript } from "../../src/projection/index.ts";
import {
  canSeal,
  cutSegment,
  joinSegments,
  parseSegment,
  type Sealed,
  stillSealed,
} from "../../src/projection/segment.ts";
import { resultsId } from "../../src/projection/tools.ts";
import { copyTurn, stateOf } from "../../src/projection/view.ts";
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
  const ids = messages.map(({ id }) => id);
  if (new Set(ids).size !== ids.length) problems.push(`an id is there twice: ${ids}`);
  return problems;
}

describe("whatever happened on a branch", () => {
  test("its messages and its transcript are legal at every position (P2)", () =>
    always((facts) =>
      atEach(facts, (view) => {
        expect(illegal(view.messages)).toEqual([]);
        expect(illegal(transcript(view))).toEqual([]);
      }),
    ));

  test("its transcript tells what happened in the order in which it happened", () =>
    always((facts) => {
      const born = new Map(facts.map((fact) => [fact.id, fact.seq]));
      atEach(facts, (view) => {
        for (const messages of [view.messages, transcript(view)]) {
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
        expect(view.compactions).toEqual(then.compactions);
        const withMessages = new Set(view.messages.map(({ turnId }) => turnId));
        const ids = (turns: readonly { id: string }[]) =>
          turns.map(({ id }) => id).filter((id) => withMessages.has(id));
        expect(ids(view.turns)).toEqual(ids([...then.turns, ...then.staged, ...(then.open ? [then.open] : [])]));
        expect([view.open, view.staged, view.interactions]).toEqual([null, [], []]);
      }),
    ));

  test("a fold changes nothing that was handed out before, and no fact", () =>
    always((facts) => {
      for (const fact of facts) deepFreeze(fact);
      atEach(facts, (view) => {
        const { messages, turns, staged, interactions, compactions, open, state, header, fork } = view;
        for (const items of [messages, turns, staged, interactions, compactions])
          for (const each of items) deepFreeze(each);
        for (const each of [open && copyTurn(open), state, header, fork]) deepFreeze(each);
      });
    }));

  test("a slice of the messages and turns taken by length stays true (V4)", () =>
    always((facts) => {
      const held: { array: unknown[]; text: string; length: number }[] = [];
      atEach(facts, ({ messages, turns }) => {
        for (const array of [messages, turns]) held.push({ array, length: array.length, text: JSON.stringify(array) });
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
        const ids = [...view.turns.map(({ id }) => id), ...unclosed];
        expect(new Set(ids).size).toBe(ids.length);
        const known = new Set([...ids, ...view.compactions.map(({ seq }) => facts[seq - 1]!.id)]);
        expect(closedMessages(view).filter(({ turnId }) => !known.has(turnId))).toEqual([]);
        for (const { from, to } of view.turns) expect(from).toBeLessThanOrEqual(to);
      }),
    ));
});

describe("the header of a branch's row", () => {
  test("is predicted by turnPatch exactly as the fold then makes it, and the view is left alone", () =>
    holds(
      fc.asyncProperty(scripts, async (script) => {
        const row = { messages: 0, turn: null as string | null, asks: null as string[] | null };
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
            const actual = { messages: view.messages.length, turn, asks };
            if (forks) Object.assign(row, actual);
            expect(row).toEqual(actual);
          };
        });
        expected?.();
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
