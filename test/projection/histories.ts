// Random but well-formed histories: a script of steps, played against the view it has made so far.

import fc from "fast-check";
import { diffPatch, type JsonObject } from "../../src/base/json.ts";
import {
  callsOf,
  codec,
  type Draft,
  type Fact,
  type Message,
  type Part,
  type ToolResultPart,
  type UnknownFact,
} from "../../src/events/index.ts";
import { type BranchView, emptyView, fold, project } from "../../src/projection/index.ts";
import { toRecord } from "../../src/projection/overlay.ts";
import { answerDangling } from "../../src/projection/tools.ts";
import { type Overlay, stateOf } from "../../src/projection/view.ts";

type AnyFact = Fact | UnknownFact;
type InForce = Pick<BranchView, "overlays" | "cleared">;
type Batch = { calls: number; arrivals: number[]; early: boolean; ask: boolean };
type End = "commit" | "stage" | "fail" | "interrupt" | "leave";

export type Step =
  | { do: "turn"; batches: Batch[]; end: End; state: number; polite: boolean }
  | { do: "resume"; batches: Batch[]; end: End; state: number }
  | { do: "save"; all: boolean }
  | { do: "discard"; which: number }
  | { do: "revert"; to: number }
  | { do: "fork"; keep: number; none: boolean }
  | { do: "compact"; hard: boolean; from: number; to: number; keep: number[]; calls: boolean; undo: boolean }
  | { do: "clear"; which: number; all: boolean; undo: boolean }
  | { do: "restore" }
  | { do: "update"; what: number }
  | { do: "state"; state: number }
  | { do: "question"; how: number; which: number }
  | { do: "unknown" };

const small = fc.nat(7);
const any = fc.nat(10_000);
const batch: fc.Arbitrary<Batch> = fc.record({
  calls: fc.nat(4),
  arrivals: fc.array(small, { maxLength: 6 }),
  early: fc.boolean(),
  ask: fc.boolean(),
});
const end: fc.Arbitrary<End> = fc.constantFrom("commit", "commit", "stage", "fail", "interrupt", "leave");
const batches = fc.array(batch, { maxLength: 3 });

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant("turn"), batches, end, state: small, polite: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("resume"), batches, end, state: small }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("save"), all: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("discard"), which: small }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("revert"), to: any }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fork"), keep: any, none: fc.boolean() }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("compact"),
      hard: fc.boolean(),
      // Mostly the beginning, as compactions do.
      from: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: any }),
      to: any,
      keep: fc.array(any, { maxLength: 2 }),
      calls: fc.boolean(),
      undo: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("clear"), which: any, all: fc.boolean(), undo: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restore") }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("update"), what: small }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("state"), state: small }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("question"), how: small, which: small }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("unknown") }) },
) as fc.Arbitrary<Step>;

export const scripts: fc.Arbitrary<Step[]> = fc.array(step, { maxLength: 14 });

/** Every message there is at a position, those of unclosed turns as they would be if they closed now. */
export function closedMessages(view: BranchView): readonly Message[] {
  return [...view.messages, ...unclosed(view).flatMap(answerDangling)];
}

/** The messages of each turn that is not closed. */
function unclosed({ staged, open }: BranchView): (readonly Message[])[] {
  return [...staged, ...(open ? [open] : [])].map((turn) => turn.messages);
}

/** Plays a script; `heard` sees the view before and after each append, and the drafts in between. */
export function play(
  script: readonly Step[],
  heard?: (before: BranchView, drafts: readonly Draft[]) => void,
): AnyFact[] {
  const history = new History(heard);
  for (const each of script) history.play(each);
  return history.facts;
}

class History {
  readonly facts: AnyFact[] = [];
  readonly view = emptyView();
  readonly #heard: ((before: BranchView, drafts: readonly Draft[]) => void) | undefined;
  #ids = 0;
  #time = 1000;
  /** What was in force before the newest compaction. */
  #before: { of: number; inForce: InForce } | undefined;

  constructor(heard?: (before: BranchView, drafts: readonly Draft[]) => void) {
    this.#heard = heard;
    this.#add({ type: "branch.created", metadata: {} });
  }

