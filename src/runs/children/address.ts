// The address of a child follows from the call that wants it, so a call that runs again finds its child wherever it died, and
// no fact on the parent is needed for that.

import { sha256Hex } from "../../base/sha256.ts";
import type { BranchRef } from "../../log/store.ts";
import type { SpawnOptions } from "../../tools/index.ts";

/** The call that wants a child. */
export interface ChildCallId extends BranchRef {
  /** The first fact of the parent's branch: a fork of it has children of its own. */
  readonly born: string;
  readonly turnId: string;
  readonly callId: string;
  readonly toolName: string;
  readonly key: string;
}

/** Where a child works. */
export interface ChildAddress {
  readonly ref: BranchRef;
  readonly turnId: string;
  /** The id of the first message of its input. */
  readonly inputId: string;
  /** The id of its task, if it works in the background. */
  readonly taskId: string;
  /** Whether the branch is made for the child. */
  readonly isOwn: boolean;
}

/** The child of a call, at one of its tries. */
export function addressOf(
  call: ChildCallId,
  name: string,
  { session = "parent", branch = "fork", memory = "call" }: SpawnOptions,
  attempt: number,
): ChildAddress {
  const { sessionId, branchId, born, turnId, callId, toolName, key } = call;
  const hash = digest([sessionId, branchId, born, turnId, callId, key, attempt]);
  const place = memory === "branch" ? digest([sessionId, branchId, born, toolName, key]) : hash;
  const own = `sub-${slugOf(name)}-${place}`;
  const inSession = session === "parent" ? sessionId : session === "new" ? own : session.shared;
  const isOwn = typeof branch === "string";
  const ref = { sessionId: inSession, branchId: isOwn ? own : branch.existing };
  return { ref, turnId: `${hash}.turn`, inputId: `in.${hash}`, taskId: `task-${hash}`, isOwn };
}

function digest(parts: readonly unknown[]): string {
  return sha256Hex(JSON.stringify(parts)).slice(0, 16);
}

/** A name in a form that ids, files and URLs take. */
function slugOf(name: string): string {
  const slug = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return slug.replaceAll(/^-+|-+$/g, "").slice(0, 32) || "agent";
}
