// Pictures: how what is stored looks from outside.

import { BoughError } from "../base/errors.ts";
import type { BranchRef } from "../log/store.ts";
import type { BranchPlace } from "../projection/index.ts";
import { holdBranch } from "../sessions/branches.ts";
import { findHolder } from "../sessions/claims.ts";
import type { Context } from "../sessions/context.ts";
import type { Branch, BranchInfo, Content, PlacedBranch, RunInfo, Session } from "../sessions/index.ts";
import type { BranchBody, ContentBody, RunBody, SessionBody, StateBody, TreeBody } from "../wire/index.ts";

export function sessionBody({ id, createdAt, lastActivity, version, metadata }: Session): SessionBody {
  return { id, createdAt, lastActivity, version, metadata };
}

/** What the row tells of a branch. */
export function branchInfoBody(info: BranchInfo): StateBody["branch"] {
  const { sessionId, id, name, description, tags, metadata, createdAt, lastActivity, seq, messageCount } = info;
  const { openTurnId, fork } = info;
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
    ...fork,
  };
}

export function branchBody(branch: PlacedBranch): BranchBody {
  return { ...branchInfoBody(branch), ...placeBody(branch) };
}

function placeBody(place: BranchPlace): Omit<BranchPlace, "siblings"> {
  const { ancestors, children, totalForks, siblingIndex, totalSiblings, previousSibling, nextSibling } = place;
  return {
    ancestors,
    children,
    totalForks,
    siblingIndex,
    totalSiblings,
    ...(previousSibling !== undefined && { previousSibling }),
    ...(nextSibling !== undefined && { nextSibling }),
  };
}

/** How deep a tree may be for everybody to read it: JSON deeper than a stack can't be written. */
const deepestTree = 500;

/** Roots first, each with its forks. */
export function treeBody(branches: readonly PlacedBranch[]): TreeBody[] {
  if (branches.some(({ ancestors }) => ancestors.length >= deepestTree)) {
    throw new BoughError(
      "limit_exceeded",
      `More than ${deepestTree} branches are forks of each other; list them instead.`,
      {
        data: { limit: deepestTree },
      },
    );
  }
  const nodes = new Map(branches.map((branch) => [branch.id, { ...branchBody(branch), forks: [] as TreeBody[] }]));
  const roots: TreeBody[] = [];
  for (const branch of branches) {
    const parent = branch.fork && nodes.get(branch.fork.forkedFrom);
    (parent?.forks ?? roots).push(nodes.get(branch.id)!);
  }
  return roots;
}

export function contentBody({ id, uri, size, mediaType, name, createdAt, branchId }: Content): ContentBody {
  return { id, uri, size, mediaType, ...(name !== undefined && { name }), createdAt, branchId };
}

export interface Moment {
  readonly branch: Branch;
  readonly active: RunBody | null;
}

/** How often the branch is looked at again when a run began or ended meanwhile. */
const looks = 5;

/** The branch and its active run at one moment: the run is the one that works on the turn the picture shows. */
export async function momentOf(context: Context, ref: BranchRef): Promise<Moment> {
  for (let look = 1; ; look++) {
    const before = await findHolder(context, ref);
    const branch = await holdBranch(context, ref);
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

/** Turns appended without a run have none to show. */
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

export function stateBody({ branch, active }: Moment, last: number): StateBody {
  const { seq, messages, uncommittedTurn: turn, interactions } = branch;
  return {
    seq,
    branch: branchInfoBody(branch),
    messages: messages.slice(-last),
    ...(turn && { openTurn: { id: turn.id, startedAt: turn.startedAt, messages: turn.messages } }),
    interactions,
    activeRun: active,
  };
}
