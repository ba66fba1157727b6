// Pictures: how what is stored looks from outside.

import type { BranchRef } from "../log/store.ts";
import { holdBranch } from "../sessions/branches.ts";
import { findHolder } from "../sessions/claims.ts";
import type { Context } from "../sessions/context.ts";
import type { Branch, BranchInfo, Content, RunInfo, Session } from "../sessions/index.ts";
import type { ContentBody, RunBody, SessionBody, StateBody } from "../wire/index.ts";

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
