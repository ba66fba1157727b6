import { useEffect, useMemo, useSyncExternalStore } from "react";
import { type BoughEvent, type BranchUse, type Client, useBranch } from "./bough.ts";
import { BranchLog } from "./branch-log.ts";
import { useFeed } from "./feed.tsx";

export interface LoggedBranch {
  readonly use: BranchUse;
  readonly log: BranchLog;
  /** Grows with the log. */
  readonly version: number;
}

/** A branch as it is now, and its whole log behind it. */
export function useLoggedBranch(
  client: Client,
  scope: { agentId: string; sessionId: string; branchId: string },
): LoggedBranch {
  const { agentId, sessionId, branchId } = scope;
  const log = useMemo(
    () => new BranchLog(client.branch({ agentId, sessionId, branchId })),
    [client, agentId, sessionId, branchId],
  );
  const onEvent = (event: BoughEvent) => log.hear(event);
  const use = useBranch(client, scope, { last: 200, onEvent });
  const version = useSyncExternalStore(log.subscribe, log.getVersion);
  // The feed of the page tells of other branches: one of the branch's own would cost a connection more.
  useFeed(
    (change) => change.sessionId === sessionId && !("visibility" in change && change.visibility === "hidden"),
    () => void use.refresh().catch(() => {}),
  );
  const { seq } = use;
  useEffect(() => log.reach(seq), [log, seq]);
  return { use, log, version };
}
