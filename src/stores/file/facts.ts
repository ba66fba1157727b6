// The lines of a branch's events.jsonl: JSON Lines, one object a line, with these members in this order:
//
//   seq     the fact's sequence number; in the first line, which tells how the branch began, the fork point
//   more    how many lines of the same batch follow; absent in the last line of a batch
//   at      when the batch was appended; in its last line and in the first line of the log
//   id      the fact's id
//   header  the header patch that came with the batch; in its last line, if there was one
//   data    the fact. One that is not JSON on a single line is under `text` instead, as a string
//   branch  instead of id and data, in the first line of the log: how the branch began
//   crc     the line's checksum (lines.ts)
//
// Lines are taken apart by position, without parsing them: a long log is read this way, and the fact has to come back as
// the text that it was. So members are written without white space, but for one space after a header: `, "data":` with that
// space can't be part of a header, whose JSON has none between its members.

import { isWellFormed, type JsonObject } from "../../base/json.ts";
import type { NewEvent } from "../../log/index.ts";
import type { Disk } from "./disk.ts";
import { RawLines } from "./lines.ts";

/** How a branch began; in the first line of its log. */
export interface Beginning {
  readonly sessionId: string;
  readonly branchId: string;
  /** Grows with every branch created in the store, so that branches can be listed in that order. */
  readonly order: number;
  readonly parent?: { readonly branchId: string; readonly seq: number };
  readonly header: JsonObject;
}

/** The body of a fact's line. */
export function encodeFact(
  event: NewEvent,
  line: { seq: number; more: number; time: number; header?: JsonObject | undefined },
): string {
  const last = line.more === 0;
  const place = last ? `"at":${line.time}` : `"more":${line.more}`;
  const start = `{"seq":${line.seq},${place},"id":${JSON.stringify(event.id)},`;
  const data = isJsonLine(event.data) ? `"data":${event.data}` : `"text":${JSON.stringify(event.data)}`;
  return last && line.header ? `${start}"header":${JSON.stringify(line.header)}, ${data}` : start + data;
}

/** The body of the first line. */
export function encodeBeginning(beginning: Beginning, more: number, time: number): string {
  const { parent } = beginning;
  return `{"seq":${parent?.seq ?? 0},${more > 0 ? `"more":${more},` : ""}"at":${time},"branch":${JSON.stringify(beginning)}`;
}

