// Random work on a session by two processes: turns, forks, reverts, compactions, saves, loads, deletes.

import fc from "fast-check";
import { expect } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import { callsOf, type Draft } from "../../src/events/index.ts";
import type { Store } from "../../src/log/index.ts";
import type { ForkCompaction, Sessions, TurnWriter } from "../../src/sessions/index.ts";
import { appendRaw, asks, on, replay, result, says } from "./kit.ts";

type End = "commit" | "stage" | "interrupt" | "fail" | "release";
type Point = { by: "id" | "index" | "seq" | "latest"; n: number };

export type Step = { branch: number; second: boolean } & (
  | { do: "turn"; batches: number[][]; end: End; state: number }
  | { do: "resume"; end: End; state: number }
  | { do: "save" }
  | { do: "load" }
  | { do: "fork"; point: Point; state: "fork-point" | "current" | "none"; compaction: ForkCompaction }
  | { do: "revert"; point: Point }
  | { do: "compact"; hard: boolean; from: number; to: number }
  | { do: "shorten"; hard: boolean; how: "keep" | "before" | "range"; n: number; m: number; keeps: boolean }
  | { do: "uncompact"; any: boolean; n: number }
  | { do: "pin"; n: number; off: boolean }
  | { do: "clear"; which: number }
  | { do: "restore"; keep: boolean }
  | { do: "queue"; steer: boolean; from: number }
  | { do: "take"; end: End }
  | { do: "change"; n: number; withdraw: boolean }
  | { do: "update"; n: number }
  | { do: "delete" }
);

const any = fc.nat(1000);
const end: fc.Arbitrary<End> = fc.constantFrom("commit", "commit", "stage", "interrupt", "fail", "release");
const point: fc.Arbitrary<Point> = fc.record({ by: fc.constantFrom("id", "index", "seq", "latest"), n: any });
/** Each batch: which of its calls return, and in which order. */
const batches = fc.array(fc.uniqueArray(fc.nat(3), { maxLength: 3 }), { maxLength: 2 });
const state = fc.nat(5);
const forkState = fc.constantFrom("fork-point", "fork-point", "current", "none");
const own = { keep: { turns: 1 }, strategy: () => ({ replacements: [{ role: "user" as const, content: "forked" }] }) };
const forkCompaction = fc.constantFrom<ForkCompaction>("inherit", "inherit", "none", own);

/** Mostly the beginning, as compactions do. */
const from = fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: any });

const where = { branch: any, second: fc.boolean() };
const kinds: [number, Record<string, fc.Arbitrary<unknown>>][] = [
  [8, { do: fc.constant("turn"), batches, end, state }],
  [2, { do: fc.constant("resume"), end, state }],
  [2, { do: fc.constant("save") }],
  [1, { do: fc.constant("load") }],
  [3, { do: fc.constant("fork"), point, state: forkState, compaction: forkCompaction }],
  [3, { do: fc.constant("revert"), point }],
  [2, { do: fc.constant("compact"), hard: fc.boolean(), from, to: any }],
  [
    3,
    {
      ...{ do: fc.constant("shorten"), hard: fc.boolean(), how: fc.constantFrom("keep", "before", "range") },
      ...{ n: any, m: any, keeps: fc.boolean() },
    },
  ],
  [2, { do: fc.constant("uncompact"), any: fc.boolean(), n: any }],
  [1, { do: fc.constant("pin"), n: any, off: fc.boolean() }],
  [1, { do: fc.constant("clear"), which: any }],
  [1, { do: fc.constant("restore"), keep: fc.boolean() }],
  [2, { do: fc.constant("queue"), steer: fc.boolean(), from: any }],
  [1, { do: fc.constant("take"), end }],
  [1, { do: fc.constant("change"), n: any, withdraw: fc.boolean() }],
  [1, { do: fc.constant("update"), n: any }],
  [1, { do: fc.constant("delete") }],
];

export const works: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(...kinds.map(([weight, kind]) => ({ weight, arbitrary: fc.record({ ...where, ...kind }) }))),
  { maxLength: 14 },
) as unknown as fc.Arbitrary<Step[]>;

