// Wal: the redo log. Owns the file that groups are written to; replay.ts reads it back.
//
//   Wal-1. A group is one write and one sync. write() resolves when the group is on the disk.
//   Wal-2. Groups follow one another: the next is written after the one before is on the disk. So a bad group with a good one
//       behind it was damaged; a bad one with nothing behind it was never acknowledged.
//   Wal-3. A file names the oldest file that must be replayed before it; older ones are leftovers.
//   Wal-4. A file is dropped only when everything in it is on the disk elsewhere.
//   Wal-5. Behind the last group there are zeros: space taken in advance, so that most syncs find a file whose size and blocks
//       did not change, which halves their cost. No group ends with a zero.
//   Wal-6. A group counts only while the directory is still the one that was opened: what is written to a file that was removed,
//       or moved away, will not be found. The lock, which is open as long as the store is, tells the directory.
//
// A file is `bough-wal n oldest crc`, then groups. A group is `group ticket records bytes crc`, then records. A record is
// `bytes crc`, then its operations as one JSON line, then their bytes. Columns are separated by tabs.

import { crc32 } from "node:zlib";
import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import type { Disk, FileOperation } from "./disk.ts";
import { paths } from "./layout.ts";
import { writeAll } from "./replace.ts";
import { hex8 } from "./seal.ts";

interface OpenWal {
  readonly number: number;
  readonly handle: number;
  readonly identity: string | undefined;
  readonly name: string | undefined;
  bytes: number;
  /** Where the space taken in advance ends. */
  reserved: number;
  listed: boolean;
}

const reserve = Buffer.alloc(512 * 1024);

export class Wal {
  readonly #disk: Disk;
  readonly #nextTicket: () => number;
  /** The lock as it was when the store was opened (Wal-6). */
  readonly #directory: string | undefined;
  #open: OpenWal | undefined;
  #sealed: OpenWal | undefined;

  constructor(disk: Disk, nextTicket: () => number) {
    this.#disk = disk;
    this.#nextTicket = nextTicket;
    this.#directory = this.#identity(paths.lock);
  }

  /** Bytes written since the last seal. */
  get bytes(): number {
    return this.#open?.bytes ?? 0;
  }

  get isEmpty(): boolean {
    return !this.#open && !this.#sealed;
  }