/** Whether the text can stand in a line as it is. Half a surrogate pair has no bytes in UTF-8. */
function isJsonLine(text: string): boolean {
  if (text.includes("\n") || text.includes("\r") || !isWellFormed(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The number in the first line of a log; undefined when that line is not the beginning of a branch. */
export function forkPointIn(disk: Disk, path: string, size: number): number | undefined {
  const line = new RawLines(disk, path, { offset: 0, crc: 0 }, size);
  if (!line.next() || !line.isRight) return undefined;
  const text = line.text.slice(line.start, line.stop);
  const [, base] = /^\{"seq":(\d+),(?:"more":\d+,)?"at":[^,]+,"branch":/.exec(text) ?? [];
  return base === undefined ? undefined : Number(base);
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

const seqLength = '{"seq":'.length;
const [moreKey, atKey, idKey, headerKey] = [',"more":', ',"at":', ',"id":"', ',"header":'];
const [dataKey, textKey, branchKey] = [',"data":', ',"text":', ',"branch":'];
const [afterHeader, dataStart, textStart] = [', "', ', "data":', ', "text":'];

/** Goes over the lines of a log from a point on and verifies each; throws a Flaw. Its fields are about the line it stands on. */
export class FactLines {
  seq: number;
  more = 0;
  /** Whether the line is the first one, which tells how the branch began. */
  beginning = false;
  readonly #line: RawLines;
  readonly #end: number;
  /** Where members start and end in the line's stretch of text; 0 for one that it does not have. */
  #timeAt = 0;
  #timeEnd = 0;
  #idAt = 0;
  #idEnd = 0;
  #headerAt = 0;
  #headerEnd = 0;
  #dataAt = 0;
  #isText = false;

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
    const seqEnd = text.indexOf(",", start);
    const seq = Number(text.slice(start + seqLength, seqEnd));
    const isWhole = this.#stepOverBatch(text, seqEnd) && this.#dataAt > 0 && this.#dataAt < stop;
    if (!isWhole || Number.isNaN(seq) || Number.isNaN(this.more)) throw new Flaw("the line is not a fact", this.at);
    if (seq !== this.seq) throw new Flaw(`the number is ${seq}, not ${this.seq}`, this.at);
    if (more > 0 && this.more !== more - 1) throw new Flaw("the batch is broken", this.at);
    return true;
  }

  /** Finds `more` and `at`, and what follows; whether the members are those of a fact. */
  #stepOverBatch(text: string, from: number): boolean {
    let at = from;
    this.more = 0;
    this.#timeAt = 0;
    this.#headerAt = 0;
    this.#isText = false;
    this.beginning = false;
    if (text.startsWith(moreKey, at)) {
      const moreAt = at + moreKey.length;
      at = text.indexOf(",", moreAt);
      this.more = Number(text.slice(moreAt, at));
    }
    if (text.startsWith(atKey, at)) {
      this.#timeAt = at + atKey.length;
      at = text.indexOf(",", this.#timeAt);
      this.#timeEnd = at;
    }
    if (text.startsWith(idKey, at)) return this.#stepOverId(text, at + idKey.length);
    this.beginning = text.startsWith(branchKey, at);
    this.#dataAt = at + branchKey.length;
    return this.beginning;
  }

  #stepOverId(text: string, from: number): boolean {
    this.#idAt = from;
    this.#idEnd = endOfString(text, from);
    const at = this.#idEnd + 1;
    const hasHeader = text.startsWith(headerKey, at);
    this.#headerAt = hasHeader ? at + headerKey.length : 0;
    if (hasHeader) this.#headerEnd = endOfHeader(text, this.#headerAt, this.#line.stop);
    // Both keys have the same length; after a header one space more.
    const dataAt = hasHeader ? this.#headerEnd : at;
    this.#dataAt = dataAt + (hasHeader ? dataStart : dataKey).length;
    if (text.startsWith(hasHeader ? dataStart : dataKey, dataAt)) return true;
    this.#isText = text.startsWith(hasHeader ? textStart : textKey, dataAt);
    return this.#isText;
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

  get time(): number | undefined {
    return this.#timeAt === 0 ? undefined : Number(this.#line.text.slice(this.#timeAt, this.#timeEnd));
  }

  get id(): string {
    const id = this.#line.bytes.toString(undefined, this.#idAt, this.#idEnd);
    return id.includes("\\") ? (JSON.parse(`"${id}"`) as string) : id;
  }

  get header(): string | undefined {
    if (this.#headerAt === 0) return undefined;
    return this.#line.bytes.toString(undefined, this.#headerAt, this.#headerEnd);
  }

  /** The fact's text; of the first line, the JSON of the beginning. */
  get data(): string {
    const text = this.#line.bytes.toString(undefined, this.#dataAt, this.#line.stop);
    return this.#isText ? (JSON.parse(text) as string) : text;
  }
}

/** The quote that ends a JSON string whose text starts here. */
function endOfString(text: string, from: number): number {
  let quote = text.indexOf('"', from);
  while (text[quote - 1] === "\\" && isEscaped(text, quote)) quote = text.indexOf('"', quote + 1);
  return quote;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === "\\") slashes++;
  return slashes % 2 === 1;
}

/** Where the header ends: at the first comma with a space that a member of the line follows. */
function endOfHeader(text: string, from: number, stop: number): number {
  let at = text.indexOf(afterHeader, from);
  while (at >= 0 && at < stop && !text.startsWith(dataStart, at) && !text.startsWith(textStart, at)) {
    at = text.indexOf(afterHeader, at + 1);
  }
  return at < 0 ? stop : at;
}
