// Archives, as far as documents need them. What an archive claims is checked before anything is unpacked, and unpacking stops at
// what it claimed: a small file can't become a large one.

import { inflateRawSync } from "node:zlib";

interface Entry {
  readonly name: string;
  readonly method: number;
  readonly packed: number;
  readonly size: number;
  readonly offset: number;
}

const most = { entries: 1_000, bytes: 100_000_000, ratio: 100 };
/** Small archives of much the same text may be packed better than that. */
const ratioFrom = 1_000_000;

/** An archive that is none, or is not safe to unpack. */
class BadArchive extends Error {}

export class Archive {
  readonly #bytes: Buffer;
  readonly #entries: ReadonlyMap<string, Entry>;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const entries = readDirectory(this.#bytes);
    const size = entries.reduce((sum, entry) => sum + entry.size, 0);
    if (size > most.bytes) throw new BadArchive(`The archive unpacks to more than ${most.bytes} bytes.`);
    if (size > ratioFrom && size > bytes.length * most.ratio) {
      throw new BadArchive(`The archive unpacks to more than ${most.ratio} times its size.`);
    }
    this.#entries = new Map(entries.map((entry) => [entry.name, entry]));
  }

  get names(): string[] {
    return [...this.#entries.keys()];
  }

  /** The text of a file in it; empty if there is none of that name. */
  text(name: string): string {
    const entry = this.#entries.get(name);
    return entry ? new TextDecoder().decode(this.#unpack(entry)) : "";
  }

  #unpack({ offset, packed, size, method }: Entry): Uint8Array {
    const bytes = this.#bytes;
    if (offset + 30 > bytes.length || bytes.readUInt32LE(offset) !== 0x04034b50)
      throw new BadArchive("The archive is damaged.");
    const start = offset + 30 + bytes.readUInt16LE(offset + 26) + bytes.readUInt16LE(offset + 28);
    const data = bytes.subarray(start, start + packed);
    if (method === 0) return data;
    if (method !== 8) throw new BadArchive("The archive is packed in a way that is not supported.");
    try {
      return inflateRawSync(data, { maxOutputLength: Math.max(1, size) });
    } catch {
      throw new BadArchive("The archive is damaged, or holds more than it claims.");
    }
  }
}

function readDirectory(bytes: Buffer): Entry[] {
  const end = bytes.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (end < 0 || end + 22 > bytes.length) throw new BadArchive("The file is not an archive.");
  const count = bytes.readUInt16LE(end + 10);
  if (count > most.entries) throw new BadArchive(`The archive has more than ${most.entries} files.`);
  const entries: Entry[] = [];
  for (let at = bytes.readUInt32LE(end + 16), i = 0; i < count; i++) {
    if (at + 46 > bytes.length || bytes.readUInt32LE(at) !== 0x02014b50)
      throw new BadArchive("The archive is damaged.");
    const [nameLength, extraLength, noteLength] = [28, 30, 32].map((place) => bytes.readUInt16LE(at + place)) as [
      number,
      number,
      number,
    ];
    if (bytes.readUInt16LE(at + 8) & 1) throw new BadArchive("The archive is encrypted.");
    entries.push({
      name: bytes.toString("utf8", at + 46, at + 46 + nameLength),
      method: bytes.readUInt16LE(at + 10),
      packed: bytes.readUInt32LE(at + 20),
      size: bytes.readUInt32LE(at + 24),
      offset: bytes.readUInt32LE(at + 42),
    });
    at += 46 + nameLength + extraLength + noteLength;
  }
  return entries;
}