  /** Makes a group of records durable. After a failure it must not be called again. */
  async write(records: readonly (readonly FileOperation[])[]): Promise<void> {
    const pieces: Uint8Array[] = [];
    const file = this.#open ?? this.#begin(pieces);
    encodeGroup(records, this.#nextTicket(), file.number, pieces);
    const bytes = Buffer.concat(pieces);
    failpoint("file.wal.beforeWrite");
    this.#put(file, bytes);
    failpoint("file.wal.written");
    await this.#disk.files.datasync(file.handle);
    if (!file.listed) await this.#disk.files.syncDirectory(this.#disk.absolute(paths.wal));
    file.listed = true;
    if (!this.#isThere(file)) throw this.#removed();
    file.bytes += bytes.length;
    failpoint("file.wal.synced");
  }

  /** Ends the current file. At most one file is sealed at a time. */
  seal(): void {
    this.#sealed = this.#open;
    this.#open = undefined;
  }

  /** Forgets the sealed file (Wal-4). */
  async dropSealed(): Promise<void> {
    if (!this.#sealed) return;
    const { handle, number } = this.#sealed;
    this.#sealed = undefined;
    this.#disk.files.close(handle);
    this.#disk.files.unlink(this.#disk.absolute(walPath(number)));
    await this.#disk.files.syncDirectory(this.#disk.absolute(paths.wal));
  }

  close(): void {
    for (const file of [this.#sealed, this.#open]) if (file) this.#disk.files.close(file.handle);
    this.#sealed = undefined;
    this.#open = undefined;
  }

  #begin(pieces: Uint8Array[]): OpenWal {
    this.checkDirectory();
    const number = this.#nextTicket();
    const handle = this.#disk.files.open(this.#disk.absolute(walPath(number)), "create");
    const identity = this.#identity(walPath(number));
    const name = this.#disk.files.openName?.(handle);
    pieces.push(encodeHeader(number, this.#sealed?.number ?? number));
    this.#open = { number, handle, identity, name, bytes: 0, reserved: 0, listed: false };
    return this.#open;
  }

  /** `store_unavailable` when another directory, or none, is where the store was opened (Wal-6). */
  checkDirectory(): void {
    if (this.#identity(paths.lock) !== this.#directory) throw this.#removed();
  }

  /** Whether the next opening would find what was written to the file. Its name is asked first (OpenName-1). */
  #isThere({ number, handle, identity, name }: OpenWal): boolean {
    if (name !== undefined && this.#disk.files.openName?.(handle) === name) return true;
    return this.#identity(walPath(number)) === identity;
  }

  #identity(path: string): string | undefined {
    return this.#disk.files.identity?.(this.#disk.absolute(path));
  }

  #removed(): BoughError {
    const path = this.#disk.base;
    return new BoughError(
      "store_unavailable",
      `The store in ${path} was removed or replaced while it was open, so recent writes are lost; reopen it.`,
      { data: { path, reason: "removed" } },
    );
  }

  #put(file: OpenWal, bytes: Buffer): void {
    const middle = writesInHalves ? bytes.length >> 1 : 0;
    if (middle > 0) {
      writeAll(this.#disk.files, file.handle, bytes.subarray(0, middle), file.bytes);
      failpoint("file.wal.halfWritten");
    }
    writeAll(this.#disk.files, file.handle, bytes.subarray(middle), file.bytes + middle);
    const end = file.bytes + bytes.length;
    if (end <= file.reserved) return;
    writeAll(this.#disk.files, file.handle, reserve, end);
    file.reserved = end + reserve.length;
  }
}

// A group is one write; only a test that wants to die in the middle of it gets two.
const writesInHalves = process.env.BOUGH_FAILPOINT?.startsWith("file.wal.halfWritten") ?? false;

export function walPath(number: number): string {
  return `${paths.wal}/${String(number).padStart(16, "0")}.log`;
}

function encodeHeader(number: number, oldest: number): Buffer {
  const text = `bough-wal\t${number}\t${oldest}\t`;
  return Buffer.from(`${text}${hex8(crc32(text))}\n`);
}

function encodeGroup(
  records: readonly (readonly FileOperation[])[],
  ticket: number,
  file: number,
  pieces: Uint8Array[],
): void {
  const body: Uint8Array[] = [];
  for (const record of records) encodeRecord(record, body);
  const bytes = body.reduce((sum, piece) => sum + piece.length, 0);
  const text = `group\t${ticket}\t${records.length}\t${bytes}\t`;
  pieces.push(Buffer.from(`${text}${hex8(crc32(text, file >>> 0))}\n`), ...body);
}

function encodeRecord(operations: readonly FileOperation[], pieces: Uint8Array[]): void {
  const payloads: Uint8Array[] = [];
  const heads = operations.map((operation) => encodeOperation(operation, payloads));
  const line = `${JSON.stringify(heads)}\n`;
  let crc = crc32(line);
  let bytes = Buffer.byteLength(line);
  for (const payload of payloads) {
    crc = crc32(payload, crc);
    bytes += payload.length;
  }
  pieces.push(Buffer.from(`${bytes}\t${hex8(crc)}\n${line}`), ...payloads);
}

/** An operation in the JSON line of its record; its bytes, if it has any, follow the line. */
export type OperationHead =
  | ["append", path: string, at: number, length: number]
  | ["write", path: string, length: number]
  | ["link", from: string, path: string]
  | ["remove", path: string]
  | ["remove-tree", path: string]
  | ["active", path: string, at: number];

function encodeOperation(operation: FileOperation, payloads: Uint8Array[]): OperationHead {
  switch (operation.kind) {
    case "append":
      payloads.push(operation.bytes);
      return ["append", operation.path, operation.at, operation.bytes.length];
    case "write":
      payloads.push(operation.bytes);
      return ["write", operation.path, operation.bytes.length];
    case "link":
      return ["link", operation.from, operation.path];
    case "active":
      return ["active", operation.path, operation.at];
    default:
      return [operation.kind, operation.path];
  }
}
