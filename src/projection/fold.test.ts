import { describe, expect, test } from "vitest";
import { BoughError } from "../base/errors.ts";
import { codec, type Draft, type Fact, type UnknownFact } from "../events/index.ts";
import { fold, project } from "./fold.ts";
import { transcript } from "./transcript.ts";
import { emptyView, stateOf } from "./view.ts";

type Loose = { type: string; id?: string; at?: number; [key: string]: unknown };

/** The facts behind drafts; ids and times are counted when they are left out. */
function log(...drafts: Loose[]): (Fact | UnknownFact)[] {
  return drafts.map((draft, i) => {
    const whole = { id: `e${i + 1}`, at: (i + 1) * 10, ...draft } as unknown as Draft;
    return codec.decode({ ...codec.encode(whole), seq: i + 1 });
  });
}

const text = (value: string) => [{ type: "text", text: value }];
const started = (id: string, more = {}): Loose => ({ type: "turn.started", id, ...more });
const user = (id: string, turnId: string): Loose => ({
  type: "message.added",
  id,
  turnId,
  role: "user",
  content: text(id),
});
const says = (id: string, turnId: string): Loose => ({ ...user(id, turnId), role: "assistant" });
const asks = (id: string, turnId: string, ...calls: string[]): Loose => ({
  ...says(id, turnId),
  content: calls.map((toolCallId) => ({ type: "tool-call", toolCallId, toolName: "add", input: {} })),
});
const returned = (callId: string, turnId: string, value = callId): Loose => ({
  type: "tool.returned",
  turnId,
  callId,
  toolName: "add",
  output: { type: "text", value },
});
const set = (change: object, turnId?: string): Loose => ({
  type: "state.changed",
  set: change,
  ...(turnId && { turnId }),
});
const staged = (turnId: string): Loose => ({ type: "turn.staged", turnId });
const committed = (turnId: string): Loose => ({ type: "turn.committed", turnId });
const ended = (turnId: string): Loose => ({ type: "turn.ended", turnId, status: "interrupted" });

const idsOf = (messages: readonly { id: string }[]) => messages.map(({ id }) => id);

function refusal(work: () => unknown): BoughError {
  try {
    work();
  } catch (error) {
    if (BoughError.is(error)) return error;
    throw error;
  }
  return expect.fail("it was taken");
}

describe("the order of a log (Fold-1)", () => {
  test("a gap, a repetition and a step back are store_corrupt", () => {
    const facts = log({ type: "branch.created" }, started("t"), user("m", "t"));
    const view = project(facts);
    for (const seq of [1, 3, 5]) {
      expect(refusal(() => fold(view, { ...facts[0]!, seq } as Fact))).toMatchObject({
        code: "store_corrupt",
        data: { after: 3, found: seq },
      });
    }
    expect(view.seq).toBe(3);
  });

  test("a fact of a turn that is not open is event_invalid, and says which", () => {
    const orphans = [user("m", "t"), returned("c", "t"), committed("t"), staged("t"), ended("t"), set({}, "t")];
    for (const orphan of orphans) {
      expect(refusal(() => project(log({ type: "branch.created" }, orphan)))).toMatchObject({
        code: "event_invalid",
        data: { seq: 2, turnId: "t" },
      });
    }
    expect(refusal(() => project(log(started("t"), committed("t"), committed("t")))).code).toBe("event_invalid");
  });

  test("a kind nobody knows moves the position and the time, and nothing else", () => {
    const view = project(log(started("t"), user("m", "t")));
    const { seq: _s, updatedAt: _u, ...before } = structuredClone(view);
    fold(view, codec.decode({ seq: 3, id: "x", data: '{"type":"moon.rose","v":9,"at":77,"turnId":"t"}' }));
    const { seq, updatedAt, ...after } = view;
    expect([seq, updatedAt, after]).toEqual([3, 77, before]);
  });
});

describe("results", () => {
  test("stand right after their calls, in the order of the calls, the first of each", () => {
    const view = project(
      log(
        started("t"),
        asks("a", "t", "c1", "c2"),
        returned("c2", "t"),
        returned("c1", "t"),
        returned("c2", "t", "again"),
      ),
    );
    expect(view.open!.messages[1]).toMatchObject({
      id: "a.tools",
      role: "tool",
      turnId: "t",
      createdAt: 30,
      content: [
        { toolCallId: "c1", output: { value: "c1" } },
        { toolCallId: "c2", output: { value: "c2" } },
      ],
    });
  });

  test("of a call id used twice go to the newest message that asked", () => {
    const view = project(
      log(
        started("t"),
        asks("a", "t", "c"),
        returned("c", "t", "first"),
        asks("b", "t", "c"),
        returned("c", "t", "second"),
        committed("t"),
      ),
    );
    const values = view.messages.filter(({ role }) => role === "tool").map(({ content }) => JSON.stringify(content));
    expect([values[0]!.includes("first"), values[1]!.includes("second")]).toEqual([true, true]);
  });

  test("that never came are told in the same words, whatever closed the turn", () => {
    const open = [started("t"), user("u", "t"), asks("a", "t", "c1", "c2"), returned("c1", "t")];
    const closers: Loose[] = [
      committed("t"),
      ended("t"),
      { type: "turn.ended", turnId: "t", status: "failed" },
      started("next"),
      { type: "branch.forked", from: { branchId: "p", seq: 4 }, messages: 3 },
      { type: "branch.reverted", to: 4, messages: 3, answered: ["c1"] },
    ];
    const told = closers.map((closer) => JSON.stringify(project(log(...open, closer)).messages));
    expect(new Set(told).size).toBe(1);
    expect(told[0]).toBe(JSON.stringify(transcript(project(log(...open)))));
    expect(told[0]).toContain("Not executed");
  });
});

