// Checksummed lines: `checksum TAB body`. A checksum covers the body and is seeded with the line's before, so a line that
// was changed, dropped, moved or put in from elsewhere is found out. Bodies never contain a line feed.

import { crc32 } from "node:zlib";
import type { Disk } from "./disk.ts";
import { hex8 } from "./seal.ts";

const prefixLength = 9;
const lineFeed = 10;
const tab = 9;

/** A body as a line, and the checksum the next one is seeded with. */
export function encodeLine(body: string, seed: number): { bytes: Buffer; crc: number } {
  let crc = seed;
  const bytes = encodeBatch([body], seed, (its) => {
    crc = its;
  });
  return { bytes, crc };
}

/** Bodies as lines that follow one another; `each` is told every line's checksum and where in the bytes it ends. */
export function encodeBatch(bodies: readonly string[], seed: number, each: (crc: number, end: number) => void): Buffer {
  let text = "";
  for (const body of bodies) text += `00000000\t${body}\n`;
  const bytes = Buffer.from(text);
  let crc = seed;
  for (let start = 0; start < bytes.length; ) {
    const stop = bytes.indexOf(lineFeed, start);
    crc = crc32(bytes.subarray(start + prefixLength, stop), crc);
    bytes.write(hex8(crc), start, "latin1");
    start = stop + 1;
    each(crc, start);
  }
  return bytes;
}

/** A line as it lies in the file, not yet believed. */
export class RawLine {
  /** A stretch of the file; the line's body lies in it between `start` and `stop`. */
  readonly bytes: Buffer;
  readonly start: number;
  readonly stop: number;
  /** Where the line starts in the file. */
  readonly offset: number;
  /** False when the file ends before the line does. */
  readonly complete: boolean;

  constructor(bytes: Buffer, from: number, stop: number, offset: number, complete: boolean) {
    this.bytes = bytes;
    this.start = from + prefixLength;
    this.stop = stop;
    this.offset = offset;
    this.complete = complete;
  }

  /** Where the next line starts in the file. */
  get end(): number {
    return this.offset + prefixLength + this.stop - this.start + 1;
  }

  /** The line's checksum if it is the right one after `seed`, else undefined. */
  check(seed: number): number | undefined {
    if (!this.complete || this.start > this.stop || this.bytes[this.start - 1] !== tab) return undefined;
    const crc = crc32(this.bytes.subarray(this.start, this.stop), seed);
    return checksumAt(this.bytes, this.start - prefixLength) === crc ? crc : undefined;
  }

  /** Whether it ends, and starts as a line does: with a checksum, right or wrong. */
  isShaped({ afterZeros }: { afterZeros: boolean }): boolean {
    let from = this.start - prefixLength;
    if (afterZeros) {
      while (from < this.stop && this.bytes[from] === 0) from++;
      if (from === this.start - prefixLength) return false;
    }
    return this.complete && !Number.isNaN(checksumAt(this.bytes, from)) && this.bytes[from + prefixLength - 1] === tab;
  }
}

/** NaN when there is no checksum. */
function checksumAt(bytes: Buffer, from: number): number {
  let value = 0;
  for (let at = from; at < from + prefixLength - 1; at++)
    value = value * 16 + (hexDigits[bytes[at] ?? 0] ?? Number.NaN);
  return value;
}

const hexDigits: (number | undefined)[] = [];
for (const [value, digit] of [..."0123456789abcdef"].entries()) hexDigits[digit.charCodeAt(0)] = value;

const chunkSize = 256 * 1024;

/** Reads the lines of a file between two offsets, a chunk at a time. */
export class RawLines {
  readonly #disk: Disk;
  readonly #path: string;
  readonly #end: number;
  #buffer: Buffer = Buffer.alloc(0);
  #bufferAt: number;
  #position = 0;

  constructor(disk: Disk, path: string, from: number, end: number) {
    this.#disk = disk;
    this.#path = path;
    this.#bufferAt = from;
    this.#end = end;
  }

  next(): RawLine | undefined {
    let feed = this.#buffer.indexOf(lineFeed, this.#position);
    while (feed < 0 && this.#fill()) feed = this.#buffer.indexOf(lineFeed, this.#position);
    const start = this.#position;
    const stop = feed < 0 ? this.#buffer.length : feed;
    if (feed < 0 && start === stop) return undefined;
    this.#position = feed < 0 ? stop : feed + 1;
    return new RawLine(this.#buffer, start, stop, this.#bufferAt + start, feed >= 0);
  }

  /** Whether more bytes came in behind what is left in the buffer. */
  #fill(): boolean {
    const rest = this.#buffer.subarray(this.#position);
    const at = this.#bufferAt + this.#buffer.length;
    // A line longer than the chunk doubles it, so a long line costs its length, not its square.
    const length = Math.min(Math.max(chunkSize, rest.length), this.#end - at);
    if (length <= 0) return false;
    const more = this.#disk.read(this.#path, at, length);
    this.#buffer = rest.length === 0 ? more : Buffer.concat([rest, more]);
    this.#bufferAt = at - rest.length;
    this.#position = 0;
    return more.length > 0;
  }
}

/**
 * Whether anything after the start of a bad line was once written whole. If nothing was, the bad line is the torn end of a
 * write; if something was, it has been damaged or what came before it is lost.
 */
export function anythingWholeAfter(disk: Disk, path: string, offset: number, end: number): boolean {
  const lines = new RawLines(disk, path, offset, end);
  // Where bytes were lost, zeros stand before what follows.
  if (lines.next()?.isShaped({ afterZeros: true })) return true;
  for (let line = lines.next(); line; line = lines.next()) if (line.isShaped({ afterZeros: false })) return true;
  return false;
}
