// What a branch is at a position of its log: the fold of the facts up to there.

import { type JsonObject, mergePatch } from "../base/json.ts";
import type { Interaction, Message, OpenTask, Ownership, QueuedInput, TurnRequest } from "../events/index.ts";

/** How a closed turn ended. */
export type TurnStatus = "committed" | "interrupted" | "failed";

/** One execution that worked on a turn: the first, or a resumption. */
export interface RunRecord {
  readonly runId?: string;
  readonly agentId?: string;
  readonly startedAt: number;
}

/** What was used, how many model calls it took, why it stopped. */
export interface TurnOutcome {
  readonly reason?: string;
  readonly iterations?: number;
  readonly usage?: JsonObject;
  /** What its children used. */
  readonly children?: JsonObject;
  readonly error?: JsonObject;
}

/** A closed turn; its messages are those of the branch with its id. */
export interface TurnRecord extends TurnOutcome {
  readonly id: string;
  readonly status: TurnStatus;
  /** Sequence numbers of its first and its last fact. */
  readonly from: number;
  readonly to: number;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly runs: readonly RunRecord[];
}

/** A turn that is not closed: in flight, left behind by a crash, or complete and waiting to be saved. */
export interface OpenTurn {
  readonly id: string;
  readonly from: number;
  readonly startedAt: number;
  readonly runs: readonly RunRecord[];
  /** The person or program that asked for it. */
  readonly by?: string;
  readonly metadata?: JsonObject;
  /** How it was asked, with what later runs said anew. */
  readonly request?: TurnRequest;
  readonly messages: readonly Message[];
  /** What its replies used so far, as far as they say so. */
  readonly used?: JsonObject;
  /** The newest handoff of the turn; the agent goes on once every call of the same message has its result. */
  readonly handed?: Handed;
  /** State changes that take effect when the turn closes. */
  readonly set: JsonObject;
  /** The steps of a workflow, in the order in which they began or returned. */
  readonly steps?: readonly StepRecord[];
  /** How many of them have begun and not returned. */
  readonly stepsBegun?: number;
  /** Present while it sleeps: nothing was written on the branch since it was parked so. */
  readonly asleep?: Asleep;
  /** The turn before, which this one goes on with. */
  readonly continues?: { readonly turnId: string; readonly steps?: boolean | undefined };
  /** How it completed; present once it waits to be saved. */
  readonly outcome?: TurnOutcome;
  /** How it ended instead, when it was cut off after a turn that waits: then it waits with it. */
  readonly ended?: Exclude<TurnStatus, "committed">;
}

/** A step of a workflow, as its newest fact tells. Its output is in the log. */
export interface StepRecord {
  readonly key: string;
  readonly kind: "step" | "agent" | "sleep" | "ask" | "wait" | "flow";
  readonly status: "started" | "returned" | "failed" | "skipped";
  /** The position and time of its newest fact. */
  readonly seq: number;
  readonly at: number;
  /** When a step that sleeps goes on. */
  readonly until?: number;
  readonly tries?: number;
  readonly ms?: number;
  readonly error?: JsonObject;
  readonly why?: string;
  /** Where its agent worked. */
  readonly child?: JsonObject;
  readonly usage?: JsonObject;
}

/** A turn that nothing is to be done for, until a time if it has one, or until anything is written on its branch. */
export interface Asleep {
  readonly until?: number;
}

/** A turn was handed over, by a call. Paths are those of `turn.handed`. */
export interface Handed {
  readonly callId: string;
  readonly path: readonly string[];
  /** The path before. */
  readonly before?: readonly string[];
}

export type { Interaction };

/** A range of messages that is shown as something else: to models, and if it is hard to people too. */
export interface Overlay {
  /** The compaction's id, position in the log and time. */
  readonly id: string;
  readonly seq: number;
  readonly createdAt: number;
  readonly retention: "soft" | "hard";
  /** The positions from … to-1 of the ledger. */
  readonly from: number;
  readonly to: number;
  readonly first: string;
  readonly last: string;
  /** What stays verbatim, by position. */
  readonly kept: readonly { readonly at: number; readonly message: Message }[];
  readonly replacements: readonly Message[];
  /** The fact that put it in force: its own, or one that brought it back. */
  readonly since: number;
  /** The turn it reaches into, until that turn closes. */
  readonly turnId?: string;
}

/** Outputs that models see as a note, of the message at a position. */
export interface Cleared {
  /** The clearing's id and position in the log. */
  readonly id: string;
  readonly seq: number;
  readonly at: number;
  readonly callIds: readonly string[];
}

/** A text behind the hashes of replies, and the fact that has it. */
export interface KeptText {
  readonly sha: string;
  readonly seq: number;
}

/** Thrown where a view that holds only what a model sees would need more. */
export class PartialView extends Error {
  override readonly name = "PartialView";
}

/** What a branch is called and whose it is, as its log tells it. */
export interface BranchHeader extends Ownership {
  readonly name?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly metadata: JsonObject;
}

