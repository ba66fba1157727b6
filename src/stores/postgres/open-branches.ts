import { decodeOpenCursor, defaultPageSize, type OpenPage, type OpenQuery, openPage } from "../../log/index.ts";
import { type BranchRow, columns, parentSql, toRecord } from "./branches.ts";
import type { Database } from "./database.ts";
import { decodeText, encodeText } from "./text.ts";

/**
 * The page first, from the index alone, then what belongs to it: a plan made while the tables were empty would begin with
 * them. Ids that are compared by their bytes begin alike between a text and the same text with the last character behind it.
 */
const listSql = `SELECT b.open_in, ${columns} FROM (
    SELECT no FROM bough.branches
    WHERE (open_in, id) > ($1, $2) AND open_in >= $3 AND open_in <= $4 ORDER BY open_in, id LIMIT $5
  ) page CROSS JOIN LATERAL (SELECT * FROM bough.branches WHERE no = page.no OFFSET 0) b ${parentSql}
  ORDER BY b.open_in, b.id`;

const lastCharacter = String.fromCodePoint(0x10ffff);

export async function listOpen(database: Database, query: OpenQuery): Promise<OpenPage> {
  const { sessionId, prefix = "", limit = defaultPageSize, cursor } = query;
  const after = cursor === undefined ? { sessionId: "", branchId: "" } : decodeOpenCursor(cursor);
  const rows = await database.again<BranchRow & { open_in: string }>(
    listSql,
    encodeText(after.sessionId),
    encodeText(after.branchId),
    encodeText(sessionId ?? prefix),
    sessionId === undefined ? `${encodeText(prefix)}${lastCharacter}` : encodeText(sessionId),
    Math.min(limit + 1, 0x7fffffff),
  );
  const found = rows.map((row) => toRecord(decodeText(row.open_in), row));
  return openPage(found, limit);
}
