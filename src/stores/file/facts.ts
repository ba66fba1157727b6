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
import type { Disk } from "./disk.ts";
import { RawLines } from "./lines.ts";

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

/** The number in the first line of a log; undefined when that says no beginning. */
export function forkPointIn(disk: Disk, path: string, size: number): number | undefined {
  const line = new RawLines(disk, path, { offset: 0, crc: 0 }, size);
  if (!line.next() || !line.isRight) return undefined;
  const [, base] = /^(\d+)\t\d+c\t/.exec(line.text.slice(line.start, line.stop)) ?? [];
  return base === undefined ? undefined : Number(base);
}

const flag = { beginning: 1, header: 2, quoted: 4 };
const flagOf: (number | undefined)[] = [];
for (const [letter, bit] of Object.entries({ c: flag.beginning, h: flag.header, q: flag.quoted })) {
  flagOf[letter.charCodeAt(0)] = bit;
}

/** A place in a log: the line with this number starts here, after a line with this checksum. */
export interface LogPoint {
  readonly seq: number;
  readonly offset: number;
  readonly crc: number;
}

/** A line that is not what was written there. */
export class Flaw extends Error {
  readonly seq: number;
  readonly offset: number;

  constructor(why: string, at: LogPoint) {
    super(why);
    this.seq = at.seq;
    this.offset = at.offset;
  }
}

/** Goes over the lines of a log from a point on and verifies each; throws a Flaw. Its fields are about the line it stands on. */
export class FactLines {
  seq: number;
  more = 0;
  readonly #line: RawLines;
  readonly #end: number;
  #flags = 0;
  #idAt = 0;
  #idEnd = 0;
  /** The end of the header patch, or of the id where there is none. */
  #headerEnd = 0;

  constructor(disk: Disk, path: string, from: LogPoint, end: number) {
    this.#line = new RawLines(disk, path, from, end);
    this.#end = end;
    this.seq = from.seq - 1;
  }

  /** The place of the line. */
  get at(): LogPoint {
    return { seq: this.seq, offset: this.#line.offset, crc: this.#line.crcBefore };
  }

  /** The place of the line that comes next. */
  get next(): LogPoint {
    return { seq: this.seq + 1, offset: this.#line.end, crc: this.#line.crc };
  }

  /** Goes on to the next line; false at the end. */
  step(): boolean {
    const { more } = this;
    if (!this.pass()) return false;
    const { text, start, stop } = this.#line;
    const moreAt = text.indexOf("\t", start) + 1;
    const moreEnd = text.indexOf("\t", moreAt);
    const idAt = text.indexOf("\t", moreEnd + 1) + 1;
    const idEnd = text.indexOf("\t", idAt);
    let flagsAt = moreEnd;
    let flags = 0;
    for (let bit = flagOf[text.charCodeAt(flagsAt - 1)]; bit; bit = flagOf[text.charCodeAt(flagsAt - 1)]) {
      flags |= bit;
      flagsAt--;
    }
    const headerEnd = flags & flag.header ? text.indexOf("\t", idEnd + 1) : idEnd;
    const seq = Number(text.slice(start, moreAt - 1));
    this.more = Number(text.slice(moreAt, flagsAt));
    this.#flags = flags;
    this.#idAt = idAt;
    this.#idEnd = idEnd;
    this.#headerEnd = headerEnd;
    // A column that is not there is found at -1, or behind the line; a flag of a later version makes no number.
    const isWhole =
      moreAt > start + 1 && flagsAt > moreAt && idAt > 0 && idEnd > 0 && headerEnd > 0 && headerEnd < stop;
    if (!isWhole || Number.isNaN(this.more)) throw new Flaw("the line is not a fact", this.at);
    if (seq !== this.seq) throw new Flaw(`the number is ${seq}, not ${this.seq}`, this.at);
    if (more > 0 && this.more !== more - 1) throw new Flaw("the batch is broken", this.at);
    return true;
  }

  /** The same for a line of which only the checksum matters, because it leads to those that are read. */
  pass(): boolean {
    const line = this.#line;
    if (!line.next()) {
      if (line.end < this.#end) throw new Flaw("the file ends too early", this.next);
      return false;
    }
    this.seq++;
    if (line.isRight) return true;
    throw new Flaw(line.complete ? "the checksum is wrong" : "the line is cut off", this.at);
  }

  get beginning(): boolean {
    return (this.#flags & flag.beginning) !== 0;
  }

  get time(): number | undefined {
    const { text } = this.#line;
    const from = text.lastIndexOf("\t", this.#idAt - 2) + 1;
    return from === this.#idAt - 1 ? undefined : Number(text.slice(from, this.#idAt - 1));
  }

  get id(): string {
    return this.#line.bytes.toString(undefined, this.#idAt, this.#idEnd);
  }

  get header(): string | undefined {
    if (!(this.#flags & flag.header)) return undefined;
    return this.#line.bytes.toString(undefined, this.#idEnd + 1, this.#headerEnd);
  }

  get data(): string {
    const text = this.#line.bytes.toString(undefined, this.#headerEnd + 1, this.#line.stop);
    return this.#flags & flag.quoted ? (JSON.parse(text) as string) : text;
  }
}