  play(step: Step): void {
    if (step.do === "turn") this.#turn(step);
    else if (step.do === "resume") this.#resume(step);
    else if (step.do === "save") this.#save(step.all);
    else if (step.do === "discard") this.#discard(step.which);
    else if (step.do === "revert") this.#revert(step.to);
    else if (step.do === "fork") this.#fork(step.keep, step.none);
    else if (step.do === "compact") this.#compact(step);
    else if (step.do === "clear") this.#clear(step);
    else if (step.do === "restore") this.#restore();
    else if (step.do === "update") this.#update(step.what);
    else if (step.do === "state") this.#add({ type: "state.changed", set: patch(step.state) });
    else if (step.do === "question") this.#question(step.how, step.which);
    else this.#store(`{"type":"moon.rose","v":2,"at":${this.#time++},"phase":"full"}`);
  }

  /** Appends facts in one step; each gets an id of its own unless it says one. */
  #add(...payloads: Record<string, unknown>[]): void {
    const drafts = payloads.map((payload) => ({ id: this.#id("e"), at: this.#time++, ...payload }) as unknown as Draft);
    this.#heard?.(this.view, drafts);
    for (const draft of drafts) this.#store(codec.encode(draft).data, draft.id);
  }

  #store(data: string, id = this.#id("e")): void {
    const fact = codec.decode({ seq: this.view.seq + 1, id, data });
    this.facts.push(fact);
    fold(this.view, fact);
  }

  #id(prefix: string): string {
    this.#ids += 1;
    return `${prefix}${this.#ids}`;
  }

