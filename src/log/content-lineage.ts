import type { ContentRecord } from "./content.ts";
import { compareText } from "./cursor.ts";

/** A branch of a lineage, as far as content is concerned. */
interface BranchRows<Row> {
  /** Where it was forked from its parent; undefined for a root. */
  readonly base: number | undefined;
  readonly rows: Iterable<Row>;
}

type Placed = Pick<ContentRecord, "id" | "seq">;

/** The rows that the first branch of a lineage sees (Content-4), each id once: the nearest branch's row counts. */
export function* seenRows<Row extends Placed>(lineage: Iterable<BranchRows<Row>>): Generator<Row, void> {
  const seen = new Set<string>();
  let upTo = Number.POSITIVE_INFINITY;
  for (const { base, rows } of lineage) {
    for (const row of rows) {
      if (row.seq > upTo || seen.has(row.id)) continue;
      seen.add(row.id);
      yield row;
    }
    upTo = Math.min(upTo, base ?? 0);
  }
}

/** In the order of listings: oldest first, ties by id. */
export function inContentOrder(rows: Iterable<ContentRecord>): ContentRecord[] {
  return [...rows].sort((a, b) => a.createdAt - b.createdAt || compareText(a.id, b.id));
}
