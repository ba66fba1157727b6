import { describe, expect, test } from "vitest";
import { codec, type Draft } from "../events/index.ts";
import { fold } from "./fold.ts";
import { canSeal, cutSegment, joinSegments, parseHead, parseSegment, stillSealed } from "./segment.ts";
import { type BranchView, emptyView } from "./view.ts";

/** Folds turns of three messages each into the view. */
function grow(view: BranchView, turns: number): BranchView {
  const add = (payload: object) => {
    const seq = view.seq + 1;
    const draft = { id: `e${seq}`, at: seq, ...payload } as unknown as Draft;
    fold(view, codec.decode({ ...codec.encode(draft), seq }));
  };
  for (let n = 0; n < turns; n++) {
    const turnId = `t${view.seq + 1}`;
    add({ type: "turn.started", id: turnId });
    for (let i = 0; i < 3; i++) add({ type: "message.added", turnId, role: "user", content: `${view.seq}` });
    add({ type: "state.changed", turnId, set: { n: view.seq } });
    add({ type: "turn.committed", turnId });
  }
  return view;
}

const sealedOf = ({ seq: to, messages, turns }: BranchView, id: string) => ({
  to,
  id,
  messages: messages.length,
  turns: turns.length,
});

describe("segments", () => {
  test("join to the view they were cut from, and each message is stored once", () => {
    const view = grow(emptyView(), 100);
    const first = cutSegment(view, [], "id1");
    const before = sealedOf(view, "id1");
    grow(view, 50);
    const second = cutSegment(view, [before], "id2");
    const joined = joinSegments([parseSegment(first)!, parseSegment(second)!])!;
    expect(JSON.stringify(joined.view)).toBe(JSON.stringify(view));
    expect(joined.sealed).toEqual([before, sealedOf(view, "id2")]);
    expect([...first, ...second].join("").match(/"role":"user"/g)).toHaveLength(450);
    expect(first.every((line) => !line.includes("\n"))).toBe(true);
    expect(parseHead(second)).toMatchObject({
      id: "id2",
      before: [before],
      rest: { seq: view.seq, state: view.state },
    });
  });

  test("name the nearest of those before them, so that naming them never costs more", () => {
    const sealed = Array.from({ length: 100 }, (_, i) => ({ to: i + 1, id: `${i}`, messages: 0, turns: 0 }));
    expect(parseHead(cutSegment(emptyView(), sealed, "a"))!.before).toEqual(sealed.slice(68));
  });

  test("that do not fit together are refused", () => {
    const view = grow(emptyView(), 2);
    const first = parseSegment(cutSegment(view, [], "a"))!;
    const before = sealedOf(view, "a");
    const second = parseSegment(cutSegment(grow(view, 1), [before], "b"))!;
    expect(joinSegments([])).toBeUndefined();
    expect(joinSegments([second])).toBeUndefined();
    expect(joinSegments([second, first])).toBeUndefined();
    expect(joinSegments([first, first])).toBeUndefined();
    for (const change of [{ to: 1 }, { id: "c" }, { messages: 1 }, { turns: 1 }]) {
      expect(joinSegments([first, { ...second, before: [{ ...before, ...change }] }])).toBeUndefined();
    }
  });

  test("that are none are told from those that are", () => {
    const lines = cutSegment(grow(emptyView(), 1), [], "a");
    const lies = [[], [""], ["{"], ["null"], ["[]"], ["5"], ['{"format":2}'], ['{"format":1}'], [lines[0]!, "{"]];
    lies.push([JSON.stringify({ ...JSON.parse(lines[0]!), before: sealedOf(emptyView(), "a") })]);
    for (const lie of lies) expect(parseSegment(lie)).toBeUndefined();
    expect(parseSegment(lines)).toBeDefined();
  });

  test("can be cut only where nothing is pending", () => {
    const view = grow(emptyView(), 1);
    expect(canSeal(view)).toBe(true);
    const turn = { id: "t", from: 1, startedAt: 1, runs: [], messages: [], set: {} };
    expect(canSeal({ ...view, open: turn })).toBe(false);
    expect(canSeal({ ...view, staged: [turn] })).toBe(false);
    const request = { toolName: "t", input: {} };
    const question = { id: "i", kind: "permission", request, openedAt: 1 } as const;
    expect(canSeal({ ...view, interactions: [question] })).toBe(false);
  });

  test("hold as long as neither their messages nor their turns changed", () => {
    const pieces = [
      { to: 10, id: "a", messages: 5, turns: 2 },
      { to: 20, id: "b", messages: 9, turns: 4 },
    ];
    expect(stillSealed(pieces, { messages: 9, turns: 4 })).toEqual(pieces);
    expect(stillSealed(pieces, { messages: 8, turns: 4 })).toEqual(pieces.slice(0, 1));
    expect(stillSealed(pieces, { messages: 9, turns: 3 })).toEqual(pieces.slice(0, 1));
    expect(stillSealed(pieces, { messages: 4, turns: 4 })).toEqual([]);
  });
});
