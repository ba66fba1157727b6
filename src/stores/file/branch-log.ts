// BranchLog: one branch's events.jsonl. Owns where its facts lie; what they mean for the branch (header, activity) it
// hands to the loader.
//
//   BranchLog-1. The lines are numbered without gaps: the beginning at the fork point, then one fact after the other.
//   BranchLog-2. A batch is one stretch of lines; the log's end (`end`) is always the end of a batch.
//   BranchLog-3. What is read was verified: checksum, number and batch of every line, and the checksums from the point where reading
//       started; a flaw is thrown, never returned as data.
//   BranchLog-4. A point of the index is the start of a line, its number and the checksum before it; reading starts at one.

import type { JsonObject } from "../../base/json.ts";
import type { NewEvent, StoredEvent } from "../../log/index.ts";
import type { Disk } from "./disk.ts";
import { type Beginning, encodeBeginning, encodeFact, FactLines, Flaw, type LogPoint } from "./facts.ts";
import { breathe } from "./files.ts";
import { encodeBatch } from "./lines.ts";

/** A place as the index keeps it, in memory as on the disk: number, offset, checksum before. Few of many are looked at. */
export type IndexPoint = readonly [seq: number, offset: number, crc: number];

/** Where a batch ended: the place of the line that comes next. */
export interface LogEnd extends LogPoint {
  /** Where the last batch starts. */
  readonly batchAt: number;
}

/** How far apart the points of the index are. */
const pointSpacing = 32 * 1024;

export class BranchLog {
  readonly path: string;
  readonly #disk: Disk;
  #end: LogEnd;
  readonly #points: IndexPoint[];

  constructor(disk: Disk, path: string, end: LogEnd, points: readonly IndexPoint[]) {
    this.#disk = disk;
    this.path = path;
    this.#end = end;
    this.#points = points.slice();
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

  get points(): readonly IndexPoint[] {
    return this.#points;
  }

  /** Goes back to an earlier end of this log. */
  reset(end: LogEnd): void {
    this.#end = end;
    while ((this.#points.at(-1)?.[1] ?? -1) >= end.offset) this.#points.pop();
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
  admit({ at, next }: FactLines, batchAt: number): void {
    this.#mark(at);
    this.#end = { ...next, batchAt };
  }

  /** The lines from a point on, from the first one when there is none. */
  lines(end: number, from: LogPoint = this.#pointAt(0)): FactLines {
    return new FactLines(this.#disk, this.path, from, end);
  }

  /** The facts from…to (inclusive), which must be this log's own. */
  async read(from: number, to: number): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    if (from > to) return events;
    let pause = to - from > factsPerStretch ? factsPerStretch : Number.POSITIVE_INFINITY;
    const lines = this.#linesAround(from, to);
    while (lines.step()) {
      events.push({ seq: lines.seq, id: lines.id, data: lines.data });
      // The line behind may be damaged; it is not asked for.
      if (lines.seq === to) break;
      if (events.length < pause) continue;
      pause += factsPerStretch;
      await breathe();
    }
    if (events.length <= to - from) throw new Flaw("facts are missing", this.#end);
    return events;
  }

  /** One fact of this log's own. */
  readOne(seq: number): StoredEvent {
    const lines = this.#linesAround(seq, seq);
    if (lines.step() && !lines.beginning) return { seq, id: lines.id, data: lines.data };
    throw new Flaw("a fact is missing", this.#end);
  }

  /** The lines with the numbers from…to are next, and perhaps some more. */
  #linesAround(from: number, to: number): FactLines {
    const end = this.#points[this.#countUpTo(to)]?.[1] ?? this.#end.offset;
    const lines = this.lines(end, this.#pointAt(this.#countUpTo(from) - 1));
    while (lines.seq < from - 1) if (!lines.pass()) break;
    return lines;
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
    if (!last || offset >= last[1] + pointSpacing) this.#points.push([seq, offset, crc]);
  }

  #pointAt(index: number): LogPoint {
    const [seq, offset, crc] = this.#points[index]!;
    return { seq, offset, crc };
  }

  /** How many points are at or before the number. */
  #countUpTo(seq: number): number {
    let low = 0;
    let high = this.#points.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#points[middle]![0] <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const factsPerStretch = 2000;