export class Work {
  readonly #store: Store;
  readonly #processes: readonly [Sessions, Sessions];
  readonly #text: string;
  #count = 0;

  /** `text` is what every turn begins with; a long one makes segments. */
  constructor(store: Store, processes: readonly [Sessions, Sessions], text = "go") {
    this.#store = store;
    this.#processes = processes;
    this.#text = text;
  }

  /** Does one step; returns the branch it was about. */
  async play(step: Step): Promise<string> {
    const sessions = this.#processes[step.second ? 1 : 0];
    const branches = await sessions.listBranches("s");
    const { id } = branches[step.branch % branches.length]!;
    if (step.do === "turn") await this.#turn(sessions, id, step);
    else if (step.do === "resume") await this.#resume(sessions, id, step);
    else if (step.do === "save") await this.#save(sessions, id);
    else if (step.do === "load") await sessions.loadBranch({ sessionId: "s", branchId: id });
    else if (step.do === "fork") await this.#fork(sessions, id, step.point, step.state, step.compaction);
    else if (step.do === "revert") await this.#revert(sessions, id, step.point);
    else if (step.do === "compact") await this.#compact(id, step);
    else if (step.do === "shorten") await this.#shorten(sessions, id, step);
    else if (step.do === "uncompact") await this.#uncompact(sessions, id, step);
    else if (step.do === "pin") await this.#pin(sessions, id, step);
    else if (step.do === "clear") await this.#clear(id, step.which);
    else if (step.do === "restore") await this.#restore(id, step.keep);
    else if (step.do === "queue") await this.#queue(sessions, id, step);
    else if (step.do === "take") await this.#take(sessions, id, step.end);
    else if (step.do === "change") await this.#change(sessions, id, step);
    else if (step.do === "update")
      await sessions.updateBranch({ sessionId: "s", branchId: id }, { name: `n${step.n}`, metadata: { n: step.n } });
    else
      await allowing(["branch_protected", "branch_has_children"], () =>
        sessions.deleteBranch({ sessionId: "s", branchId: id }),
      );
    return id;
  }

