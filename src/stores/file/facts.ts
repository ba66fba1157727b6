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
import type { RawLines } from "./lines.ts";

/** How a branch began; the first line of its log. */
export interface Beginning {
  readonly sessionId: string;
  readonly branchId: string;
  /** Grows with every branch created in the store, so that branches can be listed in that order. */
  readonly order: number;
  readonly parent?: { readonly branchId: string; readonly seq: number };
  readonly header: JsonObject;
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

const flag = { beginning: 1, header: 2, quoted: 4 };
const flagOf: (number | undefined)[] = [];
for (const [letter, bit] of Object.entries({ c: flag.beginning, h: flag.header, q: flag.quoted })) {
  flagOf[letter.charCodeAt(0)] = bit;
}

/** The line that RawLines stands on, taken apart; its checksum was right. */
export class FactLine {
  seq = 0;
  more = 0;
  readonly #line: RawLines;
  #flags = 0;
  #idAt = 0;
  #idEnd = 0;
  /** The end of the header patch, or of the id where there is none. */
  #headerEnd = 0;

  constructor(line: RawLines) {
    this.#line = line;
  }

  /** Takes the line; false when the columns are not what this version writes. */
  take(): boolean {
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
    this.seq = wholeNumber(text, start, moreAt - 1);
    this.more = wholeNumber(text, moreAt, flagsAt);
    this.#flags = flags;
    this.#idAt = idAt;
    this.#idEnd = idEnd;
    this.#headerEnd = headerEnd;
    return this.seq >= 0 && this.more >= 0 && idAt > 0 && idEnd > 0 && headerEnd > 0 && headerEnd < stop;
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

/** NaN when there is none. */
function wholeNumber(text: string, from: number, end: number): number {
  const value = from < end ? Number(text.slice(from, end)) : Number.NaN;
  return Number.isInteger(value) ? value : Number.NaN;
}
