// Disk: the store's directory as the rest of the store sees it. Applies file operations, reads, and knows what is not on
// the disk yet. Does not decide what is written (operations do) nor when it is made durable (commit and checkpoint do).
//
//   Disk-1. Every path below is relative to the store's directory.
//   Disk-2. A file or directory changed here is in `dirty` until a checkpoint took it: none is forgotten.
//   Disk-3. Handles are opened, used and closed within one synchronous stretch or by this cache, so none is used after its
//       close.
//   Disk-4. apply() is idempotent: applying the same operations again, in order, from any later state, ends in the same state.
//   Disk-5. A file that is written as `passing` may be in its place a moment later (passing-files.ts); what is read and listed here
//       has it at once: who only looks must not meet a full disk.

import { dirname } from "node:path";
import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import { refuse } from "../../log/index.ts";
import { errnoOf, type Files, isMissing } from "./files.ts";
import { paths } from "./layout.ts";
import { PassingFiles } from "./passing-files.ts";
import { atomicReplace, writeAll } from "./replace.ts";

/** A physical change, as it stands in the redo log. */
export type FileOperation =
  /** Puts bytes at an offset, which is the end of the file when it happens first. */
  | { readonly kind: "append"; readonly path: string; readonly at: number; readonly bytes: Uint8Array }
  /** Makes these bytes the whole file. */
  | { readonly kind: "write"; readonly path: string; readonly bytes: Uint8Array; readonly passing?: true }
  /** Gives a file that is on the disk a second name; the first goes when the second is on the disk too. */
  | { readonly kind: "link"; readonly from: string; readonly path: string }
  | { readonly kind: "remove"; readonly path: string; readonly passing?: true }
  | { readonly kind: "remove-tree"; readonly path: string }
  /** When the session was last active; the checkpoint writes it into the session's document. */
  | { readonly kind: "active"; readonly path: string; readonly at: number };

/** What was changed and is not known to be on the disk. */
export interface Dirty {
  readonly files: Set<string>;
  readonly directories: Set<string>;
  /** What was removed: these paths may not be used again before a checkpoint (see commit.ts, FileCommit-5). */
  readonly removed: Set<string>;
  /** Files that got a second name, by that name. */
  readonly linked: Map<string, string>;
}

const openHandles = 256;
const smallFile = 16 * 1024;

