// The fold: facts in, view out. Pure in the sense that matters: the same facts give the same view, byte for byte, on every
// store, in every process and in the browser.
//
//   Fold-1. view.seq is the sequence number of the last fact folded; facts come in order, each once.
//   Fold-2. Messages of closed turns are always legal: every tool call has exactly one result.
//   Fold-3. A fact never needs an earlier fact to be read again: what a revert must know, it carries.
//   Fold-4. The cost of a fact is that of its turn, never of the history (reverts and compactions aside).
//   Fold-5. Turns close in the order in which they began: a later one never stands before one that waits to be saved.
//   Fold-6. What a view holds of messages, closed turns, runs and questions never changes in place: it is handed out.

import { BoughError } from "../base/errors.ts";
import { type JsonObject, mergePatch } from "../base/json.ts";
import type { Fact, FactType, Message, UnknownFact } from "../events/index.ts";
import {
  addToLedger,
  countLedger,
  countShown,
  cutOverlays,
  discardOverlays,
  foldCleared,
  foldCompacted,
  foldRestored,
  rebuild,
  setOverlays,
  settleOverlays,
  unclosedMessages,
} from "./overlay.ts";
import { dropFromQueue, foldEdited, foldQueued } from "./queue.ts";
import { askedOf, headerOf, interactionOf, messageOf, outcomeOf, resumedWith, runOf, updateHeader } from "./records.ts";
import { spend, sumUsage } from "./spent.ts";
import { addStep, foldParked, stepOf, wake } from "./steps.ts";
import { cutTasks, dropTask, foldTaskStarted } from "./tasks.ts";
import { addResult, answerDangling, keepAnswered } from "./tools.ts";
import {
  type BranchView,
  emptyView,
  type OpenTurn,
  PartialView,
  type RunRecord,
  type TurnOutcome,
  type TurnStatus,
} from "./view.ts";

/** The view of a whole log. */
export function project(facts: Iterable<Fact | UnknownFact>): BranchView {
  const view = emptyView();
  for (const fact of facts) fold(view, fact);
  return view;
}

/** Folds one more fact into a view that the caller owns. */
export function fold(view: BranchView, fact: Fact | UnknownFact): void {
  if (fact.seq !== view.seq + 1) {
    throw new BoughError("store_corrupt", `The log goes from ${view.seq} to ${fact.seq}.`, {
      data: { after: view.seq, found: fact.seq },
    });
  }
  // A kind this version does not know, of a newer log or a newer server, moves the position and nothing else.
  if (isKnown(fact)) foldKnown(view, fact);
  if (view.open?.asleep) wake(view, fact);
  view.seq = fact.seq;
  view.updatedAt = fact.at;
}

/** What each kind of fact does to the view. The type makes a missing kind an error. */
function isKnown(fact: Fact | UnknownFact): fact is Fact {
  return Object.hasOwn(folds, fact.type);
}

function foldKnown<Type extends FactType>(view: BranchView, fact: Fact<Type>): void {
  folds[fact.type](view, fact);
}

