// PassingFiles: files that come and go with a turn.
//
//   PassingFiles-1. A file is in the redo log first. It is in its place at once, unless more than a few came in the same moment: then
//       it is once it has stayed a moment, or at the checkpoint. Hundreds of short turns a second should not pay for files.
//   PassingFiles-2. It is a spare file, written and then renamed into its place, and renamed back when it goes. To make and to remove
//       one costs several times as much, and ext4 passes over all files that were removed in the last minutes when it makes one.
//   PassingFiles-3. Spare files are of no use to the next process. They may hold bytes of what was deleted, so they are gone when
//       a tree is.

import { failpoint } from "../../base/failpoint.ts";
import { isMissing } from "./files.ts";
import { paths } from "./layout.ts";

/** What it needs of the disk; none of these asks whether the file is a passing one. */
export interface PlainFiles {
  write(path: string, bytes: Uint8Array): void;
  /** Fails when there is no such file. */
  move(from: string, to: string): void;
  remove(path: string): void;
}

const momentMs = 50;
const placedAtOnce = 16;
const sparesKept = 64;

export class PassingFiles {
  readonly #files: PlainFiles;
  /** Files that are not in their place yet. */
  readonly #waiting = new Map<string, { readonly bytes: Uint8Array; stayed: boolean }>();
  /** How many came since the timer last fired. */
  #came = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #spares: string[] = [];
  #spared = 0;

  constructor(files: PlainFiles) {
    this.#files = files;
  }

  /** The bytes of a file that is not in its place yet. */
  find(path: string): Uint8Array | undefined {
    return this.#waiting.get(path)?.bytes;
  }

  /** The names below a directory of what is not in its place yet. */
  *namesIn(directory: string): Generator<string> {
    for (const path of this.#waiting.keys()) {
      if (path.startsWith(`${directory}/`)) yield path.slice(directory.length + 1).split("/")[0]!;
    }
  }

  write(path: string, bytes: Uint8Array): void {
    this.#timer ??= setTimeout(() => this.#placeStayed(), momentMs).unref();
    if (++this.#came <= placedAtOnce) this.place(path, bytes);
    else this.#waiting.set(path, { bytes, stayed: false });
  }

  remove(path: string): void {
    if (this.#waiting.delete(path)) return;
    if (this.#spares.length === sparesKept) {
      this.#files.remove(path);
      return;
    }
    const spare = `${paths.spare}/${++this.#spared}`;
    try {
      this.#files.move(path, spare);
      this.#spares.push(spare);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }

  place(path: string, bytes: Uint8Array): void {
    this.#waiting.delete(path);
    const spare = this.#spares.pop();
    this.#files.write(spare ?? path, bytes);
    if (spare === undefined) return;
    failpoint("file.spare.written");
    this.#files.move(spare, path);
  }

  placeAll(): void {
    for (const [path, { bytes }] of this.#waiting) this.place(path, bytes);
  }

  /** Forgets the files below a directory that goes (PassingFiles-3). */
  forgetTree(directory: string): void {
    for (const path of this.#waiting.keys()) if (path.startsWith(`${directory}/`)) this.#waiting.delete(path);
    this.#dropSpares();
  }

  close(): void {
    clearTimeout(this.#timer);
    try {
      this.#dropSpares();
    } catch {
      // The next opening removes them.
    }
  }

  /** Places those that were here the last time, too; the others get their moment. */
  #placeStayed(): void {
    this.#timer = undefined;
    this.#came = 0;
    try {
      for (const [path, file] of this.#waiting) {
        if (file.stayed) this.place(path, file.bytes);
        file.stayed = true;
      }
    } catch {
      // The checkpoint meets the same failure and tells of it.
      return;
    }
    if (this.#waiting.size > 0) this.#timer = setTimeout(() => this.#placeStayed(), momentMs).unref();
  }

  #dropSpares(): void {
    for (const spare of this.#spares.splice(0)) this.#files.remove(spare);
  }
}
