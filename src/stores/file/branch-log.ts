// BranchLog: one branch's events.jsonl. Owns where its facts lie; what they mean for the branch (header, activity) it
// hands to whoever loads it.
//
//   L1. The lines are numbered without gaps: the beginning at the fork point, then one fact after the other.
//   L2. A batch is one stretch of lines; the log's end (`end`) is always the end of a batch.
//   L3. What is read was verified: checksum, number and batch of every line; a flaw is thrown, never returned as data.
//   L4. A point of the index is the start of a line, its number and the checksum before it; reading starts at one.

import type { JsonObject } from "../../base/json.ts";
import type { NewEvent, StoredEvent } from "../../log/index.ts";
import type { Disk } from "./disk.ts";
import { type Beginning, encodeBeginning, encodeFact, FactLine } from "./facts.ts";
import { breathe } from "./files.ts";
import { encodeBatch, type RawLine, RawLines } from "./lines.ts";

/** A place in the log: the line with this number starts here, after a line with this checksum. */
export interface LogPoint {
  readonly seq: number;
  readonly offset: number;
  readonly crc: number;
}

/** Where a batch ended: the place of the line that comes next. */
export interface LogEnd extends LogPoint {
  /** Where the last batch starts. */
  readonly batchAt: number;
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

export interface ReadLine {
  readonly fact: FactLine;
  readonly at: LogPoint;
  readonly next: LogPoint;
}

/** How far apart the points of the index are. */
export const pointSpacing = 32 * 1024;

export class BranchLog {
  readonly path: string;
  readonly #disk: Disk;
  #end: LogEnd;
  #points: LogPoint[];

  constructor(disk: Disk, path: string, end: LogEnd, points: readonly LogPoint[]) {
    this.#disk = disk;
    this.path = path;
    this.#end = end;
    this.#points = [...points];
  }

  static empty(disk: Disk, path: string, base: number): BranchLog {
    return new BranchLog(disk, path, { seq: base, offset: 0, crc: 0, batchAt: 0 }, []);
  }

  get end(): LogEnd {
    return this.#end;
  }

  /** The file's whole path, for messages. */
  get where(): string {
    return this.#disk.absolute(this.path);
  }

  get points(): readonly LogPoint[] {
    return this.#points;
  }

  /** Goes back to an earlier end of this log. */
  reset(end: LogEnd): void {
    this.#end = end;
    while ((this.#points.at(-1)?.offset ?? -1) >= end.offset) this.#points.pop();
  }

  /** The bytes of the branch's first batch: how it began and its first facts. */
  begin(beginning: Beginning, events: readonly NewEvent[], time: number): Buffer {
    return this.#encode([encodeBeginning(beginning, events.length, time), ...this.#bodies(events, 1, time)]);
  }

  /** The bytes of one more batch, which belong at the end the log had before. */
  extend(events: readonly NewEvent[], time: number, header: JsonObject | undefined): Buffer {
    return this.#encode(this.#bodies(events, 0, time, header));
  }

  /** The line as part of the log while it is loaded. */
  admit(line: ReadLine, batchAt: number): void {
    this.#mark(line.at);
    this.#end = { ...line.next, batchAt };
  }

  /** The lines from a point on, each verified; throws a Flaw. */
  *lines(from: LogPoint, end: number): Generator<ReadLine> {
    const raw = new RawLines(this.#disk, this.path, from.offset, end);
    let at = from;
    let more: number | undefined;
    for (let line = raw.next(); line; line = raw.next()) {
      const read = verify(line, at, more);
      more = read.fact.more === 0 ? undefined : read.fact.more - 1;
      at = read.next;
      yield read;
    }
    if (at.offset < end) throw new Flaw("the file ends too early", at);
  }

  /** The facts from…to (inclusive), which must be this log's own. */
  async read(from: number, to: number): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    if (from > to) return events;
    let pause = to - from > factsPerStretch ? factsPerStretch : Number.POSITIVE_INFINITY;
    for (const { fact } of this.lines(this.#pointBefore(from), this.#offsetAfter(to))) {
      if (fact.seq < from) continue;
      events.push({ seq: fact.seq, id: fact.id, data: fact.data() });
      // The line behind may be damaged; it is not asked for.
      if (fact.seq === to) break;
      if (events.length < pause) continue;
      pause += factsPerStretch;
      await breathe();
    }
    if (events.length <= to - from) throw new Flaw("facts are missing", this.#end);
    return events;
  }

  /** One fact of this log's own. */
  readOne(seq: number): StoredEvent {
    for (const { fact } of this.lines(this.#pointBefore(seq), this.#offsetAfter(seq))) {
      if (fact.seq === seq && !fact.beginning) return { seq, id: fact.id, data: fact.data() };
    }
    throw new Flaw("a fact is missing", this.#end);
  }

  #bodies(events: readonly NewEvent[], after: number, time: number, header?: JsonObject): string[] {
    const first = this.#end.seq + after;
    return events.map((event, i) => encodeFact(event, { seq: first + i, more: events.length - 1 - i, time, header }));
  }

  #encode(bodies: readonly string[]): Buffer {
    const batchAt = this.#end.offset;
    return encodeBatch(bodies, this.#end.crc, (crc, end) => {
      this.#mark(this.#end);
      this.#end = { seq: this.#end.seq + 1, offset: batchAt + end, crc, batchAt };
    });
  }

  #mark({ seq, offset, crc }: LogPoint): void {
    const last = this.#points.at(-1);
    if (!last || offset >= last.offset + pointSpacing) this.#points.push({ seq, offset, crc });
  }

  #pointBefore(seq: number): LogPoint {
    return this.#points[this.#countUpTo(seq) - 1]!;
  }

  /** Where the index next knows a line after this one. */
  #offsetAfter(seq: number): number {
    return this.#points[this.#countUpTo(seq)]?.offset ?? this.#end.offset;
  }

  /** How many points are at or before the number. */
  #countUpTo(seq: number): number {
    let low = 0;
    let high = this.#points.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#points[middle]!.seq <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const factsPerStretch = 2000;

function verify(line: RawLine, at: LogPoint, more: number | undefined): ReadLine {
  const crc = line.check(at.crc);
  if (crc === undefined) throw new Flaw(line.complete ? "the checksum is wrong" : "the line is cut off", at);
  const fact = FactLine.parse(line);
  if (!fact) throw new Flaw("the line is not a fact", at);
  if (fact.seq !== at.seq) throw new Flaw(`the number is ${fact.seq}, not ${at.seq}`, at);
  if (more !== undefined && fact.more !== more) throw new Flaw("the batch is broken", at);
  return { fact, at, next: { seq: at.seq + 1, offset: line.end, crc } };
}
