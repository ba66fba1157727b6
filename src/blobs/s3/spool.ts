// Spool: the bytes of an upload until they are sent. They are hashed first, so that equal bytes never travel, and a part that
// failed is sent again.
//   Spool-1. It holds at most `inMemory` bytes in memory. Longer ones are in a file that has no name any more, so it goes with the
//       process, however that ends.

import { createHash } from "node:crypto";
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Spool {
  readonly #inMemory: number;
  readonly #hash = createHash("sha256");
  #pieces: Uint8Array[] = [];
  #size = 0;
  #file: FileHandle | undefined;
  #isClosed = false;

  constructor(inMemory: number) {
    this.#inMemory = inMemory;
  }

  get size(): number {
    return this.#size;
  }

  digest(): string {
    return this.#hash.copy().digest("hex");
  }

  async add(chunk: Uint8Array): Promise<void> {
    this.#hash.update(chunk);
    const at = this.#size;
    this.#size += chunk.length;
    if (!this.#file && this.#size <= this.#inMemory) {
      this.#pieces.push(new Uint8Array(chunk));
      return;
    }
    if (!this.#file) await this.#toFile();
    await writeAll(this.#file!, chunk, at);
  }

  /** The bytes of a range, at most those of one part. */
  async read(from: number, to: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(to - from);
    if (this.#file) {
      for (let done = 0; done < bytes.length; ) {
        const { bytesRead } = await this.#file.read(bytes, done, bytes.length - done, from + done);
        if (bytesRead === 0) throw new Error("The file of an upload became shorter.");
        done += bytesRead;
      }
      return bytes;
    }
    let at = 0;
    for (const piece of this.#pieces) {
      const [start, end] = [Math.max(from - at, 0), Math.min(to - at, piece.length)];
      if (start < end) bytes.set(piece.subarray(start, end), at + start - from);
      at += piece.length;
    }
    return bytes;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#pieces = [];
    await this.#file?.close().catch(() => {});
  }

  /** Spool-1. */
  async #toFile(): Promise<void> {
    const directory = await mkdtemp(join(tmpdir(), "bough-upload-"));
    try {
      this.#file = await open(join(directory, "bytes"), "wx+", 0o600);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
    let at = 0;
    for (const piece of this.#pieces) {
      await writeAll(this.#file, piece, at);
      at += piece.length;
    }
    this.#pieces = [];
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
}
