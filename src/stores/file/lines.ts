// Checksummed lines of JSON Lines: each line is an object whose last member is its checksum, `,"crc":"0a1b2c3d"}`. The
// checksum is the CRC-32 of the bytes before that member and is seeded with the checksum of the line before, so a line that
// was changed, dropped, moved or inserted is detected. It is last because then neither writing nor verifying a line takes
// any parsing: the checksum covers a prefix, and its own length is fixed. A body is an object's text without its closing
// brace, and never contains a line feed.

import { crc32 } from "node:zlib";
import type { Disk } from "./disk.ts";
import { hex8 } from "./seal.ts";

const sealStart = ',"crc":"';
const emptySeal = `${sealStart}00000000"}`;
const lineFeed = 10;

/** A body as a line, and the checksum the next one is seeded with. */
export function encodeLine(body: string, seed: number): { bytes: Buffer; crc: number } {
  let crc = seed;
  const bytes = encodeBatch([body], seed, (its) => {
    crc = its;
  });
  return { bytes, crc };
}

/** Bodies as lines that follow one another; `each` gets every line's checksum and where in the bytes it ends. */
export function encodeBatch(bodies: readonly string[], seed: number, each: (crc: number, end: number) => void): Buffer {
  let text = "";
  for (const body of bodies) text += `${body}${emptySeal}\n`;
  const bytes = Buffer.from(text);
  let crc = seed;
  for (let start = 0; start < bytes.length; ) {
    const feed = bytes.indexOf(lineFeed, start);
    const stop = feed - emptySeal.length;
    crc = crc32(bytes.subarray(start, stop), crc);
    bytes.write(hex8(crc), stop + sealStart.length, "latin1");
    start = feed + 1;
    each(crc, start);
  }
  return bytes;
}

const nothing = Buffer.alloc(0);
/** Small enough that its memory is used again; the system zeroes the pages of larger ones each time. */
const chunkSize = 64 * 1024;

/**
 * Goes over the lines of a file between two offsets, reading a chunk at a time. Its fields are about the line it stands on:
 * no object is made for a line, since many are passed for each that is kept.
 */
export class RawLines {
  /** A stretch of the file; the line's body lies in it between `start` and `stop`, its checksum behind that. */
  bytes: Buffer = nothing;
  /** The same with a character for each byte: what is looked for is ASCII, and found faster in a text. */
  text = "";
  start = 0;
  stop = 0;
  /** False when the file ends before the line does. */
  complete = false;
  /** Whether the checksum is that of the body after the lines before; the others are not to be believed. */
  isRight = false;
  /** The checksum of everything up to the end of the line, and up to its start. */
  crc: number;
  crcBefore: number;
  readonly #disk: Disk;
  readonly #path: string;
  readonly #end: number;
  /** Where the stretch starts in the file. */
  #bytesAt: number;
  /** Without the ways of a Buffer, whose parts cost more to make. */
  #plain: Uint8Array = nothing;
  #next = 0;

  constructor(disk: Disk, path: string, from: { readonly offset: number; readonly crc: number }, end: number) {
    this.#disk = disk;
    this.#path = path;
    this.#bytesAt = from.offset;
    this.#end = end;
    this.crc = from.crc;
    this.crcBefore = from.crc;
  }

  /** Goes on to the next line; false when there is none. In one piece, because nothing is done as often. */
  next(): boolean {
    let feed = this.text.indexOf("\n", this.#next);
    while (feed < 0 && this.#fill()) feed = this.text.indexOf("\n", this.#next);
    const start = this.#next;
    const end = feed < 0 ? this.bytes.length : feed;
    const stop = end - emptySeal.length;
    this.start = start;
    this.stop = stop;
    this.complete = feed >= 0;
    this.isRight = false;
    if (feed < 0) {
      this.#next = end;
      return start < end;
    }
    this.#next = end + 1;
    if (stop <= start || !this.text.startsWith(sealStart, stop) || !this.text.startsWith('"}', end - 2)) return true;
    const bytes = this.#plain;
    let written = 0;
    for (let at = stop + sealStart.length; at < end - 2; at++) {
      written = written * 16 + (hexDigits[bytes[at]!] ?? Number.NaN);
    }
    this.crcBefore = this.crc;
    this.crc = crc32(bytes.subarray(start, stop), this.crcBefore);
    this.isRight = written === this.crc;
    return true;
  }

  /** Where the line starts in the file. */
  get offset(): number {
    return this.#bytesAt + this.start;
  }

  /** Where the next line starts in the file. */
  get end(): number {
    return this.#bytesAt + this.#next;
  }

  /** Whether it starts and ends as a line does, with a checksum that may be right or wrong. */
  isShaped({ afterZeros }: { afterZeros: boolean }): boolean {
    const line = this.text.slice(this.start, this.stop + emptySeal.length);
    return this.complete && (afterZeros ? shapeAfterZeros : shape).test(line);
  }

  /** Reads what is left of the stretch once more, and what follows; whether anything did. */
  #fill(): boolean {
    const rest = this.bytes.length - this.#next;
    const at = this.#bytesAt + this.#next;
    // A line longer than the chunk doubles it, so a long line costs its length, not its square.
    const length = Math.min(Math.max(chunkSize, 2 * rest), this.#end - at);
    if (length <= rest) return false;
    const bytes = this.#disk.read(this.#path, at, length);
    this.bytes = bytes;
    this.text = bytes.toString("latin1");
    this.#plain = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#bytesAt = at;
    this.#next = 0;
    return bytes.length > rest;
  }
}

const hexDigits: (number | undefined)[] = [];
for (const [value, digit] of [..."0123456789abcdef"].entries()) hexDigits[digit.charCodeAt(0)] = value;

const shape = /^\{".*,"crc":"[0-9a-f]{8}"\}$/s;
const shapeAfterZeros = /^\0+\{".*,"crc":"[0-9a-f]{8}"\}$/s;

/**
 * Whether anything after the start of a bad line was once written whole. If nothing was, the bad line is the torn end of a
 * write; if something was, it has been damaged or what came before it is lost.
 */
export function anythingWholeAfter(disk: Disk, path: string, offset: number, end: number): boolean {
  const lines = new RawLines(disk, path, { offset, crc: 0 }, end);
  // Where bytes were lost, zeros stand before what follows.
  if (lines.next() && lines.isShaped({ afterZeros: true })) return true;
  while (lines.next()) if (lines.isShaped({ afterZeros: false })) return true;
  return false;
}