export class Disk {
  readonly files: Files;
  readonly base: string;
  readonly #handles = new Map<string, number>();
  /** First names that may not go yet. */
  readonly #linked = new Set<string>();
  readonly #passing: PassingFiles;
  #dirty: Dirty = nothingDirty();
  #trashed = 0;
  #emptying: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(files: Files, base: string) {
    this.files = files;
    this.base = base;
    this.#passing = new PassingFiles({
      write: (path, bytes) => this.#writePlain(path, bytes),
      move: (from, to) => this.#move(from, to),
      remove: (path) => this.remove(path),
    });
  }

  /** Makes the store's own directory, and those above it that are missing. */
  async ensureBase(path = this.base): Promise<void> {
    try {
      if (!this.files.makeDirectory(path)) return;
    } catch (error) {
      if (!isMissing(error) || dirname(path) === path) throw error;
      await this.ensureBase(dirname(path));
      return this.ensureBase(path);
    }
    await this.files.syncDirectory(dirname(path));
  }

  absolute(path: string): string {
    return `${this.base}/${path}`;
  }

  /** Up to `length` bytes from `at`; fewer only where the file ends, none where there is none. */
  read(path: string, at: number, length: number): Buffer {
    return this.#readAt(path, at, length) ?? Buffer.alloc(0);
  }

  /** Undefined when there is no file. */
  #readAt(path: string, at: number, length: number): Buffer | undefined {
    try {
      const handle = this.#handle(path);
      const into = Buffer.allocUnsafe(length);
      let done = this.files.read(handle, into, at);
      for (let got = done; got > 0 && done < length; done += got) {
        got = this.files.read(handle, into.subarray(done), at + done);
      }
      return done < length ? into.subarray(0, done) : into;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw this.#unreadable(path, error);
    }
  }

  /** The whole file; undefined when there is none. */
  readWhole(path: string): Buffer | undefined {
    const passing = this.#passing.find(path);
    if (passing) return Buffer.from(passing);
    // Most are small, and to ask for their size costs more than to read them.
    const start = this.#readAt(path, 0, smallFile);
    return start && start.length === smallFile ? this.#readAt(path, 0, this.size(path) ?? 0) : start;
  }

  size(path: string): number | undefined {
    try {
      return this.files.size(this.#handle(path));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw this.#unreadable(path, error);
    }
  }

  /** The names in a directory (Disk-5). */
  list(path: string): string[] {
    this.#checkOpen();
    try {
      return [...new Set([...this.files.list(this.absolute(path)), ...this.#passing.namesIn(path)])];
    } catch (error) {
      throw this.#unreadable(path, error);
    }
  }

  apply(operations: readonly FileOperation[]): void {
    for (const [i, operation] of operations.entries()) {
      if (i > 0) failpoint("file.apply.between");
      this.#applyOne(operation);
    }
  }

  write(path: string, bytes: Uint8Array): void {
    if (this.#passing.find(path)) this.#passing.place(path, bytes);
    else this.#writePlain(path, bytes);
  }

  #writePlain(path: string, bytes: Uint8Array): void {
    const handle = this.#handleFor(path);
    writeAll(this.files, handle, bytes, 0);
    this.files.truncate(handle, bytes.length);
    this.#dirty.files.add(path);
  }

  /** Replaces a file at once and for good, outside the redo log. */
  async replace(path: string, bytes: Uint8Array): Promise<void> {
    // A handle of the old file would go on reading the old bytes.
    this.#forgetFile(path);
    await atomicReplace(this.files, this.absolute(path), bytes);
  }

  truncate(path: string, size: number): void {
    this.files.truncate(this.#handle(path), size);
    this.#dirty.files.add(path);
  }

  /** Removes a file if it is there. */
  remove(path: string): void {
    this.#forgetFile(path);
    if (this.#ifThere(() => this.files.unlink(this.absolute(path)))) this.#dirty.directories.add(dirname(path));
  }

  ensureDirectory(path: string): void {
    const parent = dirname(path);
    try {
      if (this.files.makeDirectory(this.absolute(path))) this.#dirty.directories.add(parent);
    } catch (error) {
      if (!isMissing(error) || parent === path) throw error;
      this.ensureDirectory(parent);
      this.ensureDirectory(path);
    }
  }

  /** Whether the path was removed and that is not known to be on the disk. */
  isRemoved(path: string): boolean {
    return this.#dirty.removed.has(path);
  }

  get dirtyCount(): number {
    return this.#dirty.files.size + this.#dirty.directories.size;
  }

  takeDirty(): Dirty {
    this.#passing.placeAll();
    const dirty = this.#dirty;
    this.#dirty = nothingDirty();
    return dirty;
  }

  /** Whether the file got a second name that is not known to be on the disk. */
  isLinked(from: string): boolean {
    return this.#linked.has(from);
  }

  /** Drops the first names of files whose second ones are on the disk. */
  dropLinked({ linked }: Dirty): void {
    for (const from of linked.values()) {
      this.#linked.delete(from);
      this.remove(from);
    }
  }

  /** Erases what was moved to the trash; one at a time, so that no two remove the same. */
  emptyTrash(): Promise<void> {
    this.#emptying = this.#emptying.then(async () => {
      for (const name of this.list(paths.trash)) await this.files.removeTree(this.absolute(`${paths.trash}/${name}`));
    });
    return this.#emptying;
  }

  close(): void {
    this.#closed = true;
    this.#passing.close();
    for (const handle of this.#handles.values()) this.files.close(handle);
    this.#handles.clear();
  }

  #applyOne(operation: FileOperation): void {
    const { path } = operation;
    switch (operation.kind) {
      case "append":
        writeAll(this.files, this.#handleFor(path, operation.at === 0), operation.bytes, operation.at);
        this.#dirty.files.add(path);
        return;
      case "write":
        if (operation.passing) this.#passing.write(path, operation.bytes);
        else this.write(path, operation.bytes);
        return;
      case "link":
        this.#link(operation.from, path);
        return;
      case "remove":
        this.#dirty.removed.add(path);
        this.#unlinkSource(path);
        if (operation.passing) this.#passing.remove(path);
        else this.remove(path);
        return;
      case "remove-tree":
        this.#dirty.removed.add(path);
        this.#trash(path);
        return;
      case "active":
        return;
    }
  }

  /** A first name that is not there was dropped when the second was safe (Disk-4). */
  #link(from: string, to: string): void {
    this.ensureDirectory(dirname(to));
    const [source, target] = [this.absolute(from), this.absolute(to)];
    try {
      if (!this.files.link(source, target)) {
        this.remove(to);
        this.files.link(source, target);
      }
    } catch (error) {
      if (isMissing(error)) return;
      throw error;
    }
    this.#dirty.files.add(to);
    this.#dirty.directories.add(dirname(to));
    this.#dirty.linked.set(to, from);
    this.#linked.add(from);
  }

  /** Gives a file another name; a directory that is missing is made. */
  #move(from: string, to: string): void {
    const rename = () => this.files.rename(this.absolute(from), this.absolute(to));
    this.#forgetFile(to);
    if (!this.#ifThere(rename)) {
      this.ensureDirectory(dirname(to));
      rename();
    }
    const handle = this.#handles.get(from);
    if (handle !== undefined) this.#handles.set(to, handle);
    this.#handles.delete(from);
    // Spare files need not be on the disk.
    if (this.#dirty.files.delete(from) && dirname(to) !== paths.spare) this.#dirty.files.add(to);
    this.#dirty.directories.add(dirname(from)).add(dirname(to));
  }

  #trash(path: string): void {
    this.#passing.forgetTree(path);
    const to = `${paths.trash}/${++this.#trashed}`;
    this.#forgetTree(path);
    for (const linked of this.#dirty.linked.keys()) if (linked.startsWith(`${path}/`)) this.#unlinkSource(linked);
    if (!this.#ifThere(() => this.files.rename(this.absolute(path), this.absolute(to)))) return;
    this.#dirty.directories.add(dirname(path)).add(paths.trash);
  }

  #unlinkSource(to: string): void {
    const from = this.#dirty.linked.get(to);
    if (from === undefined) return;
    this.#dirty.linked.delete(to);
    this.#linked.delete(from);
    this.remove(from);
  }

  #ifThere(change: () => void): boolean {
    try {
      change();
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  /** A handle for writing, of a file that may have to be made; `probablyNew` saves asking for it in vain. */
  #handleFor(path: string, probablyNew = false): number {
    if (!probablyNew || this.#handles.has(path)) {
      try {
        return this.#handle(path);
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    }
    this.ensureDirectory(dirname(path));
    this.#dirty.directories.add(dirname(path));
    return this.#keep(path, this.files.open(this.absolute(path), "create"));
  }

  #handle(path: string): number {
    this.#checkOpen();
    const known = this.#handles.get(path);
    if (known === undefined) return this.#keep(path, this.files.open(this.absolute(path), "existing"));
    this.#handles.delete(path);
    this.#handles.set(path, known);
    return known;
  }

  #keep(path: string, handle: number): number {
    this.#handles.set(path, handle);
    if (this.#handles.size > openHandles) {
      const [oldest, itsHandle] = this.#handles.entries().next().value!;
      this.#handles.delete(oldest);
      this.files.close(itsHandle);
    }
    return handle;
  }

  /** Lets go of a file before it goes away. */
  #forgetFile(path: string): void {
    const handle = this.#handles.get(path);
    if (handle === undefined) return;
    this.#handles.delete(path);
    this.files.close(handle);
  }

  #forgetTree(path: string): void {
    const below = `${path}/`;
    for (const opened of this.#handles.keys()) {
      if (opened === path || opened.startsWith(below)) this.#forgetFile(opened);
    }
  }

  /** A failed read is reported as damage, unless the system was only out of handles or memory. */
  #unreadable(path: string, error: unknown): unknown {
    const reason = errnoOf(error);
    if (reason === undefined || reason === "ENOENT" || BoughError.is(error)) return error;
    const isBusy = ["EMFILE", "ENFILE", "EAGAIN", "ENOMEM"].includes(reason);
    const where = this.absolute(path);
    return new BoughError(isBusy ? "store_busy" : "store_corrupt", `Can't read ${where} (${reason}).`, {
      data: { path: where, reason },
      retryable: isBusy,
      cause: error,
    });
  }

  #checkOpen(): void {
    if (this.#closed) throw refuse.closed();
  }
}

function nothingDirty(): Dirty {
  return { files: new Set(), directories: new Set(), removed: new Set(), linked: new Map() };
}