const folds: { [T in FactType]: (view: BranchView, fact: Fact<T>) => void } = {
  "branch.created"(view, fact) {
    view.createdAt = fact.at;
    view.header = headerOf(fact);
  },
  "branch.forked": foldForked,
  "branch.updated"(view, fact) {
    view.header = updateHeader(view.header, fact);
  },
  "branch.reverted": foldReverted,
  "turn.started"(view, fact) {
    if (view.open) spend(view, view.open);
    if (view.open) endTurn(view, view.open, interrupted(view, fact, "superseded"));
    view.open = { id: fact.id, from: fact.seq, startedAt: fact.at, runs: [runOf(fact)], messages: [], set: {} };
    if (fact.by ?? fact.metadata ?? fact.request) view.open = { ...view.open, ...askedOf(fact) };
    if (fact.inputs) dropFromQueue(view, fact.inputs);
    if (fact.continues) view.open = { ...view.open, continues: fact.continues };
  },
  "turn.resumed"(view, fact) {
    growing(view, fact).runs.push(runOf(fact));
    if (fact.metadata ?? fact.request) view.open = resumedWith(view.open!, fact);
  },
  "message.added"(view, fact) {
    growing(view, fact).messages.push(messageOf(fact));
    if (fact.prompt) noteTexts(view, fact);
    if (fact.inputId) dropFromQueue(view, [fact.inputId]);
    if (!fact.usage) return;
    noteContext(view, fact.usage, countLedger(view) + view.open!.messages.length);
    view.open = { ...view.open!, used: sumUsage(view.open!.used ?? {}, fact.usage) };
  },
  "tool.returned"(view, fact) {
    addResult(growing(view, fact).messages, fact);
  },
  // What a recovery and a watcher read in the log itself; no part of what a branch is.
  "turn.parked": foldParked,
  "step.started": foldStep,
  "step.returned": foldStep,
  "step.skipped": foldStep,
  "signal.received": nothing,
  "permission.granted": nothing,
  "tool.started": nothing,
  "turn.handed"(view, { callId, path, ...fact }) {
    const before = openTurnOf(view, fact).handed?.path;
    view.open = { ...view.open!, handed: Object.freeze({ callId, path, ...(before && { before }) }) };
  },
  "task.started": foldTaskStarted,
  "task.ended": (view, { taskId }) => dropTask(view, taskId),
  "content.attached": nothing,
  "interrupt.requested": nothing,
  "input.queued": foldQueued,
  "input.edited": foldEdited,
  "input.withdrawn": (view, { inputId }) => dropFromQueue(view, [inputId]),
  "state.changed"(view, fact) {
    const { turnId, set, seq } = fact;
    view.lastState = seq;
    if (turnId === undefined) view.state = mergePatch(view.state, set);
    else Object.assign(growing(view, { ...fact, turnId }).set, set);
  },
  "turn.staged"(view, fact) {
    const turn = takeTurn(view, fact);
    view.staged.push({ ...turn, outcome: outcomeOf(fact) });
    spend(view, turn, fact.usage);
    forgetInteractions(view, fact.turnId);
    if (fact.context) noteContext(view, fact.context, countLedger(view) + unclosedMessages(view).length);
  },
  "turn.committed"(view, fact) {
    const { at, seq: to } = fact;
    const turn = takeTurn(view, fact);
    if (view.staged.length > 0) closeBefore(view, turn, { at, to, status: "committed" });
    // One that was staged has been counted then.
    if (!turn.outcome) spend(view, turn, fact.usage);
    close(view, turn, { at, to, status: "committed", outcome: outcomeOf(fact) });
    if (fact.context) noteContext(view, fact.context, countLedger(view));
  },
  "turn.ended"(view, fact) {
    const { at, seq: to, status } = fact;
    const error = fact.error && { error: fact.error as JsonObject };
    const turn = takeTurn(view, fact);
    spend(view, turn, fact.usage);
    endTurn(view, turn, { at, to, status, outcome: { ...outcomeOf(fact), ...error } });
  },
  "turn.discarded"(view, fact) {
    takeTurn(view, fact);
    discardOverlays(view, fact);
    view.lastCut = fact.seq;
    view.lastState = fact.seq;
    forgetInteractions(view, fact.turnId);
    cutTasks(view, ({ turnId }) => turnId === fact.turnId);
  },
  "interaction.opened"(view, fact) {
    view.interactions.push(Object.freeze(interactionOf(fact)));
  },
  "interaction.answered": closeInteraction,
  "interaction.expired": closeInteraction,
  "history.compacted": foldCompacted,
  "history.cleared": foldCleared,
  "history.restored": foldRestored,
};

function nothing(): void {}

function foldStep(view: BranchView, fact: Fact<"step.started" | "step.returned" | "step.skipped">): void {
  view.open = addStep(openTurnOf(view, fact), stepOf(fact));
}

