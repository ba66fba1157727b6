// Making a child's branch: hidden, owned by the turn that wants it, and stamped with the call.

import { BoughError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import type { ChildEnd } from "../../events/drafts.ts";
import type { BranchRef } from "../../log/store.ts";
import type { BranchView } from "../../projection/index.ts";
import { createBranch } from "../../sessions/branches.ts";
import type { Context } from "../../sessions/context.ts";
import type { ForkCompaction } from "../../sessions/fork.ts";
import { ensureSession } from "../../sessions/session.ts";
import type { SpawnOptions } from "../../tools/index.ts";
import type { ChildAddress, ChildCallId } from "./address.ts";
import { isGone } from "./look.ts";
import { resolvePolicy } from "./policy.ts";
import type { ChildAgent, ChildHost } from "./port.ts";

/** What a child's branch is made of. */
export interface ChildOrigin {
  readonly context: Context;
  readonly host: ChildHost;
  readonly agent: ChildAgent;
  readonly call: ChildCallId;
  /** The message that asked for the call. */
  readonly messageId: string;
  readonly depth: number;
  readonly options: SpawnOptions;
  /** Whether the call waits for the child. */
  readonly awaited: boolean;
  view(): Promise<BranchView>;
}

/** Makes the branch, and its session where it has one of its own. False when another process was faster. */
export async function createChild(origin: ChildOrigin, { ref, turnId }: ChildAddress): Promise<boolean> {
  const { context, call, options } = origin;
  const { session, branch, memory } = resolvePolicy(options);
  const metadata = { ...stampsOf(origin, turnId), ...options.metadata, awaited: origin.awaited };
  if (session !== "parent") await ensureSession(context, ref.sessionId, session === "new" ? { metadata } : {});
  // A branch that is named is not made: its absence is an error.
  if (typeof branch !== "string") throw missingBranch(ref);
  const { sessionId, branchId, callId } = call;
  const owner = { sessionId, branchId, turnId: call.turnId, callId, kind: "subagent" };
  const details = { name: origin.agent.name, metadata, owner, visibility: "hidden" as const };
  try {
    const earlier = memory === "branch" ? await inheritedChild(origin) : undefined;
    if (earlier && (await forkEarlier(origin, earlier, { ...details, newBranchId: ref.branchId }))) return true;
    if (branch === "fork") await forkParent(origin, ref, details);
    else await createBranch(context, ref.sessionId, { branchId: ref.branchId, ...details });
    return true;
  } catch (error) {
    if (!BoughError.is(error, "branch_exists")) throw error;
    return false;
  }
}

/**
 * The child that the parent's branch has from the branch it was forked from, as it was then: the newest result of the tool that
 * the fork shares. What the other path asked later is unknown here.
 */
async function inheritedChild({ context, call, ...origin }: ChildOrigin): Promise<ChildEnd | undefined> {
  const { fork } = await origin.view();
  if (!fork || call.key !== "") return undefined;
  for (let before = fork.from.seq + 1; before > 1; ) {
    const { facts } = await context.journal.read(call, { before, reverse: true, limit: 500 });
    for (const fact of facts) {
      if (fact.type === "tool.returned" && fact.toolName === call.toolName && fact.child) return fact.child;
    }
    before = facts.at(-1)?.seq ?? 0;
  }
  return undefined;
}

/** False when the earlier child is gone. */
async function forkEarlier({ context, host }: ChildOrigin, earlier: ChildEnd, details: object): Promise<boolean> {
  const { sessionId, branchId, seq } = earlier;
  try {
    await host.fork(context, { sessionId, branchId }, { ...details, fromSeq: seq });
    return true;
  } catch (error) {
    if (!isGone(error)) throw error;
    return false;
  }
}

async function forkParent(origin: ChildOrigin, ref: BranchRef, details: object): Promise<void> {
  const { context, host, call, options } = origin;
  const { sessionId, branchId } = call;
  const compaction = options.compaction as ForkCompaction | undefined;
  const request = { ...details, newBranchId: ref.branchId, ...(await forkPoint(origin)) };
  await host.fork(context, { sessionId, branchId }, { ...request, ...(compaction !== undefined && { compaction }) });
}

/** The last complete message before the one that asked: a call without its result is never copied. */
async function forkPoint(origin: ChildOrigin): Promise<{ from: string } | { fromMessageIndex: 0 }> {
  const { context, call, messageId } = origin;
  const view = await origin.view();
  const unclosed = [...view.staged, ...(view.open ? [view.open] : [])].flatMap(({ messages }) => messages);
  const asked = unclosed.findIndex(({ id }) => id === messageId);
  const before = asked < 0 ? unclosed.at(-1) : unclosed[asked - 1];
  // A turn that goes on from a fork or a revert has no input of its own.
  const closed = before || view.skipped === 0 ? view : (await context.views.load(call)).view;
  const last = before ?? closed.messages.at(-1);
  return last ? { from: last.id } : { fromMessageIndex: 0 };
}

/** What lists and screens show of where a child comes from. */
function stampsOf({ agent, call, depth, options }: ChildOrigin, runId: string): JsonObject {
  const { session, branch } = resolvePolicy(options);
  return {
    kind: "subagent",
    createdBy: "subagent",
    visibility: "hidden",
    subAgentName: agent.name,
    subAgentAgentId: agent.id,
    subAgentSourceKind: agent.source === "stored" ? "StoredAgent" : "InlineConfig",
    subAgentRunId: runId,
    parentSessionId: call.sessionId,
    parentBranchId: call.branchId,
    parentTurnId: call.turnId,
    parentToolCallId: call.callId,
    sessionPolicy: typeof session === "string" ? session : "shared",
    branchPolicy: typeof branch === "string" ? branch : "existing",
    depth,
  };
}

function missingBranch(ref: BranchRef): BoughError {
  const sentence = `Branch "${ref.branchId}" of session "${ref.sessionId}" does not exist, so no child can work on it.`;
  return new BoughError("branch_not_found", sentence, { data: { ...ref } });
}