  #turn({ batches, end, state, polite }: Step & { do: "turn" }): void {
    const turnId = this.#id("t");
    const left = this.view.open && polite ? [this.view.open.id] : [];
    this.#add(
      ...left.map((id) => ({ type: "turn.ended", turnId: id, status: "interrupted", reason: "superseded" })),
      { type: "turn.started", id: turnId, runId: `run of ${turnId}` },
      { type: "message.added", id: this.#id("m"), turnId, role: "user", content: [text("do it")] },
    );
    this.#work(turnId, batches, end, state);
  }

  #resume({ batches, end, state }: Step & { do: "resume" }): void {
    const turnId = this.view.open?.id;
    if (!turnId) return;
    this.#add({ type: "turn.resumed", turnId, runId: this.#id("r") });
    this.#work(turnId, batches, end, state);
  }

  #work(turnId: string, batches: readonly Batch[], end: End, state: number): void {
    for (const batch of batches) this.#batch(turnId, batch);
    const changed = state > 3 ? [{ type: "state.changed", turnId, set: patch(state) }] : [];
    const last = (more: object) => ({ type: "message.added", id: this.#id("m"), turnId, role: "assistant", ...more });
    const partial = last({ content: [text("I was go")], partial: true });
    const answer = last({ content: [text("done")] });
    const closed = { turnId, iterations: batches.length, usage: { inputTokens: state } };
    if (end === "commit") this.#add(answer, ...changed, { type: "turn.committed", ...closed, reason: "stop" });
    if (end === "stage") this.#add(answer, ...changed, { type: "turn.staged", ...closed });
    if (end === "fail") this.#add({ type: "turn.ended", turnId, status: "failed", error: { message: "boom" } });
    if (end === "interrupt") this.#add(partial, ...changed, { type: "turn.ended", turnId, status: "interrupted" });
    if (end === "leave" && changed.length > 0) this.#add(...changed);
  }

  /** An assistant message with calls; results come in any order, some twice, some never, one for a call nobody made. */
  #batch(turnId: string, { calls, arrivals, early, ask }: Batch): void {
    const ids = Array.from({ length: calls }, () => this.#id("c"));
    const asked = ids.map((toolCallId): Part => ({ type: "tool-call", toolCallId, toolName: "add", input: {} }));
    const hosted = { ...asked[0], toolCallId: this.#id("c"), providerExecuted: true } as unknown as Part;
    const content = [...(early ? [text("let me see")] : []), ...asked, ...(ask && asked[0] ? [hosted] : [])];
    this.#add({ type: "message.added", id: this.#id("m"), turnId, role: "assistant", content });
    const question = this.#id("q");
    if (ask) this.#add({ type: "interaction.opened", id: question, turnId, kind: "permission", request: { a: 1 } });
    for (const arrival of arrivals) {
      const callId = ids[arrival] ?? (arrival === 7 ? "nobody's" : ids[0]);
      if (callId === undefined) continue;
      const output = { type: "text", value: `${this.#time}` };
      this.#add({ type: "tool.returned", turnId, callId, toolName: "add", output });
    }
    if (ask && early) this.#add({ type: "interaction.answered", interactionId: question, answer: { allow: true } });
  }

  #save(all: boolean): void {
    const waiting = all ? this.view.staged : this.view.staged.slice(-1);
    if (waiting.length > 0) this.#add(...waiting.map(({ id: turnId }) => ({ type: "turn.committed", turnId })));
  }

  #discard(which: number): void {
    const turn = this.view.staged[which] ?? this.view.staged.at(-1) ?? (which === 7 ? this.view.open : undefined);
    if (turn) this.#add({ type: "turn.discarded", turnId: turn.id, reason: "never saved" });
  }

  /** To the wanted position, or the next earlier one whose messages are still on the branch. */
  #revert(wanted: number): void {
    const now = closedMessages(this.view);
    const isThere = (to: number) =>
      isOnPath(this.facts, to) && isStart(closedMessages(project(this.facts.slice(0, to))), now);
    let to = wanted % (this.view.seq + 1);
    while (!isThere(to)) to--;
    const then = project(this.facts.slice(0, to));
    const messages = closedMessages(then).length;
    const set = diffPatch(stateOf(this.view), stateOf(then));
    const overlays = then.overlays.map(toRecord);
    const inForce = this.view.lastOverlay > to ? { overlays, cleared: then.cleared } : {};
    this.#add({ type: "branch.reverted", to, messages, ...answeredOf(then), set, ...inForce });
  }

  #fork(keep: number, none: boolean): void {
    const all = closedMessages(this.view);
    const messages = keep % (this.view.messages.length + 1);
    const set = none ? diffPatch(stateOf(this.view), {}) : {};
    const at = { branchId: "parent", seq: this.view.seq };
    const kept = keep % 2 === 0 ? all.length : messages;
    const messageId = all[kept - 1]?.id;
    const overlays = this.view.overlays.filter(({ to }) => to <= kept).map(({ id }) => id);
    const inForce = { overlays, cleared: this.view.cleared.filter((each) => each.at < kept) };
    const name = "fork";
    this.#add({
      type: "branch.forked",
      from: at,
      messages: kept,
      ...(messageId && { messageId }),
      set,
      name,
      ...inForce,
    });
  }

  /** Any range that cuts no other one and that somebody sees; a soft one may reach into the open turn. */
  #compact({ hard, from, to, keep, calls, undo }: Step & { do: "compact" }): void {
    const { messages, overlays, staged, open } = this.view;
    const reach = hard || staged.length > 0 || !open ? [] : answeredStart(open.messages);
    const all = [...messages, ...reach];
    if (all.length === 0) return;
    let start = from % all.length;
    let end = start + 1 + (to % (all.length - start));
    for (let cut = true; cut; ) {
      const other = overlays.find((each) => isCutBy(each, start, end));
      cut = other !== undefined;
      if (other) [start, end] = [Math.min(start, other.from), Math.max(end, other.to)];
    }
    const isHidden = overlays.some(
      (each) => each.from <= start && each.to >= end && (!hard || each.retention === "hard"),
    );
    if (isHidden || end > all.length) return;
    const call = { type: "tool-call", toolCallId: this.#id("c"), toolName: "add", input: {} };
    const summary = { id: this.#id("m"), role: "assistant", content: calls ? [call] : "So far: a lot." };
    const before = this.#inForce();
    this.#add({
      type: "history.compacted",
      retention: hard ? "hard" : "soft",
      from: start,
      to: end,
      first: all[start]!.id,
      last: all[end - 1]!.id,
      keep: keep.map((each) => start + (each % (end - start))),
      replacements: to % 3 === 0 ? [] : [summary],
      over: overlays.filter((each) => each.from >= start && each.to <= end).map(({ seq }) => seq),
      ...(end > messages.length && { turnId: open!.id }),
    });
    if (undo) this.#takeBack(before);
    else this.#before = { of: this.view.seq, inForce: before };
  }

  #clear({ which, all, undo }: Step & { do: "clear" }): void {
    const results = closedMessages(this.view).flatMap((message, at) =>
      message.role === "tool" ? [{ message, at }] : [],
    );
    if (results.length === 0) return;
    const { message, at } = results[which % results.length]!;
    const ids = (message.content as readonly ToolResultPart[]).map(({ toolCallId }) => toolCallId);
    const before = this.#inForce();
    this.#add({ type: "history.cleared", results: [{ at, callIds: all ? ids : ids.slice(0, 1) }] });
    if (undo) this.#takeBack(before);
  }

  /** Takes the newest compaction back, unless what is in force changed since in another way. */
  #restore(): void {
    if (this.#before?.of === this.view.lastOverlay) this.#takeBack(this.#before.inForce);
  }

  #inForce(): InForce {
    return { overlays: this.view.overlays, cleared: this.view.cleared };
  }

  #takeBack({ overlays, cleared }: InForce): void {
    const there = new Set(this.view.overlays.map(({ id }) => id));
    const carried = overlays.map((each) => (there.has(each.id) ? each.id : toRecord(each)));
    const of = this.facts.at(-1)!.id;
    this.#add({ type: "history.restored", of, overlays: carried, cleared });
  }

  #update(what: number): void {
    const changes = [{ name: "n" }, { name: null }, { description: "d" }, { tags: ["a"] }, { metadata: { what } }];
    this.#add({ type: "branch.updated", ...changes[what % changes.length] });
  }

  #question(how: number, which: number): void {
    const interactionId = this.view.interactions[which]?.id ?? "nobody's";
    if (how < 3) this.#add({ type: "interaction.opened", kind: "clarification", request: {}, expiresAt: 5000 + how });
    else if (how < 5) this.#add({ type: "interaction.answered", interactionId, answer: { text: "yes" } });
    else this.#add({ type: "interaction.expired", interactionId });
  }
}

