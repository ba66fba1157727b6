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
  const bytes = Buffer.from(`00000000\t${body}\n`);
  const crc = crc32(bytes.subarray(prefixLength, bytes.length - 1), seed);
  bytes.write(hex8(crc), 0, "latin1");
  return { bytes, crc };
}

/** A line as it lies in the file, not yet believed. */
export class RawLine {
  readonly offset: number;
  /** Everything after the checksum and its tab. */
  readonly body: Buffer;
  /** False when the file ends before the line does. */
  readonly complete: boolean;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer, offset: number, complete: boolean) {
    this.#bytes = bytes;
    this.offset = offset;
    this.complete = complete;
    this.body = bytes.subarray(prefixLength);
  }

  /** Where the next line starts. */
  get end(): number {
    return this.offset + this.#bytes.length + 1;
  }

  /** The line's checksum if it is the right one after `seed`, else undefined. */
  check(seed: number): number | undefined {
    if (!this.complete || this.#bytes[prefixLength - 1] !== tab) return undefined;
    const crc = this.computed(seed);
    return this.#bytes.toString("latin1", 0, prefixLength - 1) === hex8(crc) ? crc : undefined;
  }

  computed(seed: number): number {
    return crc32(this.body, seed);
  }

  /** The checksum the line claims to have. */
  claimed(): number {
    return Number.parseInt(this.#bytes.toString("latin1", 0, prefixLength - 1), 16) || 0;
  }
}

const chunkSize = 64 * 1024;

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
    return new RawLine(this.#buffer.subarray(start, stop), this.#bufferAt + start, feed >= 0);
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
 * Whether any line after a bad one is good. If none is, the bad one is the torn end of a write; if one is, something that
 * was whole has been damaged.
 */
export function anyGoodAfter(disk: Disk, path: string, offset: number, end: number, seed: number): boolean {
  const lines = new RawLines(disk, path, offset, end);
  let before = seed;
  let seeds: readonly number[] = [];
  for (let line = lines.next(); line; line = lines.next()) {
    for (const each of seeds) if (line.check(each) !== undefined) return true;
    // The line's own checksum may be what was damaged, so the computed one is tried as well.
    seeds = [line.claimed(), line.computed(before)];
    before = line.claimed();
  }
  return false;
}
