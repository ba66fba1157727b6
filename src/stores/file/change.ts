import type { Disk, FileOperation } from "./disk.ts";

/** What one operation does to the files, and how memory follows. */
export class Change {
  readonly #disk: Disk;
  readonly #isRemoved: (path: string) => boolean;
  readonly operations: FileOperation[] = [];
  /** Changes of files that need not survive power loss; they go with the group but not through the redo log. */
  readonly local: (() => void)[] = [];
  readonly undo: (() => void)[] = [];
  /** Runs when the change can be seen. */
  readonly done: (() => void)[] = [];
  /** Runs when the change is done and before it is answered. */
  readonly after: (() => Promise<void>)[] = [];
  #removesTrees = false;

  constructor(disk: Disk, isRemoved: (path: string) => boolean) {
    this.#disk = disk;
    this.#isRemoved = isRemoved;
  }

  /** About how much it adds to its group. */
  get bytes(): number {
    let sum = 0;
    for (const each of this.operations) if (each.kind === "append" || each.kind === "write") sum += each.bytes.length;
    return sum;
  }

  write(path: string, bytes: Uint8Array): void {
    this.operations.push({ kind: "write", path, bytes });
  }

  /** Writes a file that comes and goes (passing-files.ts); there may be none in its place. */
  writePassing(path: string, bytes: Uint8Array): void {
    this.operations.push({ kind: "write", path, bytes, passing: true });
  }

  removeTree(path: string): void {
    this.operations.push({ kind: "remove-tree", path });
    if (!this.#removesTrees) this.after.push(() => this.#disk.emptyTrash());
    this.#removesTrees = true;
  }

  /** Takes memory back to where it was. */
  revert(): void {
    for (const back of this.undo.reverse()) back();
  }

  /** Whether the change removes this path. */
  removes(path: string): boolean {
    return this.operations.some(
      (each) => each.path === path && (each.kind === "remove" || each.kind === "remove-tree"),
    );
  }

  /** Puts the operation off until the path may be used again (commit.ts, FileCommit-5). */
  needs(path: string): void {
    if (this.#isRemoved(path)) throw new PathHeld();
  }
}

/** Thrown by a decision that has to wait for a checkpoint. */
export class PathHeld extends Error {}
