// Which agent a branch is opened with: the one that was chosen here, else that of its newest turn, else the session's, else the first.

import { useCallback, useEffect, useState } from "react";
import type { Client } from "../data/bough.ts";
import { readBranchRow } from "../data/branch-row.ts";
import { useClient } from "../data/session.tsx";
import type { Session } from "../sessions/sessions.ts";

export type Agent = Awaited<ReturnType<Client["listAgents"]>>[number];

export function useAgent(
  sessionId: string | undefined,
  branchId: string,
  session: Session | undefined,
  agents: readonly Agent[] | undefined,
): readonly [string | undefined, (agentId: string) => void] {
  const client = useClient();
  const key = `${sessionId}/${branchId}`;
  const [chosen, setChosen] = useState<Readonly<Record<string, string>>>({});
  const [newest, setNewest] = useState<Readonly<Record<string, string | undefined>>>({});
  const isKnown = key in newest;
  const isChoice = agents !== undefined && agents.length !== 1;
  useEffect(() => {
    if (sessionId === undefined || isKnown || !isChoice) return;
    const learn = (agentId: string | undefined) => setNewest((known) => ({ ...known, [key]: agentId }));
    readBranchRow(client, sessionId, branchId).then(
      (branch) => learn(branch.agentId),
      () => learn(undefined),
    );
  }, [client, sessionId, branchId, key, isKnown, isChoice]);
  const choose = useCallback((agentId: string) => setChosen((known) => ({ ...known, [key]: agentId })), [key]);
  if (sessionId === undefined || !agents || (isChoice && !isKnown)) return [undefined, choose];
  const { agentId: own } = session?.metadata ?? {};
  // A server that makes agents by their ids may list none.
  const isThere = (id: unknown): id is string =>
    typeof id === "string" && (agents.length === 0 || agents.some((agent) => agent.id === id));
  const agentId = [chosen[key], newest[key], own].find(isThere) ?? agents[0]?.id;
  return [agentId, choose];
}
