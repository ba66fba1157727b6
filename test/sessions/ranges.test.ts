// Ranges and what is made of them, on random histories and on drawn ones.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import { callsOf, codec, type Draft, type Fact, type Message } from "../../src/events/index.ts";
import { type BranchView, copyView, emptyView, fold, PartialView, transcript } from "../../src/projection/index.ts";
import { countLedger, covers, isHard, outermost, rebuild, unclosedMessages } from "../../src/projection/overlay.ts";
import { resultsId } from "../../src/projection/tools.ts";
import { draftCompaction, messagesOf } from "../../src/sessions/compaction/apply.ts";
import { rangeBetween } from "../../src/sessions/compaction/boundaries.ts";
import type { CompactionRange } from "../../src/sessions/compaction/port.ts";
import { chooseRange, type RangeChoice } from "../../src/sessions/compaction/range.ts";
import { holds } from "../model/property.ts";
import { closedMessages, play, scripts } from "../projection/histories.ts";

const source = { ids: { next: () => `k${++made}` }, clock: { now: () => 9 } };
let made = 0;
const sizeOf = () => 1;
const hows = { reason: "manual", strategy: "test" };
const sum = { replacements: [{ role: "user" as const, content: "so far" }] };

function foldDraft(view: BranchView, draft: Draft): void {
  fold(view, codec.decode({ seq: view.seq + 1, id: draft.id, data: codec.encode(draft).data }) as Fact);
}

/** The view with the range compacted. */
function compacted(view: BranchView, range: CompactionRange, retention: "soft" | "hard", keep?: string[]): BranchView {
  const after = copyView(view);
  foldDraft(after, draftCompaction(source, view, range, { ...sum, ...(keep && { keep }) }, { ...hows, retention }));
  return after;
}

function illegal(messages: readonly Message[]): string[] {
  const problems: string[] = [];
  for (const [i, message] of messages.entries()) {
    const asked = messages[i - 1];
    if (message.role === "tool" && (!asked || resultsId(asked.id) !== message.id)) problems.push(`${message.id} alone`);
    if (callsOf(message).length > 0 && messages[i + 1]?.id !== resultsId(message.id))
      problems.push(`${message.id} open`);
  }
  return problems;
}

/** What is true of every range, whoever chose it. */
function checkRange(view: BranchView, range: CompactionRange, retention: "soft" | "hard"): BranchView {
  const [before, all] = [transcript(view), closedMessages(view)];
  const after = compacted(view, range, retention);
  const seen = transcript(after);
  expect(illegal(seen)).toEqual([]);
  expect(all.map(({ id }) => id)).toEqual(closedMessages(after).map(({ id }) => id));
  // Overlay-3: nothing before the range changes; nothing after it either.
  const isCovered = view.overlays.some((each) => covers(each, range) && !covers(range, each));
  const given = messagesOf(view, range, retention);
  if (isCovered) expect(seen).toEqual(before);
  else {
    const start = messagesOf(view, { from: 0, to: range.from, keep: [] }).messages.length;
    const end = start + given.messages.length;
    expect(JSON.stringify(before.slice(start, end))).toBe(JSON.stringify(given.messages));
    expect(JSON.stringify(seen.slice(0, start))).toBe(JSON.stringify(before.slice(0, start)));
    const tail = before.slice(end);
    expect(JSON.stringify(seen.slice(seen.length - tail.length))).toBe(JSON.stringify(tail));
    // Range-2, in the words they had.
    const middle = seen.slice(start + 1, seen.length - tail.length);
    expect(JSON.stringify(middle)).toBe(JSON.stringify(given.kept));
  }
  // Range-3.
  const { open, staged } = view;
  const last = open?.messages.findLast((message) => callsOf(message).length > 0);
  const isInput = (message: Message) => message.role === "user" && message.turnId === open?.id;
  for (const message of closedMessages(view).slice(range.from, range.to)) {
    if (message.role === "system" || (staged.length === 0 && isInput(message))) expect(seen).toContainEqual(message);
    if (last) expect([last.id, resultsId(last.id)]).not.toContain(message.id);
  }
  return after;
}

