// What a branch is at a position of its log: the fold of the facts up to there.

import { type JsonObject, mergePatch } from "../base/json.ts";
import type { Message, TurnRequest } from "../events/index.ts";

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
  /** State changes that take effect when the turn closes. */
  readonly set: JsonObject;
  /** How it completed; present once it waits to be saved. */
  readonly outcome?: TurnOutcome;
  /** How it ended instead, when it was cut off after a turn that waits: then it waits with it. */
  readonly ended?: Exclude<TurnStatus, "committed">;
}

export interface Interaction {
  readonly id: string;
  readonly kind: "permission" | "clarification" | "continuation" | "client-tool";
  readonly request: JsonObject;
  readonly openedAt: number;
  readonly turnId?: string;
  readonly callId?: string;
  readonly expiresAt?: number;
}

export interface Compaction {
  readonly seq: number;
  readonly retention: "soft" | "hard";
  readonly first: string;
  readonly last: string;
  readonly replacements: readonly Message[];
}

export interface BranchHeader {
  readonly name?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly metadata: JsonObject;
}

export interface ForkFact {
  readonly from: { readonly branchId: string; readonly seq: number };
  readonly messageId?: string;
  /** How many messages are shared with the parent. */
  readonly messages: number;
}

/** Owned by whoever folds into it; of what it holds, only unclosed turns are added to in place. */
export interface BranchView {
  seq: number;
  createdAt: number;
  updatedAt: number;
  header: BranchHeader;
  fork: ForkFact | null;
  /** Messages of closed turns. */
  messages: Message[];
  turns: TurnRecord[];
  /** Complete turns that wait to be saved, oldest first. */
  staged: OpenTurn[];
  /** The turn in flight, or the one a crash left behind. */
  open: OpenTurn | null;
  state: JsonObject;
  /** Those that wait for an answer, oldest first. */
  interactions: Interaction[];
  compactions: Compaction[];
}

export function emptyView(): BranchView {
  return {
    seq: 0,
    createdAt: 0,
    updatedAt: 0,
    header: { metadata: {} },
    fork: null,
    messages: [],
    turns: [],
    staged: [],
    open: null,
    state: {},
    interactions: [],
    compactions: [],
  };
}

/** The branch-scoped state as it would be if every unclosed turn closed now. */
export function stateOf({ state, staged, open }: BranchView): JsonObject {
  return [...staged, ...(open ? [open] : [])].reduce((sum, turn) => mergePatch(sum, turn.set), state);
}

/** An unclosed turn that stays as it is while the fold goes on. */
export function copyTurn(turn: OpenTurn): OpenTurn {
  return { ...turn, runs: turn.runs.slice(), messages: turn.messages.slice(), set: { ...turn.set } };
}

/** A view that can be folded further without changing this one. */
export function copyView(view: BranchView): BranchView {
  const copy = copyUnclosed(view);
  copy.messages = view.messages.slice();
  copy.turns = view.turns.slice();
  return copy;
}

/** The same without the messages and records of closed turns. */
export function copyUnclosed(view: BranchView): BranchView {
  const { seq, createdAt, updatedAt, header, fork, state } = view;
  return {
    seq,
    createdAt,
    updatedAt,
    header,
    fork,
    messages: [],
    turns: [],
    staged: view.staged.map(copyTurn),
    open: view.open && copyTurn(view.open),
    state,
    interactions: view.interactions.slice(),
    compactions: view.compactions.slice(),
  };
}
