// The lines of a branch's events.jsonl. Columns, after the checksum, separated by tabs:
//
//   seq   the fact's sequence number; of the first line, which says how the branch began, the fork point
//   more  how many lines of the same batch follow, then flags: c = the branch's beginning, h = a header patch comes before
//         the data, q = the data is quoted as a JSON string because it has a line feed or half a surrogate pair
//   time  on the last line of a batch: when it was appended
//   id    the fact's id; empty in the first line
//   header patch (only with h), data

import { isWellFormed, type JsonObject } from "../../base/json.ts";
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

export function encodeFact(
  event: NewEvent,
  column: { seq: number; more: number; time: number; header?: JsonObject | undefined },
): string {
  const last = column.more === 0;
  const header = last && column.header ? JSON.stringify(column.header) : undefined;
  const quoted = event.data.includes("\n") || event.data.includes("\r") || !isWellFormed(event.data);
  const flags = (header === undefined ? "" : "h") + (quoted ? "q" : "");
  const data = quoted ? JSON.stringify(event.data) : event.data;
  const start = `${column.seq}\t${column.more}${flags}\t${last ? column.time : ""}\t${event.id}\t`;
  return header === undefined ? start + data : `${start}${header}\t${data}`;
}

export function encodeBeginning(beginning: Beginning, more: number, time: number): string {
  return `${beginning.parent?.seq ?? 0}\t${more}c\t${time}\t\t${JSON.stringify(beginning)}`;
}

/** A line whose checksum is right, taken apart. */
export class FactLine {
  readonly seq: number;
  readonly more: number;
  readonly time: number | undefined;
  readonly id: string;
  readonly beginning: boolean;
  readonly header: string | undefined;
  readonly #line: RawLine;
  readonly #dataAt: number;
  readonly #quoted: boolean;

  private constructor(line: RawLine, columns: Columns) {
    this.#line = line;
    this.seq = columns.seq;
    this.more = columns.more;
    this.time = columns.time;
    this.id = line.bytes.toString("utf8", columns.idAt, columns.idEnd);
    this.beginning = (columns.flags & flag.beginning) !== 0;
    this.header =
      columns.headerEnd > columns.idEnd ? line.bytes.toString("utf8", columns.idEnd + 1, columns.headerEnd) : undefined;
    this.#dataAt = columns.headerEnd + 1;
    this.#quoted = (columns.flags & flag.quoted) !== 0;
  }

  /** Undefined when the columns are not what this version writes. */
  static parse(line: RawLine): FactLine | undefined {
    const columns = findColumns(line);
    return columns && new FactLine(line, columns);
  }

  data(): string {
    const text = this.#line.bytes.toString("utf8", this.#dataAt, this.#line.stop);
    return this.#quoted ? (JSON.parse(text) as string) : text;
  }
}

interface Columns {
  readonly seq: number;
  readonly more: number;
  readonly flags: number;
  readonly time: number | undefined;
  readonly idAt: number;
  readonly idEnd: number;
  /** The end of the header patch, or of the id where there is none. */
  readonly headerEnd: number;
}

const tab = 9;
const zero = 48;
const flag = { beginning: 1, header: 2, quoted: 4 };
const flagOf: (number | undefined)[] = [];
for (const [letter, bit] of Object.entries({ c: flag.beginning, h: flag.header, q: flag.quoted })) {
  flagOf[letter.charCodeAt(0)] = bit;
}

/** Byte by byte: this is done for every line that is read, and a text of the columns would be made only to be taken apart. */
function findColumns({ bytes, start, stop }: RawLine): Columns | undefined {
  const moreAt = digitsEnd(bytes, start) + 1;
  const flagsAt = digitsEnd(bytes, moreAt);
  let flags = 0;
  let timeAt = flagsAt + 1;
  for (; bytes[timeAt - 1] !== tab; timeAt++) {
    const bit = flagOf[bytes[timeAt - 1]!];
    if (bit === undefined) return undefined;
    flags |= bit;
  }
  if (bytes[moreAt - 1] !== tab || moreAt === start + 1 || flagsAt === moreAt) return undefined;
  const idAt = bytes.indexOf(tab, timeAt) + 1;
  const idEnd = bytes.indexOf(tab, idAt);
  if (idAt === 0 || idEnd < 0) return undefined;
  const headerEnd = flags & flag.header ? bytes.indexOf(tab, idEnd + 1) : idEnd;
  if (headerEnd < 0 || headerEnd >= stop) return undefined;
  return {
    seq: numberAt(bytes, start, moreAt - 1),
    more: numberAt(bytes, moreAt, flagsAt),
    flags,
    time: idAt - 1 > timeAt ? timeIn(bytes, timeAt, idAt - 1) : undefined,
    idAt,
    idEnd,
    headerEnd,
  };
}

function digitsEnd(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at]! >= zero && bytes[at]! <= zero + 9) at++;
  return at;
}

function numberAt(bytes: Buffer, from: number, end: number): number {
  let value = 0;
  for (let at = from; at < end; at++) value = value * 10 + bytes[at]! - zero;
  return value;
}

/** Most clocks count whole milliseconds. */
function timeIn(bytes: Buffer, from: number, end: number): number {
  return digitsEnd(bytes, from) === end ? numberAt(bytes, from, end) : Number(bytes.toString("latin1", from, end));
}