/** The messages up to the first call that has no result. */
function answeredStart(messages: readonly Message[]): readonly Message[] {
  const answered = answerDangling(messages);
  const end = answered.findIndex((message, i) => message !== messages[i]);
  if (end < 0) return messages;
  return messages.slice(0, callsOf(answered[end - 1]!).length > 0 ? end - 1 : end);
}

function isCutBy(other: Overlay, from: number, to: number): boolean {
  const isApart = other.to <= from || other.from >= to;
  return !isApart && !(other.from >= from && other.to <= to) && !(other.from <= from && other.to >= to);
}

/** Whether a position was not reverted away: going back from the end, reverts jump. */
function isOnPath(facts: readonly AnyFact[], to: number): boolean {
  let end = facts.length;
  while (end > to) {
    const fact = facts[end - 1]!;
    end = fact.type === "branch.reverted" ? fact.to : end - 1;
  }
  return end === to;
}

/** Whether the messages begin with these; a call may have got its result since, but none may have lost it. */
function isStart(start: readonly Message[], messages: readonly Message[]): boolean {
  const given = ({ content }: Message) => (content as Part[]).filter(isGiven).map((part) => JSON.stringify(part));
  return start.every((message, i) => {
    const there = messages[i];
    if (message.id !== there?.id) return false;
    return message.role !== "tool" || given(message).every((result) => given(there).includes(result));
  });
}

function isGiven(part: Part): boolean {
  return part.type === "tool-result" && (part as ToolResultPart).output.type !== "error-text";
}

/** Which calls of the last batch had results, when some had none: what a revert into a batch carries. */
function answeredOf(then: BranchView): { answered?: string[] } {
  const raw = unclosed(then).at(-1) ?? [];
  const asked = raw.findLast((message) => message.role === "assistant");
  const results = raw.at(-1)?.role === "tool" ? (raw.at(-1)!.content as readonly Part[]) : [];
  if (!asked || (raw.at(-1) !== asked && results.length === 0)) return {};
  const answered = results.flatMap((part) => (part.type === "tool-result" ? [part.toolCallId as string] : []));
  return answered.length < callsOf(asked).length ? { answered } : {};
}

function patch(state: number): JsonObject {
  return state % 3 === 0 ? { plan: null } : { plan: { step: state }, [`k${state}`]: state };
}

function text(value: string): Part {
  return { type: "text", text: value };
}
