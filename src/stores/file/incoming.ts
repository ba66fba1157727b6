// Incoming: content on its way in. Its bytes are on the disk before a record refers to them; what is never referred to is
// removed, here or, after a crash, at the next opening.

import { BoughError } from "../../base/errors.ts";
import type { Disk } from "./disk.ts";
import { paths } from "./layout.ts";
import { writeSynced } from "./replace.ts";

export class Incoming {
  readonly #disk: Disk;
  readonly #fail: (error: unknown) => BoughError;
  readonly #current = new Set<string>();
  #count = 0;

  /** `fail` says how a failed write is told. */
  constructor(disk: Disk, fail: (error: unknown) => BoughError) {
    this.#disk = disk;
    this.#fail = fail;
  }

  has(path: string): boolean {
    return this.#current.has(path);
  }

  /** Writes the bytes, lets `use` link them to their place, and removes them if it did not. */
  async bring<T>(bytes: Uint8Array, use: (path: string) => Promise<T>): Promise<T> {
    const path = `${paths.incoming}/${++this.#count}`;
    this.#current.add(path);
    try {
      await this.#write(path, bytes).catch((error) => {
        throw this.#fail(error);
      });
      const result = await use(path);
      this.#discard(path);
      return result;
    } catch (error) {
      // After a failed write the record that links the bytes may be durable, so the next opening decides.
      if (!BoughError.is(error, "store_read_only")) this.#discard(path);
      throw error;
    } finally {
      this.#current.delete(path);
    }
  }

  #discard(path: string): void {
    try {
      if (!this.#disk.isLinked(path)) this.#disk.remove(path);
    } catch (error) {
      this.#fail(error);
    }
  }

  async #write(path: string, bytes: Uint8Array): Promise<void> {
    const { files } = this.#disk;
    await writeSynced(files, this.#disk.absolute(path), bytes);
    await files.syncDirectory(this.#disk.absolute(paths.incoming));
  }
}
