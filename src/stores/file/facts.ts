// The lines of a branch's events.jsonl. Columns, after the checksum, separated by tabs:
//
//   seq   the fact's sequence number; of the first line, which says how the branch began, the fork point
//   more  how many lines of the same batch follow, then flags: c = the branch's beginning, h = a header patch comes before
//         the data, q = the data is quoted as a JSON string because it has a line feed or half a surrogate pair
//   time  on the last line of a batch: when it was appended
//   id    the fact's id; empty in the first line
//   header patch (only with h), data

import type { JsonObject } from "../../base/json.ts";
import type { NewEvent } from "../../log/index.ts";
import type { RawLine } from "./lines.ts";

/** How a branch began; the first line of its log. */
export interface Beginning {
  readonly sessionId: string;
  readonly branchId: string;
  /** Grows with every branch created in the store, so that branches can be listed in that order. */
  readonly order: number;
  readonly parent?: { readonly branchId: string; readonly seq: number };
  readonly header: JsonObject;
}

export interface FactLine {
  readonly seq: number;
  readonly more: number;
  readonly id: string;
  readonly time: number | undefined;
  readonly beginning: boolean;
  readonly header: string | undefined;
  data(): string;
}

const needsQuotes = /[\n\r]|\p{Surrogate}/u;

export function encodeFact(
  event: NewEvent,
  column: { seq: number; more: number; time: number; header?: JsonObject | undefined },
): string {
  const last = column.more === 0;
  const header = last && column.header ? JSON.stringify(column.header) : undefined;
  const quoted = needsQuotes.test(event.data);
  const flags = (header === undefined ? "" : "h") + (quoted ? "q" : "");
  const data = quoted ? JSON.stringify(event.data) : event.data;
  const start = `${column.seq}\t${column.more}${flags}\t${last ? column.time : ""}\t${event.id}\t`;
  return header === undefined ? start + data : `${start}${header}\t${data}`;
}

export function encodeBeginning(beginning: Beginning, more: number, time: number): string {
  return `${beginning.parent?.seq ?? 0}\t${more}c\t${time}\t\t${JSON.stringify(beginning)}`;
}

const tab = 9;

/** The columns of a line whose checksum is right; undefined when they are not what this version writes. */
export function parseFact(line: RawLine): FactLine | undefined {
  const { body } = line;
  const ends: number[] = [];
  for (let i = 0, from = 0; i < 4; i++) {
    const at = body.indexOf(tab, from);
    if (at < 0) return undefined;
    ends.push(at);
    from = at + 1;
  }
  const [a, b, c, d] = ends as [number, number, number, number];
  const more = /^(\d+)([chq]*)$/.exec(body.toString("latin1", a + 1, b));
  if (!more) return undefined;
  const flags = more[2]!;
  const headerEnd = flags.includes("h") ? body.indexOf(tab, d + 1) : d;
  if (headerEnd < 0) return undefined;
  return {
    seq: Number(body.toString("latin1", 0, a)),
    more: Number(more[1]),
    time: c > b + 1 ? Number(body.toString("latin1", b + 1, c)) : undefined,
    id: body.toString("utf8", c + 1, d),
    beginning: flags.includes("c"),
    header: headerEnd > d ? body.toString("utf8", d + 1, headerEnd) : undefined,
    data() {
      const text = body.toString("utf8", headerEnd + 1, body.length);
      return flags.includes("q") ? (JSON.parse(text) as string) : text;
    },
  };
}
