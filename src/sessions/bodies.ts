// Response bodies: stored data as clients and handles see it.

import { BoughError } from "../base/errors.ts";
import type { Message } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import {
  type BranchBody,
  type BranchSummary,
  type ContentBody,
  type MessagesBody,
  openTaskBody,
  queuedInputBody,
  type RunBody,
  type SessionBody,
  type StateBody,
} from "../wire/index.ts";
import type { Branch, BranchInfo, PlacedBranch, RunInfo } from "./branch.ts";
import { readBranch } from "./branches.ts";
import { findHolder } from "./claims.ts";
import type { Content } from "./content.ts";
import type { Context } from "./context.ts";
import type { Session } from "./session.ts";

export function sessionBody({ id, createdAt, lastActivity, version, metadata }: Session): SessionBody {
  return { id, createdAt, lastActivity, version, metadata };
}

/** A branch, from its row. */
export function branchInfoBody(info: BranchInfo): StateBody["branch"] {
  const { sessionId, id, name, description, tags, metadata, createdAt, lastActivity, seq, messageCount } = info;
  const { openTurnId, asleep, waiting, ended, agentId, firstMessageId, firstWords, reverts } = info;
  const { queued, fork, owner, visibility, usage } = info;
  return {
    sessionId,
    id,
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    tags,
    metadata,
    createdAt,
    lastActivity,
    seq,
    messageCount,
    ...(openTurnId !== undefined && { openTurnId }),
    ...(asleep && { asleep }),
    ...(waiting !== undefined && { waiting }),
    ...(ended && { ended }),
    ...(agentId !== undefined && { agentId }),
    ...(firstMessageId !== undefined && { firstMessageId }),
    ...(firstWords !== undefined && { firstWords }),
    ...(reverts && { reverts }),
    ...(queued !== undefined && { queued }),
    ...(usage && { usage }),
    ...fork,
    ...(owner && { owner }),
    ...(visibility && { visibility }),
  };
}

/** How many ancestors and how many children a description names. */
const mostNamed = 1000;

/** A branch among others: how many children it has, but not which. */
export function branchSummary(branch: PlacedBranch): BranchSummary {
  const { totalForks, siblingIndex, totalSiblings, previousSibling, nextSibling } = branch;
  return {
    ...branchInfoBody(branch),
    totalForks,
    siblingIndex,
    totalSiblings,
    ...(previousSibling !== undefined && { previousSibling }),
    ...(nextSibling !== undefined && { nextSibling }),
  };
}

/** One branch with its place; of many ancestors the nearest are named, of many children the oldest. */
export function branchBody(branch: PlacedBranch): BranchBody {
  const { ancestors, children } = branch;
  return {
    ...branchSummary(branch),
    totalAncestors: ancestors.length,
    ancestors: ancestors.slice(-mostNamed),
    children: children.slice(0, mostNamed),
  };
}

export function contentBody({ id, uri, size, mediaType, name, createdAt, branchId }: Content): ContentBody {
  return { id, uri, size, mediaType, ...(name !== undefined && { name }), createdAt, branchId };
}

export interface Moment {
  readonly branch: Branch;
  readonly active: RunBody | null;
}

/** How often the branch is read again if a run began or ended meanwhile. */
const looks = 5;

/** A consistent view of the branch and its active run: the run belongs to the open turn that is shown. */
export async function momentOf(context: Context, ref: BranchRef): Promise<Moment> {
  for (let look = 1; ; look++) {
    const before = await findHolder(context, ref);
    const branch = await readBranch(context, ref);
    const run = branch.uncommittedTurn?.runs.at(-1);
    if (!branch.uncommittedTurn || !run) return { branch, active: null };
    const claim = before?.runId === run.runId ? before : await findHolder(context, ref);
    if (claim && claim.runId === run.runId) {
      const info = branch.runs.findLast(({ runId }) => runId === run.runId)!;
      return { branch, active: { ...runBody(ref, info)!, status: "active" } };
    }
    const isStill = (await context.store.getBranch(ref))?.seq === branch.seq;
    if (isStill || look === looks) return { branch, active: null };
  }
}

export function runsBody({ branch, active }: Moment): RunBody[] {
  const ref = { sessionId: branch.sessionId, branchId: branch.id };
  const { interactions, uncommittedTurn: turn } = branch;
  const isAsking = turn !== undefined && interactions.some(({ turnId }) => turnId === turn.id);
  return branch.runs.flatMap((info) => {
    const body = info.runId !== undefined && info.runId === active?.runId ? active : runBody(ref, info);
    if (!body) return [];
    return [body.status === "open" && isAsking ? { ...body, status: "parked" as const } : body];
  });
}

/** Turns that were appended without a run are not listed. */
function runBody(ref: BranchRef, { runId, agentId, turnId, startedAt, endedAt, status }: RunInfo): RunBody | undefined {
  if (runId === undefined) return undefined;
  return {
    runId,
    ...(agentId !== undefined && { agentId }),
    ...ref,
    turnId,
    status: status === "committed" ? "completed" : status,
    startedAt,
    ...(endedAt !== undefined && { endedAt }),
  };
}

/** What a branch says, as far as one walks back from a message; from the newest on without one. */
export function messagesBefore(
  ref: BranchRef,
  branch: Pick<Branch, "messages" | "uncommittedTurn">,
  before: string | undefined,
): readonly Message[] {
  const all = [...branch.messages, ...(branch.uncommittedTurn?.messages ?? [])];
  if (before === undefined) return all;
  const at = all.findLastIndex(({ id }) => id === before);
  if (at >= 0) return all.slice(0, at);
  throw new BoughError("message_not_on_branch", `Branch "${ref.branchId}" has no message "${before}" any more.`, {
    data: { ...ref, messageId: before },
  });
}

/** The newest `last` of these messages, and the one before which the rest is. */
export function messagesBody(messages: readonly Message[], last: number): MessagesBody {
  const at = Math.max(0, messages.length - last);
  const page = messages.slice(at);
  return { messages: page, firstIndex: at, ...(at > 0 && { before: page[0]!.id }) };
}

/** The messages of closed turns before one of them; all of them without one. */
export function closedBefore(branch: Branch, before: string | undefined): readonly Message[] {
  const ref = { sessionId: branch.sessionId, branchId: branch.id };
  return before === undefined ? branch.messages : messagesBefore(ref, { messages: branch.messages }, before);
}

/** How far an execution is, and whether it sleeps. */
export function progressOf({
  steps,
  asleep,
}: NonNullable<Branch["uncommittedTurn"]>): Pick<NonNullable<StateBody["openTurn"]>, "steps" | "asleep"> {
  return { ...(steps && { steps }), ...(asleep && { asleep }) };
}

/** The branch at one moment, with the newest `last` messages of its closed turns. */
export function stateBody({ branch, active }: Moment, last: number, upTo?: string): StateBody {
  const { seq, uncommittedTurn: turn, interactions, queue, tasks } = branch;
  const { messages, before, firstIndex } = messagesBody(closedBefore(branch, upTo), last);
  return {
    seq,
    branch: branchInfoBody(branch),
    messages,
    firstIndex,
    ...(before !== undefined && { before }),
    ...(turn && { openTurn: { id: turn.id, startedAt: turn.startedAt, messages: turn.messages, ...progressOf(turn) } }),
    interactions,
    queue: queue.map(queuedInputBody),
    tasks: tasks.map(openTaskBody),
    activeRun: active,
  };
}