describe("turns that wait to be saved (Fold-5)", () => {
  const one = [started("t1"), user("u1", "t1"), set({ n: 1 }, "t1"), staged("t1")];
  const two = [started("t2"), user("u2", "t2"), set({ n: 2 }, "t2")];

  test("give nothing to the branch until they are committed", () => {
    const view = project(log(...one));
    expect([view.messages, view.state, stateOf(view)]).toEqual([[], {}, { n: 1 }]);
    expect(project(log(...one, committed("t1")))).toMatchObject({ state: { n: 1 }, staged: [] });
  });

  test("are committed with a later one that commits", () => {
    const view = project(log(...one, ...two, committed("t2")));
    expect([idsOf(view.messages), view.state, view.staged]).toEqual([["u1", "u2"], { n: 2 }, []]);
    expect(view.turns.map(({ id, status }) => [id, status])).toEqual([
      ["t1", "committed"],
      ["t2", "committed"],
    ]);
  });

  test("are waited for by a later one that was cut off, which keeps how it ended", () => {
    const view = project(log(...one, ...two, { ...ended("t2"), reason: "stopped" }));
    expect([view.messages, idsOf(view.staged), idsOf(transcript(view))]).toEqual([[], ["t1", "t2"], ["u1", "u2"]]);
    const saved = project(log(...one, ...two, { ...ended("t2"), reason: "stopped" }, committed("t1"), committed("t2")));
    expect(saved.turns).toMatchObject([{ status: "committed" }, { status: "interrupted", reason: "stopped" }]);
    const gone = project(log(...one, ...two, ended("t2"), { type: "turn.discarded", turnId: "t1" }));
    expect(idsOf(gone.staged)).toEqual(["t2"]);
  });

  test("are closed by a fork and by a revert, in order, the last as interrupted", () => {
    const fork = { type: "branch.forked", from: { branchId: "p", seq: 7 }, messages: 2 };
    const view = project(log(...one, ...two, fork));
    expect(view.turns).toMatchObject([{ status: "committed" }, { status: "interrupted", reason: "forked" }]);
    expect([idsOf(view.messages), view.state]).toEqual([["u1", "u2"], { n: 2 }]);
  });
});

describe("the header", () => {
  test("is replaced by what an update says, and keeps what it does not say", () => {
    const created = { type: "branch.created", name: "n", description: "d", tags: ["t"], metadata: { a: 1 } };
    const update = (changes: object) => project(log(created, { type: "branch.updated", ...changes })).header;
    expect(update({})).toEqual({ name: "n", description: "d", tags: ["t"], metadata: { a: 1 } });
    expect(update({ name: null, tags: null })).toEqual({ description: "d", metadata: { a: 1 } });
    expect(update({ name: "", description: "", metadata: {} })).toEqual({
      name: "",
      description: "",
      tags: ["t"],
      metadata: {},
    });
  });

  test("of a fork is its own, not its parent's", () => {
    const parent = { type: "branch.created", name: "parent", tags: ["t"], metadata: { a: 1 } };
    const view = project(
      log(parent, { type: "branch.forked", from: { branchId: "p", seq: 1 }, messages: 0, name: "child" }),
    );
    expect([view.header, view.createdAt]).toEqual([{ name: "child", metadata: {} }, 20]);
  });
});

describe("interactions", () => {
  const opened = (id: string, turnId?: string): Loose => ({
    type: "interaction.opened",
    id,
    kind: "permission",
    request: { tool: "rm" },
    ...(turnId && { turnId }),
  });

  test("wait until they are answered, expire, or their turn closes", () => {
    const open = [started("t"), opened("i1", "t"), opened("i2", "t"), opened("i3"), opened("i4", "t")];
    const view = project(
      log(
        ...open,
        { type: "interaction.answered", interactionId: "i1", answer: { allow: true } },
        { type: "interaction.expired", interactionId: "i2" },
        { type: "interaction.answered", interactionId: "nobody's", answer: {} },
      ),
    );
    expect(idsOf(view.interactions)).toEqual(["i3", "i4"]);
    expect(view.interactions[1]).toEqual({
      id: "i4",
      kind: "permission",
      request: { tool: "rm" },
      openedAt: 50,
      turnId: "t",
    });
    expect(idsOf(project(log(...open, committed("t"))).interactions)).toEqual(["i3"]);
    expect(idsOf(project(log(...open, { type: "turn.discarded", turnId: "t" })).interactions)).toEqual(["i3"]);
    expect(project(log(...open, { type: "branch.reverted", to: 1, messages: 0 })).interactions).toEqual([]);
  });
});

test("an empty view is nothing, and a projection of nothing is one", () => {
  expect(project([])).toEqual(emptyView());
  expect(transcript(emptyView())).toEqual([]);
});