  #name(prefix: string): string {
    this.#count += 1;
    return `${prefix}${this.#count}`;
  }

  async #turn(sessions: Sessions, branchId: string, step: Step & { do: "turn" }): Promise<void> {
    const turn = await sessions.beginTurn(on(branchId), [says("user", this.#text, this.#name("u"))]);
    for (const returned of step.batches) {
      const calls = [0, 1, 2, 3].map(() => this.#name("c"));
      await turn.add(asks(this.#name("m"), ...calls));
      for (const i of returned) await turn.toolReturned(result(calls[i]!));
      // A batch is finished before the model is asked again, unless the turn is cut off in it.
      if (returned.length < calls.length)
        return this.#end(turn, step.end === "commit" ? "interrupt" : step.end, step.state);
    }
    return this.#end(turn, step.end, step.state);
  }

  /** Of three senders; every fourth is a task. */
  async #queue(sessions: Sessions, branchId: string, { steer, from }: Step & { do: "queue" }): Promise<void> {
    const inputId = this.#name("in");
    const source = from % 4 === 3 && { source: { kind: "task" as const, taskId: inputId } };
    await sessions.queueInput(on(branchId), this.#text, {
      ...{ inputId, when: steer ? "steer" : "idle", by: `sender ${from % 4}` },
      ...source,
    });
  }

  async #take(sessions: Sessions, branchId: string, end: End): Promise<void> {
    const turn = await allowing(["turn_open"], () => sessions.takeInputs(on(branchId)));
    if (!turn) return;
    await turn.steer();
    return this.#end(turn, end, 1);
  }

  async #change(sessions: Sessions, branchId: string, { n, withdraw }: Step & { do: "change" }): Promise<void> {
    const { queue } = await sessions.loadBranch(on(branchId));
    const id = queue[n % queue.length]?.id;
    if (id === undefined) return;
    if (withdraw) await sessions.withdrawInput(on(branchId), id);
    else await sessions.editInput(on(branchId), id, { input: `edited ${n}`, when: n % 2 === 0 ? "steer" : "idle" });
  }

  async #resume(sessions: Sessions, branchId: string, step: Step & { do: "resume" }): Promise<void> {
    const turn = await allowing(["nothing_to_resume"], () => sessions.resumeTurn(on(branchId)));
    if (!turn) return;
    const { open } = await replay(this.#store, on(branchId));
    const asked = open!.messages.findLast((message) => callsOf(message).length > 0);
    for (const call of asked ? callsOf(asked) : []) await turn.toolReturned(result(call.toolCallId, "later"));
    return this.#end(turn, step.end, step.state);
  }

  async #end(turn: TurnWriter, end: End, n: number): Promise<void> {
    const messages = [says("assistant", "done", this.#name("a"))];
    const close = { messages, ...(n > 1 && { state: n === 2 ? { k2: null } : { [`k${n}`]: this.#count } }) };
    if (end === "commit") await turn.commit({ ...close, iterations: n });
    else if (end === "stage") await turn.stage(close);
    else if (end === "release") await turn.release();
    else await turn.end({ ...close, status: end === "fail" ? "failed" : "interrupted" });
  }

  async #save(sessions: Sessions, branchId: string): Promise<void> {
    const branch = await sessions.loadBranch({ sessionId: "s", branchId }, { at: 0 });
    await sessions.saveSessionAndBranch(await sessions.getSession("s"), branch);
  }

  /** The same target for a fork and for a revert. */
  async #target(branchId: string, { by, n }: Point): Promise<{ id?: string; index?: number; seq?: number }> {
    const view = await replay(this.#store, on(branchId));
    const unclosed = [...view.staged, ...(view.open ? [view.open] : [])].flatMap((turn) => turn.messages);
    const messages = [...view.shown!, ...unclosed];
    if (by === "seq") return { seq: n % (view.seq + 1) };
    if (by === "index") return { index: n % (messages.length + 1) };
    return by === "id" && messages.length > 0 ? { id: messages[n % messages.length]!.id } : {};
  }

  async #fork(
    sessions: Sessions,
    branchId: string,
    point: Point,
    state: "fork-point" | "current" | "none",
    compaction: ForkCompaction = "inherit",
  ) {
    const { id, index, seq } = await this.#target(branchId, point);
    const request = {
      ...(id !== undefined && { from: id }),
      ...(index !== undefined && { fromMessageIndex: index }),
      ...(seq !== undefined && { fromSeq: seq }),
    };
    const newBranchId = this.#name("f");
    await sessions.forkBranch(on(branchId), { ...request, state, newBranchId, compaction });
    return newBranchId;
  }

  /** A revert must give what a fork at the same point gives. */
  async #revert(sessions: Sessions, branchId: string, point: Point): Promise<void> {
    const { id, index, seq } = await this.#target(branchId, point);
    const child = await this.#fork(sessions, branchId, point, "fork-point");
    const request = {
      ...(id !== undefined && { to: id }),
      ...(index !== undefined && { toMessageIndex: index }),
      ...(seq !== undefined && { toSeq: seq }),
    };
    const codes = seq === undefined ? [] : ["position_not_on_branch"];
    const reverted = await allowing(codes, () => sessions.revertBranch(on(branchId), request));
    if (reverted) {
      const [fork, branch] = [await replay(this.#store, on(child)), await replay(this.#store, on(branchId))];
      for (const part of ["messages", "shown", "window"] as const) {
        expect(JSON.stringify(branch[part]), part).toBe(JSON.stringify(fork[part]));
      }
      expect(branch.state).toEqual(fork.state);
    }
    await sessions.deleteBranch({ sessionId: "s", branchId: child });
  }

  /** By the command, which takes any two messages and any count. */
  async #shorten(sessions: Sessions, branchId: string, step: Step & { do: "shorten" }): Promise<void> {
    const view = await replay(this.#store, on(branchId));
    const all = [...view.messages, ...view.overlays.flatMap(({ replacements }) => replacements)];
    if (all.length === 0) return;
    const id = (n: number) => all[n % all.length]!.id;
    const whole = (["calls", "turns"] as const)[step.n % 2]!;
    const ways = {
      keep: { keep: { turns: step.n % 4 } },
      before: { before: id(step.n) },
      range: { range: { from: id(step.n), to: id(step.m), previous: step.m % 3, whole } },
    };
    await allowing(["nothing_to_compact", "invalid_argument", "message_not_on_branch"], () =>
      sessions.compact(on(branchId), {
        ...ways[step.how],
        retention: step.hard ? "hard" : "soft",
        strategy: ({ messages }) => ({
          replacements: step.m % 3 === 0 ? [] : [{ role: "user", content: `${messages.length} messages` }],
          keep: step.keeps && view.messages.includes(messages[0]!) ? [messages[0]!.id] : [],
        }),
      }),
    );
  }

  async #uncompact(sessions: Sessions, branchId: string, step: Step & { do: "uncompact" }): Promise<void> {
    const listed = await sessions.listCompactions(on(branchId));
    const id = step.any ? listed[step.n % listed.length]?.id : undefined;
    await allowing(["compaction_not_found"], () => sessions.uncompact(on(branchId), id));
  }

  async #pin(sessions: Sessions, branchId: string, { n, off }: Step & { do: "pin" }): Promise<void> {
    const { messages } = await replay(this.#store, on(branchId));
    const id = messages[n % messages.length]?.id;
    if (id === undefined) return;
    await allowing(["message_not_on_branch"], () =>
      (off ? sessions.unpin : sessions.pin).call(sessions, on(branchId), id),
    );
  }

  async #compact(branchId: string, { hard, from, to }: Step & { do: "compact" }): Promise<void> {
    const { messages, overlays } = await replay(this.#store, on(branchId));
    if (messages.length === 0) return;
    let first = from % messages.length;
    let end = first + 1 + (to % (messages.length - first));
    // Widened until it cuts no other one.
    const isCut = (each: { from: number; to: number }) =>
      (each.from < first && first < each.to && each.to < end) ||
      (first < each.from && each.from < end && end < each.to);
    for (let cut = overlays.find(isCut); cut; cut = overlays.find(isCut)) {
      [first, end] = [Math.min(first, cut.from), Math.max(end, cut.to)];
    }
    const hides = overlays.some((each) => each.from <= first && each.to >= end && (!hard || each.retention === "hard"));
    if (hides || end > messages.length) return;
    const draft: Draft = {
      type: "history.compacted",
      id: this.#name("h"),
      at: 1,
      retention: hard ? "hard" : "soft",
      from: first,
      to: end,
      first: messages[first]!.id,
      last: messages[end - 1]!.id,
      keep: from % 2 === 0 ? [first] : [],
      over: overlays.filter((each) => each.from >= first && each.to <= end).map(({ seq }) => seq),
      replacements: [{ id: this.#name("sum"), role: "system", content: "So far: a lot." }],
    };
    await appendRaw(this.#store, on(branchId), draft);
  }

  async #clear(branchId: string, which: number): Promise<void> {
    const { messages } = await replay(this.#store, on(branchId));
    const results = messages.flatMap(({ role }, at) => (role === "tool" ? [at] : []));
    if (results.length === 0) return;
    const at = results[which % results.length]!;
    const callIds = callsOf(messages[at - 1]!).map(({ toolCallId }) => toolCallId);
    const id = this.#name("h");
    await appendRaw(this.#store, on(branchId), { type: "history.cleared", id, at: 1, results: [{ at, callIds }] });
  }

  /** Takes the newest compaction back, and what was cleared unless that is kept. */
  async #restore(branchId: string, keep: boolean): Promise<void> {
    const { overlays, cleared } = await replay(this.#store, on(branchId));
    const [of] = overlays.slice(-1);
    if (!of) return;
    const left = overlays.slice(0, -1).map(({ id }) => id);
    const id = this.#name("h");
    const kept = keep ? cleared.map(({ callIds, ...each }) => ({ ...each, callIds: [...callIds] })) : [];
    const restored = { of: of.id, overlays: left, cleared: kept };
    await appendRaw(this.#store, on(branchId), { type: "history.restored", id, at: 1, ...restored });
  }
}

async function allowing<T>(codes: readonly string[], work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (BoughError.is(error) && codes.includes(error.code)) return undefined;
    throw error;
  }
}