const choices: fc.Arbitrary<Omit<RangeChoice, "sizeOf">> = fc.record(
  {
    keep: fc.record({ turns: fc.nat(4), tokens: fc.nat(12) }, { requiredKeys: [] }),
    retention: fc.constantFrom("soft", "hard"),
  },
  { requiredKeys: ["keep"] },
);

/** The view as a run has it that loaded only what a model sees. */
function partial(view: BranchView): BranchView | undefined {
  const first = outermost(view.overlays).find(({ from }) => from === 0);
  const skipped = Math.min(first?.to ?? 0, view.messages.length);
  if (skipped === 0) return undefined;
  const part = { ...copyView(view), skipped, messages: view.messages.slice(skipped) };
  rebuild(part);
  return part;
}

function orPartial<T>(make: () => T): T | "partial" {
  try {
    return make();
  } catch (error) {
    if (error instanceof PartialView) return "partial";
    throw error;
  }
}

describe("whatever happened on a branch", () => {
  test("a range that is chosen is accepted, and leaves a legal transcript (Range-1)", () =>
    holds(
      fc.asyncProperty(scripts, choices, async (script, choice) => {
        const view = emptyView();
        for (const fact of play(script)) fold(view, fact);
        const { retention = "soft" } = choice;
        const range = chooseRange(view, { ...choice, sizeOf });
        const part = partial(view);
        const ofPart = part && orPartial(() => chooseRange(part, { ...choice, sizeOf }));
        if (part && retention === "soft") expect(ofPart).not.toBe("partial");
        if (part && ofPart !== "partial") expect(ofPart).toEqual(range);
        if (!range) return;
        const after = checkRange(view, range, retention);
        const again = part && orPartial(() => compacted(part, range, retention));
        if (again && again !== "partial") expect(transcript(again).length).toBe(transcript(after).length);
        // What it chose is compacted: the same choice has nothing to add.
        expect(chooseRange(after, { ...choice, sizeOf })).toBeUndefined();
      }),
      600,
    ));

  test("every message is an anchor, and what it anchors is accepted", () =>
    holds(
      fc.asyncProperty(scripts, choices, fc.nat(200), async (script, { retention = "soft" }, pick) => {
        const view = emptyView();
        for (const fact of play(script)) fold(view, fact);
        const all = closedMessages(view);
        if (all.length === 0) return;
        const at = pick % all.length;
        for (const before of [all[at]!.id, all[at]!.turnId]) {
          const range = chooseRange(view, { keep: {}, before, retention, sizeOf });
          if (!range) continue;
          expect(range.to).toBeLessThanOrEqual(at);
          checkRange(view, range, retention);
        }
      }),
      400,
    ));

  test("a range that is named is accepted or refused with a sentence", () =>
    holds(
      fc.asyncProperty(
        scripts,
        fc.record({
          a: fc.nat(200),
          b: fc.nat(200),
          previous: fc.nat(3),
          whole: fc.constantFrom("calls", "turns", ""),
        }),
        choices,
        async (script, { a, b, previous, whole }, { retention = "soft" }) => {
          const view = emptyView();
          for (const fact of play(script)) fold(view, fact);
          const all = [...closedMessages(view), ...view.overlays.flatMap(({ replacements }) => replacements)];
          if (all.length === 0) return;
          const [from, to] = [all[a % all.length]!.id, all[b % all.length]!.id];
          const named = { from, to, previous, ...(whole && { whole: whole as "calls" | "turns" }) };
          let range: CompactionRange;
          try {
            range = rangeBetween(view, named, { retention });
          } catch (error) {
            if (!BoughError.is(error)) throw error;
            expect(["invalid_argument", "message_not_on_branch", "nothing_to_compact"]).toContain(error.code);
            expect(error.message).toMatch(/\.$/);
            return;
          }
          checkRange(view, range, retention);
        },
      ),
      600,
    ));
});