/** Where a branch was forked, as its log tells it. */
export interface ForkFact {
  readonly from: { readonly branchId: string; readonly seq: number };
  readonly messageId?: string;
  /** How many messages are shared with the parent. */
  readonly messages: number;
}

/** A revert: where it stands in the log, and what was left. */
export interface Revert {
  readonly seq: number;
  /** As people see them. */
  readonly messageCount: number;
  /** The last message that was left. */
  readonly messageId?: string;
}

/** The projection of a branch's log. The code that folds owns it; only unclosed turns are changed in place. */
export interface BranchView {
  seq: number;
  createdAt: number;
  updatedAt: number;
  header: BranchHeader;
  fork: ForkFact | null;
  /** The ledger: messages of closed turns, whatever was compacted. The oldest `skipped` are not held. */
  messages: Message[];
  skipped: number;
  /** What people see of the ledger; the same array until something is compacted hard. Null while messages are skipped. */
  shown: Message[] | null;
  /** What a model sees of the ledger; the same array as `shown` until something is compacted or cleared. */
  window: Message[];
  overlays: readonly Overlay[];
  cleared: readonly Cleared[];
  /** The newest fact that changed what is compacted or cleared; 0 when none did. */
  lastOverlay: number;
  /** The newest fact that removed something that the view no longer shows: a revert, a fork, a discarded turn; or 0. */
  lastCut: number;
  /** The newest fact that may have changed the state, of the branch or of an open turn; 0 when none did. */
  lastState: number;
  /** The size of the context in tokens as a model last reported it, and how many messages it was about. */
  context: { readonly tokens: number; readonly upTo: number } | null;
  /** The texts that replies were made from and that later ones need not keep again: the latest, those used last at the end. */
  texts: readonly KeptText[];
  /** How many messages of the ledger it shares with its source: the others are its own. */
  shared: number;
  /** The newest reverts of the branch, oldest first; a fork begins without. */
  reverts: readonly Revert[];
  /** What the branch's own closed turns used; that of their children is on the children's branches. */
  usage: JsonObject;
  turns: TurnRecord[];
  /** How many of the oldest turns are not held. */
  skippedTurns: number;
  /** Complete turns that wait to be saved, oldest first. */
  staged: OpenTurn[];
  /** The turn in flight, or the one a crash left behind. */
  open: OpenTurn | null;
  state: JsonObject;
  /** Those that wait for an answer, oldest first. */
  interactions: Interaction[];
  /** Inputs that wait for a turn, oldest first. */
  queue: readonly QueuedInput[];
  /** Background tasks that have not ended, oldest first. */
  tasks: readonly OpenTask[];
}

/** The view of a branch without facts. */
export function emptyView(): BranchView {
  const messages: Message[] = [];
  return {
    seq: 0,
    createdAt: 0,
    updatedAt: 0,
    header: { metadata: {} },
    fork: null,
    messages,
    skipped: 0,
    shown: messages,
    window: messages,
    overlays: [],
    cleared: [],
    lastOverlay: 0,
    lastCut: 0,
    lastState: 0,
    context: null,
    texts: [],
    shared: 0,
    reverts: [],
    usage: {},
    turns: [],
    skippedTurns: 0,
    staged: [],
    open: null,
    state: {},
    interactions: [],
    queue: [],
    tasks: [],
  };
}

/** The branch-scoped state as it would be if every unclosed turn closed now. */
export function stateOf({ state, staged, open }: BranchView): JsonObject {
  return [...staged, ...(open ? [open] : [])].reduce((sum, turn) => mergePatch(sum, turn.set), state);
}

/** An unclosed turn that stays as it is while the fold goes on. */
export function copyTurn(turn: OpenTurn): OpenTurn {
  const copy = { ...turn, runs: turn.runs.slice(), messages: turn.messages.slice(), set: { ...turn.set } };
  return turn.steps ? { ...copy, steps: turn.steps.slice() } : copy;
}

/** A view that can be folded further without changing this one. */
export function copyView(view: BranchView): BranchView {
  const copy = copyUnclosed(view);
  const { messages, shown, window } = view;
  copy.messages = messages.slice();
  copy.skipped = view.skipped;
  copy.shown = shown === messages ? copy.messages : (shown?.slice() ?? null);
  copy.window = window === messages ? copy.messages : window === shown ? copy.shown! : window.slice();
  copy.turns = view.turns.slice();
  copy.skippedTurns = view.skippedTurns;
  return copy;
}

/** The same without the messages and records of closed turns. */
export function copyUnclosed(view: BranchView): BranchView {
  const messages: Message[] = [];
  return {
    ...view,
    messages,
    skipped: view.skipped + view.messages.length,
    shown: messages,
    window: messages,
    turns: [],
    skippedTurns: view.skippedTurns + view.turns.length,
    staged: view.staged.map(copyTurn),
    open: view.open && copyTurn(view.open),
    interactions: view.interactions.slice(),
  };
}
