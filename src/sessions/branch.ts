// How callers see a branch: its header and its place in the tree, and once loaded its messages and state.

import type { JsonObject } from "../base/json.ts";
import type { Message, OpenTask, Ownership, QueuedInput } from "../events/index.ts";
import type { BranchRecord } from "../log/store.ts";
import { openTurnIn, type RowHeader, shownTurns } from "../projection/header.ts";
import {
  type BranchPlace,
  BranchTree,
  type BranchView,
  type Interaction,
  type OpenTurn,
  type Revert,
  type TurnRecord,
  transcript,
} from "../projection/index.ts";
import { countLedger } from "../projection/overlay.ts";
import { shownNodes } from "../projection/tree.ts";
import { copyTurn } from "../projection/view.ts";
import { isHidden } from "./ownership.ts";

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

/** A branch without its messages, as listings show it. */
export interface BranchInfo extends Ownership {
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
  /** The turn that is not closed, if there is one: active, interrupted, or staged. */
  readonly openTurnId?: string;
  /** Whether that turn sleeps; absent when it does not. */
  readonly asleep?: true;
  /** How many questions wait for an answer; absent when none does. */
  readonly waiting?: number;
  /** How the newest closed turn ended, unless it was committed. */
  readonly ended?: "interrupted" | "failed";
  /** The agent of the newest turn. */
  readonly agentId?: string;
  /** The first message of its own, and how its text begins. */
  readonly firstMessageId?: string;
  readonly firstWords?: string;
  /** Its newest reverts, oldest first. */
  readonly reverts?: readonly Revert[];
  /** Tokens of the branch's own closed turns, without those of its forks and children; absent when there were none. */
  readonly usage?: JsonObject;
  /** How many inputs wait for a turn; absent when none does. */
  readonly queued?: number;
  readonly fork?: Fork;
}

/** A branch with its place among the others. */
export interface PlacedBranch extends BranchInfo, BranchPlace {}

/** One run on a branch, as the log records it. */
export interface RunInfo {
  readonly runId?: string;
  readonly agentId?: string;
  readonly turnId: string;
  readonly startedAt: number;
  readonly endedAt?: number;
  /** "open" until its turn closes; a run whose turn another run resumed is "interrupted". */
  readonly status: "open" | TurnRecord["status"];
}

/** A loaded branch: a snapshot at one position. Load it again to see newer facts. */
export interface Branch extends BranchInfo {
  /** Messages of closed turns. */
  readonly messages: readonly Message[];
  /** The open turn: active, or interrupted by a crash. */
  readonly uncommittedTurn?: OpenTurn;
  /** Staged turns (complete, not saved yet), oldest first. */
  readonly stagedTurns: readonly OpenTurn[];
  /** Branch-scoped state. */
  readonly state: JsonObject;
  /** Open questions. */
  readonly interactions: readonly Interaction[];
  /** Inputs that wait for a turn, oldest first. */
  readonly queue: readonly QueuedInput[];
  /** Background tasks that have not ended, oldest first. */
  readonly tasks: readonly OpenTask[];
  readonly turns: readonly TurnRecord[];
  readonly runs: readonly RunInfo[];
  /** The messages as a model sees them: every call has exactly one result. */
  transcript(): readonly Message[];
}

/** Which branches to include: those that are shown, or hidden ones too. */
export type Visibility = "shown" | "all";

export function treeOf(records: readonly BranchRecord[], visibility: Visibility): BranchTree {
  const nodes = records.map(({ branchId: id, parent, header }) => {
    const messageId = (header as RowHeader).fork?.messageId;
    return {
      id,
      ...(parent && { parentId: parent.branchId }),
      ...(messageId && { forkMessageId: messageId }),
      ...(isHidden({ header }) && { isHidden: true }),
    };
  });
  return new BranchTree(visibility === "all" ? nodes : shownNodes(nodes));
}

export function describeBranch(record: BranchRecord): BranchInfo {
  const { sessionId, branchId, createdAt, activeAt, seq, parent } = record;
  const { name, description, tags = [], metadata = {}, messages = 0, fork } = record.header as RowHeader;
  const turn = openTurnIn(record.header as RowHeader);
  const { owner, visibility, usage, queued, asleep, asks, ended, agent, first, reverts } = record.header as RowHeader;
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
    ...(asleep && { asleep: true as const }),
    ...(asks && asks.length > 0 && { waiting: asks.length }),
    ...(ended && { ended }),
    ...(agent !== undefined && { agentId: agent }),
    ...(first && { firstMessageId: first.id, firstWords: first.words }),
    ...(reverts && { reverts }),
    ...(queued && { queued }),
    ...(parent && { fork: describeFork(parent, fork) }),
    ...(usage && { usage }),
    ...(owner && { owner }),
    ...(visibility && { visibility }),
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
  const { shown, window, turns, state, seq } = view;
  const open = view.open && copyTurn(view.open);
  const { name: _name, description: _description, openTurnId: _turn, usage: _usage, queued: _queued, ...known } = info;
  const { asleep: _asleep, waiting: _waiting, ended: _ended, agentId: _agent, reverts: _reverts, ...placed } = known;
  const { firstMessageId: _first, firstWords: _words, ...row } = placed;
  const staged = view.staged.map(copyTurn);
  // The view's own arrays grow on; what is not closed is seen from where they end now.
  const unclosed: BranchView = { ...view, messages: [], skipped: countLedger(view), open, staged };
  const counts = { messages: shown!.length, window: window.length, turns: turns.length };
  let messages: readonly Message[] | undefined;
  let closed: readonly TurnRecord[] | undefined;
  return {
    ...row,
    ...shownOf(view),
    ...ofTurns(view),
    seq,
    messageCount: counts.messages,
    get messages() {
      messages ??= shown!.slice(0, counts.messages);
      return messages;
    },
    get turns() {
      closed ??= turns.slice(0, counts.turns);
      return closed;
    },
    get runs() {
      return runsOf(this.turns, [...staged, ...(open ? [open] : [])]);
    },
    ...(open && { uncommittedTurn: open }),
    stagedTurns: staged,
    // The caller may change the state object; the view must not change with it.
    state: structuredClone(state),
    interactions: view.interactions.slice(),
    queue: view.queue,
    tasks: view.tasks,
    transcript() {
      return transcript({ ...unclosed, window: window.slice(0, counts.window) });
    },
  };
}

/** What the row tells of the newest position, told of the view's: the row may be newer. */
function shownOf({ header, open, staged, usage, queue }: BranchView) {
  const { name, description, tags = [], metadata } = header;
  const openTurnId = open?.id ?? staged.at(-1)?.id;
  return {
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    tags: tags.slice(),
    metadata: structuredClone(metadata),
    ...(Object.keys(usage).length > 0 && { usage: { ...usage } }),
    ...(openTurnId !== undefined && { openTurnId }),
    ...(open?.asleep && { asleep: true as const }),
    ...(queue.length > 0 && { queued: queue.length }),
  };
}

/** What is told of its turns and messages. */
function ofTurns(view: BranchView) {
  const { interactions, reverts } = view;
  const { ended, agent, first } = shownTurns(view);
  return {
    ...(interactions.length > 0 && { waiting: interactions.length }),
    ...(ended && { ended }),
    ...(agent !== undefined && { agentId: agent }),
    ...(first && { firstMessageId: first.id, firstWords: first.words }),
    ...(reverts.length > 0 && { reverts }),
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
