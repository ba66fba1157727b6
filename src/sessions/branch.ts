// How a branch looks to whoever asks: its header and its place in the tree, and once loaded its messages and state.

import type { JsonObject } from "../base/json.ts";
import type { Message } from "../events/index.ts";
import type { BranchRecord } from "../log/store.ts";
import type { RowHeader } from "../projection/header.ts";
import {
  type BranchPlace,
  BranchTree,
  type BranchView,
  type Interaction,
  type OpenTurn,
  type TurnRecord,
  transcript,
} from "../projection/index.ts";
import { copyTurn } from "../projection/view.ts";

/** Where a branch was forked. */
export interface Fork {
  /** The branch it was forked from. */
  readonly forkedFrom: string;
  /** The last message it shares with that branch; absent when it shares none. */
  readonly forkedAtMessageId?: string;
  /** That message's index when the fork was made; -1 when it shares none. */
  readonly forkedAtMessageIndex: number;
  /** The last position of that branch's log it shares. */
  readonly forkedAtSeq: number;
}

/** A branch without its messages: what its row tells. */
export interface BranchInfo {
  readonly sessionId: string;
  readonly id: string;
  readonly name?: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly metadata: JsonObject;
  readonly createdAt: number;
  readonly lastActivity: number;
  /** The newest position of its log. */
  readonly seq: number;
  /** Messages of closed turns. */
  readonly messageCount: number;
  /** The turn that is not closed, if there is one: in flight, interrupted, or waiting to be saved. */
  readonly openTurnId?: string;
  readonly fork?: Fork;
}

/** A branch with its place among the others. */
export interface PlacedBranch extends BranchInfo, BranchPlace {}

/** One execution on a branch, as the log tells it. */
export interface RunInfo {
  readonly runId?: string;
  readonly agentId?: string;
  readonly turnId: string;
  readonly startedAt: number;
  readonly endedAt?: number;
  /** "open" until its turn closes; a run that another one resumed is "interrupted". */
  readonly status: "open" | TurnRecord["status"];
}

/** A loaded branch: a picture of one position; loading again shows what came since. */
export interface Branch extends BranchInfo {
  /** Messages of closed turns. */
  readonly messages: readonly Message[];
  /** The turn that has no end: in flight, or left behind by a crash. */
  readonly uncommittedTurn?: OpenTurn;
  /** Complete turns that wait to be saved, oldest first. */
  readonly stagedTurns: readonly OpenTurn[];
  /** Branch-scoped state. */
  readonly state: JsonObject;
  /** Questions that wait for an answer. */
  readonly interactions: readonly Interaction[];
  readonly turns: readonly TurnRecord[];
  readonly runs: readonly RunInfo[];
  /** What a model sees: every call has exactly one result. */
  transcript(): readonly Message[];
}

export function treeOf(records: readonly BranchRecord[]): BranchTree {
  return new BranchTree(
    records.map(({ branchId: id, parent, header }) => {
      const messageId = (header as RowHeader).fork?.messageId;
      return { id, ...(parent && { parentId: parent.branchId }), ...(messageId && { forkMessageId: messageId }) };
    }),
  );
}

export function describeBranch(record: BranchRecord): BranchInfo {
  const { sessionId, branchId, createdAt, activeAt, seq, parent } = record;
  const { name, description, tags = [], metadata = {}, messages = 0, turn, fork } = record.header as RowHeader;
  return {
    sessionId,
    id: branchId,
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    tags,
    metadata,
    createdAt,
    lastActivity: activeAt,
    seq,
    messageCount: messages,
    ...(turn && { openTurnId: turn }),
    ...(parent && { fork: describeFork(parent, fork) }),
  };
}

/** The ancestors are made when they are looked at: those of a long chain's branches would be more than all else together. */
export function placeBranch(record: BranchRecord, tree: BranchTree): PlacedBranch {
  return {
    ...describeBranch(record),
    get ancestors() {
      return tree.ancestorsOf(record.branchId);
    },
    ...tree.position(record.branchId),
  };
}

/** The branch at its view; the view may grow afterwards, the picture does not. */
export function pictureBranch(info: BranchInfo, view: BranchView): Branch {
  const { messages, turns, state, seq } = view;
  const open = view.open && copyTurn(view.open);
  const { name: _name, description: _description, openTurnId: _turn, ...row } = info;
  const still: BranchView = { ...view, open, staged: view.staged.map(copyTurn), compactions: view.compactions.slice() };
  const counts = { messages: messages.length, turns: turns.length };
  let shown: readonly Message[] | undefined;
  let closed: readonly TurnRecord[] | undefined;
  return {
    ...row,
    ...shownOf(view),
    seq,
    messageCount: counts.messages,
    get messages() {
      shown ??= messages.slice(0, counts.messages);
      return shown;
    },
    get turns() {
      closed ??= turns.slice(0, counts.turns);
      return closed;
    },
    get runs() {
      return runsOf(this.turns, [...still.staged, ...(open ? [open] : [])]);
    },
    ...(open && { uncommittedTurn: open }),
    stagedTurns: still.staged,
    // Whoever holds the branch may write on its state; the view must not hear of it.
    state: structuredClone(state),
    interactions: view.interactions.slice(),
    transcript() {
      return transcript({ ...still, messages: this.messages as Message[] });
    },
  };
}

/** What the row tells of the newest position, told of the view's: the row may be newer. */
function shownOf({ header, open, staged }: BranchView) {
  const { name, description, tags = [], metadata } = header;
  const openTurnId = open?.id ?? staged.at(-1)?.id;
  return {
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    tags: tags.slice(),
    metadata: structuredClone(metadata),
    ...(openTurnId !== undefined && { openTurnId }),
  };
}

function describeFork(parent: NonNullable<BranchRecord["parent"]>, fork: RowHeader["fork"]): Fork {
  return {
    forkedFrom: parent.branchId,
    ...(fork?.messageId && { forkedAtMessageId: fork.messageId }),
    forkedAtMessageIndex: (fork?.messages ?? 0) - 1,
    forkedAtSeq: parent.seq,
  };
}

function runsOf(closed: readonly TurnRecord[], unclosed: readonly OpenTurn[]): RunInfo[] {
  const runs: RunInfo[] = [];
  for (const turn of [...closed, ...unclosed]) {
    const end = "status" in turn ? { status: turn.status, endedAt: turn.endedAt } : { status: "open" as const };
    for (const [i, run] of turn.runs.entries()) {
      const next = turn.runs[i + 1];
      const how = next ? { status: "interrupted" as const, endedAt: next.startedAt } : end;
      runs.push({ ...run, turnId: turn.id, ...how });
    }
  }
  return runs;
}
