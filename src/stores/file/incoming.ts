// Incoming: content on its way in. Its bytes are on the disk before a record refers to them; what is never referred to is
// removed, here or, after a crash, at the next opening.

import type { BoughError } from "../../base/errors.ts";
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

  /** Writes the bytes, lets `use` move them to their place, and removes them if it did not. */
  async bring<T>(bytes: Uint8Array, use: (path: string) => Promise<T>): Promise<T> {
    const path = `${paths.incoming}/${++this.#count}`;
    this.#current.add(path);
    try {
      await this.#write(path, bytes).catch((error) => {
        throw this.#fail(error);
      });
      return await use(path);
    } finally {
      this.#current.delete(path);
      this.#disk.remove(path);
    }
  }

  async #write(path: string, bytes: Uint8Array): Promise<void> {
    const { files } = this.#disk;
    this.#disk.ensureDirectory(paths.incoming);
    await writeSynced(files, this.#disk.absolute(path), bytes);
    await files.syncDirectory(this.#disk.absolute(paths.incoming));
  }
}
