// What the list shows of a session beside its metadata: how its main branch begins, and how it is. Asked for the rows on the screen,
// again when something happened to them.

import { useEffect, useState } from "react";
import type { Client } from "../data/bough.ts";
import { type BranchRow, readBranchRow } from "../data/branch-row.ts";
import { useClient } from "../data/session.tsx";
import type { Session } from "./sessions.ts";

const mostKept = 500;

interface Known {
  readonly lastActivity: number;
  readonly main: Promise<BranchRow | undefined>;
}

const known = new Map<string, Known>();

export function useSessionFacts({ id, lastActivity }: Pick<Session, "id" | "lastActivity">): BranchRow | undefined {
  const client = useClient();
  const [main, setMain] = useState<BranchRow>();
  useEffect(() => {
    let isStale = false;
    void ask(client, id, lastActivity).then((found) => isStale || setMain(found));
    return () => {
      isStale = true;
    };
  }, [client, id, lastActivity]);
  return main;
}

function ask(client: Client, id: string, lastActivity: number): Promise<BranchRow | undefined> {
  const found = known.get(id);
  if (found?.lastActivity === lastActivity) return found.main;
  const main = readBranchRow(client, id, "main").catch(() => undefined);
  known.delete(id);
  known.set(id, { lastActivity, main });
  if (known.size > mostKept) known.delete(known.keys().next().value!);
  return main;
}