/** A history drawn as a string: u and a are messages, [2] a batch of two calls, s a system message, | ends a turn. */
function draw(picture: string, end: "open" | "staged" | "closed" = "closed"): BranchView {
  const view = emptyView();
  const add = (payload: Record<string, unknown>) => {
    const id = String(payload.id ?? `f${view.seq + 1}`);
    foldDraft(view, { at: 1, ...payload, id } as unknown as Draft);
  };
  add({ type: "branch.created", metadata: {} });
  const turns = picture.split("|");
  for (const [n, turn] of turns.entries()) {
    const turnId = `t${n}`;
    add({ type: "turn.started", id: turnId });
    let m = 0;
    for (const each of turn.match(/[uas]|\[\d\]/g) ?? []) {
      const id = `${n}${each[0] === "[" ? "c" : each}${m++}`;
      const role = { u: "user", a: "assistant", s: "system" }[each] ?? "assistant";
      const calls = Array.from({ length: Number(each[1] ?? 0) }, (_, i) => `${id}.${i}`);
      const parts = calls.map((toolCallId) => ({ type: "tool-call", toolCallId, toolName: "add", input: {} }));
      add({ type: "message.added", id, turnId, role, content: calls.length > 0 ? parts : "text" });
      for (const callId of calls) {
        add({ type: "tool.returned", turnId, callId, toolName: "add", output: { type: "text", value: "1" } });
      }
    }
    if (n < turns.length - 1 || end === "closed") add({ type: "turn.committed", turnId });
    else if (end === "staged") add({ type: "turn.staged", turnId });
  }
  return view;
}

function spans(view: BranchView, choice: Omit<RangeChoice, "sizeOf">): unknown {
  const range = chooseRange(view, { ...choice, sizeOf });
  if (!range) return undefined;
  const { from, to, keep, turnId } = range;
  return [from, to, [...keep], ...(turnId === undefined ? [] : [turnId])];
}