/** A fork inside a turn closes that turn in the child. */
function foldForked(view: BranchView, fact: Fact<"branch.forked">): void {
  const { overlays } = view;
  closeAll(view, fact, "forked");
  const { from, messages, messageId } = fact;
  truncate(view, fact, "forked");
  view.createdAt = fact.at;
  view.header = headerOf(fact);
  view.fork = { from, ...(messageId && { messageId }), messages };
  view.interactions = [];
  // They were sent to the parent, which takes them; its tasks report to it.
  view.queue = [];
  view.tasks = [];
  cutOverlays(view);
  setOverlays(view, fact, overlays);
  if (fact.overlays ?? fact.cleared) view.lastOverlay = fact.seq;
  view.lastCut = fact.seq;
  view.lastState = fact.seq;
  view.context = null;
  view.shared = messages;
  view.reverts = [];
  view.usage = {};
  rebuild(view);
  view.state = mergePatch(view.state, fact.set ?? {});
}

function foldReverted(view: BranchView, fact: Fact<"branch.reverted">): void {
  const { overlays } = view;
  closeAll(view, fact, "reverted");
  truncate(view, fact, "reverted");
  view.turns = view.turns
    .filter((turn) => turn.from <= fact.to)
    .map((turn) =>
      turn.to <= fact.to
        ? turn
        : Object.freeze({ ...turn, to: fact.to, status: "interrupted" as const, reason: "reverted" }),
    );
  view.interactions = [];
  cutTasks(view, ({ seq }) => seq > fact.to);
  cutOverlays(view, fact.to);
  setOverlays(view, fact, overlays);
  if (view.lastOverlay > fact.to) view.lastOverlay = fact.seq;
  view.lastCut = fact.seq;
  view.lastState = fact.seq;
  view.context = null;
  rebuild(view);
  view.state = mergePatch(view.state, fact.set ?? {});
  view.shared = Math.min(view.shared, fact.messages);
  noteRevert(view, fact);
}

/** How many reverts a view knows: rows of branches have them, and are written with every append. */
const mostReverts = 32;

function noteRevert(view: BranchView, { seq }: { readonly seq: number }): void {
  const last = view.messages.at(-1);
  const revert = { seq, messageCount: countShown(view), ...(last && { messageId: last.id }) };
  view.reverts = [...view.reverts, Object.freeze(revert)].slice(-mostReverts);
}

interface TurnEnd<Status extends TurnStatus = TurnStatus> {
  readonly at: number;
  readonly to: number;
  readonly status: Status;
  readonly outcome?: TurnOutcome;
}

/** Ends a turn that was cut off; Fold-5: behind one that waits to be saved, it waits too. */
function endTurn(view: BranchView, turn: OpenTurn, end: TurnEnd<"interrupted" | "failed">): void {
  const { status: ended, outcome = {} } = end;
  if (view.staged.some(({ from }) => from < turn.from)) {
    view.staged.push({ ...turn, ended, outcome });
    forgetInteractions(view, turn.id);
  } else close(view, turn, end);
}

function close(view: BranchView, turn: OpenTurn, { at, to, status: closed, outcome }: TurnEnd): void {
  const { id, from, startedAt, runs, set } = turn;
  const status = turn.ended ?? closed;
  addToLedger(view, answerDangling(turn.messages));
  if (view.overlays.length > 0) settleOverlays(view, id);
  const record = { id, status, from, to, startedAt, endedAt: at, runs: Object.freeze(runs) };
  view.turns.push(Object.freeze(Object.assign(record, turn.outcome, outcome)));
  if (Object.keys(set).length > 0) view.state = mergePatch(view.state, set);
  forgetInteractions(view, id);
}

/** Fold-5: a turn builds on those that wait before it, so they are saved with it. */
function closeBefore(view: BranchView, turn: OpenTurn, end: TurnEnd): void {
  const before = view.staged.filter(({ from }) => from < turn.from);
  view.staged = view.staged.filter(({ from }) => from > turn.from);
  for (const each of before) close(view, each, end);
}

/** Closes what is not closed: staged turns as they completed, the open one as interrupted. */
function closeAll(view: BranchView, fact: { at: number }, reason: string): void {
  for (const turn of view.staged) close(view, turn, { at: fact.at, to: view.seq, status: "committed" });
  view.staged = [];
  if (view.open) endTurn(view, view.open, interrupted(view, fact, reason));
  view.open = null;
}

