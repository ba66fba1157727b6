/**
 * The file system as the file store uses it. Every durable step goes through here, so that a test can fail, shorten or
 * count any of them. Paths are absolute. Errors carry `code` as Node's do.
 *
 * Reads and writes are synchronous: they touch the page cache, which takes microseconds, and a trip to the thread pool
 * would queue them behind the disk syncs that fill it. What waits for the disk (`datasync`, `syncDirectory`,
 * `removeTree`) is asynchronous.
 */
export interface Files {
  /**
   * A handle for reading and writing. "create" makes the file, for its owner only, when it is not there; "new" makes it and
   * fails when the name is taken. A symbolic link is refused (`store_unsupported`), not followed.
   */
  open(path: string, how: "existing" | "create" | "new"): number;
  /** Reads into the whole of `into` from `at`; returns how many bytes there were. */
  read(handle: number, into: Uint8Array, at: number): number;
  /** Writes at `at`; may write less than it was given and says how much. */
  write(handle: number, bytes: Uint8Array, at: number): number;
  size(handle: number): number;
  /**
   * What tells the file with this name from all others that exist or are open; undefined when there is none. Left out where
   * no other process can remove or replace a file.
   */
  identity?(path: string): string | undefined;
  /** The path of an open file, as long as it leads to it; undefined where the system does not tell. */
  openName?(handle: number): string | undefined;
  truncate(handle: number, size: number): void;
  close(handle: number): void;
  /** Resolves when the file's bytes and length are on the disk. Never called again on a file where it failed. */
  datasync(handle: number): Promise<void>;
  /** Makes one directory, for its owner only; false when it is there already. Its parent must exist. */
  makeDirectory(path: string): boolean;
  /** Throws `store_unsupported` when another user could change what is in the directory. */
  checkOwner(path: string): void;
  /** The names in a directory; none when it does not exist. A symbolic link among them is refused. */
  list(path: string): string[];
  rename(from: string, to: string): void;
  /** Gives a file a second name, or makes a copy where it can't have one; false when the name is taken. */
  link(from: string, to: string): boolean;
  unlink(path: string): void;
  removeTree(path: string): Promise<void>;
  /** Resolves when the directory's entries are on the disk. */
  syncDirectory(path: string): Promise<void>;
  /** Takes the kernel's lock for this process; undefined if another process has it. */
  lock(path: string): Promise<(() => void) | undefined>;
}

export function errnoOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : undefined;
}

export function isMissing(error: unknown): boolean {
  return errnoOf(error) === "ENOENT";
}

/** Lets everything else that is ready run. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