describe("chooseRange", () => {
  test("keeps the newest turns up to the counts", () => {
    const view = draw("ua|ua|ua|ua");
    expect(spans(view, { keep: { turns: 1 } })).toEqual([0, 6, []]);
    expect(spans(view, { keep: { turns: 3 } })).toEqual([0, 2, []]);
    expect(spans(view, { keep: { turns: 4 } })).toBeUndefined();
    expect(spans(view, { keep: { turns: 0 } })).toEqual([0, 8, []]);
    expect(spans(view, { keep: { tokens: 5 } })).toEqual([0, 4, []]);
    expect(spans(view, { keep: { turns: 1, tokens: 5 } })).toEqual([0, 6, []]);
    expect(spans(view, { keep: { turns: 3, tokens: 5 } })).toEqual([0, 4, []]);
    expect(spans(view, { keep: {} })).toEqual([0, 8, []]);
  });

  test("cuts a turn that alone is larger after a complete batch, and keeps its last message", () => {
    const view = draw("ua|u[1][2][1]a");
    expect(spans(view, { keep: { turns: 2, tokens: 4 } })).toEqual([0, 7, []]);
    expect(spans(view, { keep: { turns: 2, tokens: 1 } })).toEqual([0, 9, []]);
    expect(spans(view, { keep: { turns: 2, tokens: 0 } })).toEqual([0, 9, []]);
  });

  test("in the open turn keeps the input, and the last batch whatever the counts say (Range-2, Range-3)", () => {
    const view = draw("ua|u[1][2][1]", "open");
    expect(spans(view, { keep: { turns: 1, tokens: 4 } })).toEqual([0, 5, [2], "t1"]);
    expect(spans(view, { keep: { turns: 0 } })).toEqual([0, 7, [2], "t1"]);
    expect(spans(view, { keep: { turns: 1 } })).toEqual([0, 2, []]);
    expect(spans(view, { keep: { turns: 0 }, retention: "hard" })).toEqual([0, 2, []]);
    // Only its input could be covered, so nothing of it is.
    expect(spans(draw("ua|u[1]", "open"), { keep: { turns: 0 } })).toEqual([0, 2, []]);
    expect(spans(draw("u[1]", "open"), { keep: { turns: 0 } })).toBeUndefined();
    const inputs = new Set(["1u0", "1c1"]);
    expect(spans(view, { keep: { turns: 0 }, inputs })).toEqual([0, 7, [2, 3, 4], "t1"]);
  });

  test("does not reach into a staged turn, nor behind one", () => {
    expect(spans(draw("ua|ua|u[1][1]a", "staged"), { keep: { turns: 0 } })).toEqual([0, 4, []]);
    expect(spans(draw("ua|ua|u[1][1]a", "staged"), { keep: { turns: 2 } })).toEqual([0, 2, []]);
  });

  test("keeps system messages, and pins with the call they answer", () => {
    const view = draw("sua|u[1]a|ua");
    view.state = { "@pins": { "1c1.tools": 5, "0a2": 2, gone: 1, "2u0": 99 } };
    expect(spans(view, { keep: { turns: 1 } })).toEqual([0, 7, [0, 2, 4, 5]]);
  });

  test("goes on from the last compaction: what that kept stays, and nothing is looked at twice (Range-4)", () => {
    const view = draw("sua|ua|ua|ua|ua|ua");
    const first = chooseRange(view, { keep: { turns: 3 }, sizeOf })!;
    const after = compacted(view, first, "soft", ["1u0"]);
    expect(spans(after, { keep: { turns: 3 } })).toBeUndefined();
    const looked: string[] = [];
    const range = chooseRange(after, { keep: { turns: 2 }, sizeOf: ({ id }) => looked.push(id) && 0 });
    expect(range).toEqual({ from: 0, to: 9, keep: [0, 3] });
    const draft = draftCompaction(source, after, range!, sum, { ...hows, retention: "soft" });
    expect(draft.over).toEqual([after.lastOverlay]);
    expect([draft.first, draft.last]).toEqual(["0s0", "3a1"]);
    expect(messagesOf(after, range!).messages.map(({ id }) => id)).toEqual([
      `${after.overlays[0]!.id}.1`,
      "0s0",
      "1u0",
      "3u0",
      "3a1",
    ]);
    const held = partial(after)!;
    expect(held.messages.length).toBeLessThan(countLedger(after));
    expect(chooseRange(held, { keep: { turns: 2 }, sizeOf })).toEqual(range);
    expect(draftCompaction(source, held, range!, sum, { ...hows, retention: "soft" })).toMatchObject({
      ...{ first: "0s0", last: "3a1", over: [after.lastOverlay] },
    });
    expect(looked.every((id) => Number(id[0]) > 2)).toBe(true);
  });

  test("a hard one counts what people see, also under a soft one", () => {
    const view = draw("ua|ua|ua|ua");
    const soft = compacted(view, chooseRange(view, { keep: { turns: 1 }, sizeOf })!, "soft");
    expect(spans(soft, { keep: { turns: 1 } })).toBeUndefined();
    expect(spans(soft, { keep: { turns: 1 }, retention: "hard" })).toEqual([0, 6, []]);
    expect(spans(soft, { keep: { turns: 2 }, retention: "hard" })).toEqual([0, 4, []]);
    const inner = chooseRange(soft, { keep: { turns: 2 }, retention: "hard", sizeOf })!;
    expect(messagesOf(soft, inner, "hard").messages.map(({ id }) => id)).toEqual(["0u0", "0a1", "1u0", "1a1"]);
    const both = compacted(soft, inner, "hard");
    expect(both.overlays.map(isHard)).toEqual([false, true]);
    expect(both.shown!.length).toBe(5);
    expect(transcript(both).length).toBe(3);
  });

  test("an anchor beats the counts, and is never covered", () => {
    const view = draw("ua|u[1]a|ua");
    expect(spans(view, { keep: { turns: 9 }, before: "2u0" })).toEqual([0, 6, []]);
    expect(spans(view, { keep: {}, before: "1c1.tools" })).toEqual([0, 3, []]);
    expect(spans(view, { keep: {}, before: "t1" })).toEqual([0, 2, []]);
    expect(spans(view, { keep: {}, before: "0u0" })).toBeUndefined();
    expect(spans(view, { keep: {}, before: "nothing" })).toBeUndefined();
  });
});

