// Place: the file behind a connection, as the file system names it.
//
//   Place-1. SQLite goes on writing to a file that was removed or replaced under it, so a commit is answered only while the path
//       still leads to that file and to its log. While they are open no other file gets their numbers.
//   Place-2. Files are looked at by name, never opened: closing a descriptor of our own would take SQLite's locks away.

import { realpathSync, statSync } from "node:fs";
import { BoughError } from "../../base/errors.ts";
import { onlyHandle, openName } from "../../base/open-name.ts";
import type { Connection } from "./connection.ts";
import { corrupt } from "./faults.ts";

const frameHeader = 24;

export class Place {
  readonly #path: string;
  readonly #file: OpenFile;
  readonly #log: OpenFile;

  /** For a connection that has just been opened. */
  constructor(path: string) {
    this.#path = realpathSync(path);
    this.#file = new OpenFile(this.#path);
    this.#log = new OpenFile(`${this.#path}-wal`);
  }

  /** `store_unavailable` when what was just written is not where the next opening would look for it (Place-1). */
  check(): void {
    if (this.#log.isThere() && this.#file.isThere()) return;
    throw new BoughError(
      "store_unavailable",
      `"${this.#path}" or its log was removed or replaced while the store was open, so recent writes are lost; reopen the store.`,
      { data: { path: this.#path, reason: "removed" } },
    );
  }
}

/** A file that SQLite holds open, or will once it first writes. */
class OpenFile {
  readonly #path: string;
  #identity: string | undefined;
  /** Undefined until it was looked for; null if this process opened the file several times, and so this one's is not known. */
  #handle: number | undefined | null;

  constructor(path: string) {
    this.#path = path;
    this.#identity = identityOf(path);
  }

  /** Whether its path still leads to it. */
  isThere(): boolean {
    if (typeof this.#handle === "number" && openName(this.#handle) === this.#path) return true;
    const found = identityOf(this.#path);
    this.#identity ??= found;
    if (found === undefined || found !== this.#identity) return false;
    if (this.#handle !== null) this.#handle = onlyHandle(this.#path) ?? null;
    return true;
  }
}

/** Is the same as long as the file exists or is open, and no other file's. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}

/** `store_corrupt` when the file is shorter than a database can be, or ends within a page. */
export function checkLength(path: string, size: number, pageSize: number | undefined): void {
  const isWhole = size >= 512 && (pageSize === undefined || size % pageSize === 0);
  // A crash may leave part of a page behind; the log then has all of it.
  if (isWhole || (size >= 512 && lengthOf(`${path}-wal`) > 0)) return;
  throw cutOff(path, size);
}

/** `store_corrupt` when the file and its log together have fewer pages than the database. */
export function checkPages(connection: Connection, path: string): void {
  const count = () => connection.pragma("page_count") as number;
  const pageSize = connection.pragma("page_size") as number;
  const before = count();
  // In this order, because other processes move pages from the log to the file, and may take away those at its end.
  const logged = lengthOf(`${path}-wal`) / (pageSize + frameHeader);
  const size = lengthOf(path);
  if (size / pageSize + logged < Math.min(before, count())) throw cutOff(path, size);
}

function lengthOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function cutOff(path: string, size: number) {
  return corrupt(`"${path}" is cut off: it ends after ${size} bytes.`, { path, size });
}
