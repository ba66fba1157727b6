// Incoming: content on its way in. Its bytes are on the disk before a record refers to them; what is never referred to is
// removed, here or, after a crash, at the next opening.
//
//   FileIncoming-1. A name is removed only while the store is open: the next owner of the directory gives the same names.

import { crc32 } from "node:zlib";
import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import { runningSha256 } from "../../base/sha256.ts";
import type { Disk } from "./disk.ts";
import { breathe } from "./files.ts";
import { paths } from "./layout.ts";
import { writeAll } from "./replace.ts";

const pieceSize = 1024 * 1024;

/** Bytes that are complete and on the disk. */
export interface BroughtBytes {
  readonly path: string;
  readonly id: string;
  readonly size: number;
  /** The checksum of the bytes. */
  readonly crc: number;
}

export class Incoming {
  readonly #disk: Disk;
  readonly #fail: (error: unknown) => BoughError;
  readonly #current = new Set<string>();
  #count = 0;
  #isClosed = false;

  /** `fail` turns a failed write into the error of the store. */
  constructor(disk: Disk, fail: (error: unknown) => BoughError) {
    this.#disk = disk;
    this.#fail = fail;
  }

  has(path: string): boolean {
    return this.#current.has(path);
  }

  /** Begins a file. */
  open(): IncomingFile {
    const path = `${paths.incoming}/${++this.#count}`;
    this.#current.add(path);
    try {
      return new IncomingFile(this.#disk, path, this.#fail);
    } catch (error) {
      this.#current.delete(path);
      throw this.#fail(error);
    }
  }

  /** The file's bytes are linked to their place, or not wanted. */
  done(file: IncomingFile): void {
    file.close();
    if (!this.#isClosed && this.#current.delete(file.path)) this.#discard(file.path);
  }

  /** After a failed write the record that links the bytes may be durable, so the next opening decides. */
  leave(file: IncomingFile): void {
    file.close();
    this.#current.delete(file.path);
  }

  /** FileIncoming-1. */
  close(): void {
    this.#isClosed = true;
  }

  #discard(path: string): void {
    try {
      if (!this.#disk.isLinked(path)) this.#disk.remove(path);
    } catch (error) {
      this.#fail(error);
    }
  }
}

/** One file that comes in, piece by piece. */
export class IncomingFile {
  readonly path: string;
  readonly #disk: Disk;
  readonly #fail: (error: unknown) => BoughError;
  readonly #hash = runningSha256();
  #handle: number | undefined;
  #size = 0;
  #crc = 0;
  #brought: BroughtBytes | undefined;

  constructor(disk: Disk, path: string, fail: (error: unknown) => BoughError) {
    this.path = path;
    this.#disk = disk;
    this.#fail = fail;
    // What a crash left there, or a link that would lead the bytes elsewhere.
    disk.remove(path);
    this.#handle = disk.files.open(disk.absolute(path), "new");
  }

  async add(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += pieceSize) {
      if (at > 0) await breathe();
      const piece = bytes.subarray(at, at + pieceSize);
      try {
        writeAll(this.#disk.files, this.#open(), piece, this.#size);
      } catch (error) {
        throw BoughError.is(error) ? error : this.#fail(error);
      }
      this.#size += piece.length;
      this.#crc = crc32(piece, this.#crc);
      this.#hash.update(piece);
    }
    failpoint("content.chunk");
  }

  /** Resolves when the bytes are on the disk under their name. */
  async finish(): Promise<BroughtBytes> {
    if (this.#brought) return this.#brought;
    const { files } = this.#disk;
    try {
      failpoint("file.replace.written");
      await files.datasync(this.#open());
      failpoint("file.replace.synced");
      await files.syncDirectory(this.#disk.absolute(paths.incoming));
    } catch (error) {
      throw BoughError.is(error) ? error : this.#fail(error);
    }
    this.close();
    this.#brought = { path: this.path, id: this.#hash.digest(), size: this.#size, crc: this.#crc };
    failpoint("content.finish");
    return this.#brought;
  }

  close(): void {
    if (this.#handle !== undefined) this.#disk.files.close(this.#handle);
    this.#handle = undefined;
  }

  #open(): number {
    if (this.#handle !== undefined) return this.#handle;
    throw new BoughError("invalid_argument", "The upload is over.");
  }
}