describe("rangeBetween", () => {
  const view = draw("ua|u[2]a|u[1]", "open");
  const between = (named: Parameters<typeof rangeBetween>[1], options = {}) => {
    const { from, to, keep, turnId } = rangeBetween(view, named, options);
    return [from, to, [...keep], ...(turnId === undefined ? [] : [turnId])];
  };
  const refuses = (named: Parameters<typeof rangeBetween>[1], of = view, options = {}) => {
    try {
      rangeBetween(of, named, options);
    } catch (error) {
      if (BoughError.is(error)) return `${error.code}: ${error.message}`;
    }
    throw new Error("not refused");
  };

  test("is exact, widened by previous messages, to a batch, to turns", () => {
    expect(between({ from: "0a1" })).toEqual([1, 2, []]);
    expect(between({ from: "0a1", to: "1u0" })).toEqual([1, 3, []]);
    expect(between({ from: "1a2", previous: 1, whole: "calls" })).toEqual([3, 6, []]);
    expect(between({ from: "1a2", previous: 99 })).toEqual([0, 6, []]);
    expect(between({ from: "1c1", whole: "calls" })).toEqual([3, 5, []]);
    expect(between({ from: "0a1", to: "1c1", whole: "turns" })).toEqual([0, 6, []]);
  });

  test("refuses what can't be compacted, in a sentence", () => {
    expect(refuses({ from: "1c1" })).toBe(
      'invalid_argument: The range would cut the calls of message "1c1" (add, add) from their results: widen it with whole: "calls".',
    );
    expect(refuses({ from: "1c1.tools" })).toMatch("cut the calls");
    expect(refuses({ from: "nothing" })).toBe('message_not_on_branch: The branch has no message "nothing".');
    expect(refuses({ from: "1u0", to: "0u0" })).toBe('invalid_argument: Message "1u0" comes after message "0u0".');
    expect(refuses({ from: "0u0", to: "2c1", whole: "calls" })).toMatch("The last calls of the open turn");
    expect(refuses({ from: "0u0", to: "2u0" }, view, { retention: "hard" })).toMatch("A hard compaction can't reach");
    expect(refuses({ from: "0s0" }, draw("s"))).toMatch("nothing_to_compact: Every message of the range stays");
    expect(refuses({ from: "1a1" }, draw("ua|ua", "staged"))).toMatch("a turn that waits to be saved");
  });

  test("takes the place of compactions that it meets", () => {
    const over = compacted(view, rangeBetween(view, { from: "0a1", to: "1u0" }), "soft");
    const { id } = over.overlays[0]!;
    expect(refuses({ from: "1u0" }, over)).toBe(
      `invalid_argument: Message "1u0" is hidden already, by compaction ${id}.`,
    );
    expect(rangeBetween(over, { from: "0u0", to: `${id}.1` })).toMatchObject({ from: 0, to: 3 });
    expect(rangeBetween(over, { from: "1a2", previous: 4 })).toMatchObject({ from: 1, to: 6 });
    expect(rangeBetween(over, { from: "1u0" }, { retention: "hard" })).toMatchObject({ from: 2, to: 3 });
    expect(rangeBetween(over, { from: "0u0", to: "0a1" }, { retention: "hard" })).toMatchObject({ from: 0, to: 3 });
    expect(unclosedMessages(over).length).toBe(3);
  });

  test("a strategy may keep messages of the range by id, and no others", () => {
    const range = rangeBetween(view, { from: "0u0", to: "1a2" });
    const after = compacted(view, range, "soft", ["1c1", "0u0"]);
    expect(
      transcript(after)
        .slice(1, 5)
        .map(({ id }) => id),
    ).toEqual(["0u0", "1c1", "1c1.tools", "2u0"]);
    expect(() => compacted(view, range, "soft", ["2u0"])).toThrow('keeps message "2u0", which is not in the range');
  });
});
