// Looking after the schema: are its logs whole, are there facts without a branch and bytes that nothing refers to. Everything
// else that could be left behind the database itself does not allow (schema.ts, PostgresSchema-4), and space is given back by its own
// vacuum.

import type { MaintenanceReport, StoreProblem } from "../../log/index.ts";
import type { Database } from "./database.ts";
import { isOutdated } from "./faults.ts";
import { decodeText } from "./text.ts";

export async function maintain(database: Database): Promise<MaintenanceReport> {
  const problems = [
    ...(await gaps(database)),
    ...(await incompleteContents(database)),
    ...(await removed(database, "facts without a branch", orphanFactsSql)),
    ...(await removed(database, "unreferenced contents", unusedContentsSql)),
  ];
  const [counts] = await database.again<Record<"sessions" | "branches" | "events", string>>(
    `SELECT (SELECT count(*) FROM bough.sessions) AS sessions, (SELECT count(*) FROM bough.branches) AS branches,
      (SELECT count(*) FROM bough.events) AS events`,
  );
  const { sessions, branches, events } = counts!;
  return { sessions: Number(sessions), branches: Number(branches), events: Number(events), problems };
}

/** Branches whose facts are not base + 1 … head, and those whose parent is shorter than the fork point. */
async function gaps(database: Database): Promise<StoreProblem[]> {
  const rows = await database.again<{
    session_id: string;
    branch_id: string;
    base: number;
    head: number;
    facts: string;
  }>(
    `SELECT s.id AS session_id, b.id AS branch_id, b.base, b.head, own.facts
      FROM bough.branches b CROSS JOIN LATERAL (
        SELECT count(*) AS facts, min(seq) AS low, max(seq) AS high FROM bough.events WHERE branch_no = b.no
      ) own JOIN bough.sessions s ON s.no = b.session_no LEFT JOIN bough.branches p ON p.no = b.parent
      WHERE own.facts <> b.head - b.base OR own.low <> b.base + 1 OR own.high <> b.head OR p.head < b.base`,
  );
  return rows.map((row) => ({
    code: "corrupt",
    detail: `Has ${row.facts} facts of its own instead of ${row.base + 1} to ${row.head}, or its parent lacks the fork point.`,
    sessionId: decodeText(row.session_id),
    branchId: decodeText(row.branch_id),
  }));
}

/** Content whose chunks are not all there. */
async function incompleteContents(database: Database): Promise<StoreProblem[]> {
  const rows = await database.again<{ session_id: string; id: string }>(
    `SELECT s.id AS session_id, c.id FROM bough.contents c JOIN bough.sessions s ON s.no = c.session_no
      WHERE c.place IS NULL AND c.size <> (SELECT coalesce(sum(length(k.bytes)), 0) FROM bough.chunks k WHERE k.no = c.no)`,
  );
  return rows.map((row) => ({
    code: "corrupt",
    detail: `The bytes of content ${decodeText(row.id)} are missing or incomplete.`,
    sessionId: decodeText(row.session_id),
  }));
}

/** Left by a process that died between the two statements of a deletion that had to wait for an append. */
const orphanFactsSql = `DELETE FROM bough.events e WHERE NOT EXISTS (SELECT 1 FROM bough.branches b WHERE b.no = e.branch_no)
  RETURNING 1`;

/** Left by two deletions at the same time, each of which took the other's reference for one that stays. */
const unusedContentsSql = `DELETE FROM bough.contents c
  WHERE NOT EXISTS (SELECT 1 FROM bough.content_refs r WHERE r.content_no = c.no) RETURNING 1`;

async function removed(database: Database, what: string, sql: string): Promise<StoreProblem[]> {
  try {
    const { length } = await database.again(sql);
    return length > 0 ? [{ code: "orphan", detail: `Removed ${length} ${what}.` }] : [];
  } catch (error) {
    // One of them is referenced again; they are left to the next maintain().
    if (isOutdated(error)) return [];
    throw error;
  }
}