/** The end of a turn at the fact before this one. */
function interrupted({ seq: to }: BranchView, { at }: { at: number }, reason: string): TurnEnd<"interrupted"> {
  return { at, to, status: "interrupted", outcome: { reason } };
}

/** Keeps the first messages; a call left without its result is answered, a turn left without messages is gone. */
function truncate(view: BranchView, keep: { messages: number; answered?: string[] | undefined }, why: string): void {
  const { answered } = keep;
  const messages = keep.messages - view.skipped;
  if (messages < Math.min(2, view.skipped)) throw new PartialView();
  const lost = new Set(view.messages.slice(messages).map(({ turnId }) => turnId));
  if (lost.size === 0 && !answered) return;
  const head = view.messages.slice(0, Math.max(messages - 2, 0));
  const tail = view.messages.slice(head.length, messages);
  view.messages = [...head, ...answerDangling(answered ? keepAnswered(tail, answered) : tail)];
  const left = new Set(view.messages.map(({ turnId }) => turnId));
  view.turns = view.turns.flatMap((turn) => {
    if (!lost.has(turn.id)) return [turn];
    return left.has(turn.id) ? [Object.freeze({ ...turn, status: "interrupted" as const, reason: why })] : [];
  });
}

/** Takes the fact's turn out of the view: the open one, or one that waits to be saved. */
function takeTurn(view: BranchView, fact: { turnId: string; seq: number; type: string }): OpenTurn {
  const staged = view.staged.length > 0 && view.staged.find(({ id }) => id === fact.turnId);
  if (staged) {
    view.staged = view.staged.filter((turn) => turn !== staged);
    return staged;
  }
  const open = openTurnOf(view, fact);
  view.open = null;
  return open;
}

function openTurnOf(view: BranchView, fact: { turnId: string; seq: number; type: string }): OpenTurn {
  if (view.open?.id === fact.turnId) return view.open;
  throw notOpen(view, fact);
}

function notOpen(view: BranchView, fact: { turnId: string; seq: number; type: string }): BoughError {
  return new BoughError(
    "event_invalid",
    `Fact ${fact.seq} (${fact.type}) belongs to turn ${fact.turnId}, which is not open.`,
    {
      data: { seq: fact.seq, turnId: fact.turnId, open: view.open?.id },
    },
  );
}

/** The fact's turn, to be added to in place: code that hands a view out copies its unclosed turns (view.ts, copyTurn). */
function growing(view: BranchView, fact: { turnId: string; seq: number; type: string }) {
  return openTurnOf(view, fact) as unknown as { runs: RunRecord[]; messages: Message[]; set: JsonObject };
}

function closeInteraction(view: BranchView, fact: Fact<"interaction.answered" | "interaction.expired">): void {
  view.interactions = view.interactions.filter(({ id }) => id !== fact.interactionId);
}

function forgetInteractions(view: BranchView, turnId: string): void {
  if (view.interactions.length > 0) view.interactions = view.interactions.filter((each) => each.turnId !== turnId);
}

/** What a model call was sent and answered is the size of the context up to its reply. */
function noteContext(
  view: BranchView,
  usage: { inputTokens?: number | undefined; outputTokens?: number | undefined },
  upTo: number,
): void {
  const { inputTokens, outputTokens = 0 } = usage;
  if (inputTokens !== undefined) view.context = { tokens: inputTokens + outputTokens, upTo };
}

/** How many texts a view knows; one that has not been used for so long is kept again. */
const mostTexts = 64;

/** Texts that come with a reply are known from then on; those that it uses again, after a while, stay known. */
function noteTexts(view: BranchView, { prompt, seq }: Fact<"message.added">): void {
  const { system, tools, settings, texts: added = {} } = prompt!;
  const old = view.texts.slice(0, -mostTexts / 2).filter(({ sha }) => [system, tools, settings].includes(sha));
  const fresh = Object.keys(added).map((sha) => ({ sha, seq }));
  if (old.length + fresh.length === 0) return;
  const rest = view.texts.filter((text) => !old.includes(text) && !Object.hasOwn(added, text.sha));
  view.texts = [...rest, ...old.filter(({ sha }) => !Object.hasOwn(added, sha)), ...fresh].slice(-mostTexts);
}
