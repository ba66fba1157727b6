// BranchFiles: keeps every branch.json near its log, at a cost that does not grow with the number of appends.
//
//   BranchFiles-1. A branch has its branch.json as soon as it has its log, but for bursts of new branches. It is behind from
//       the moment its log or its segments change until its branch.json is written.
//   BranchFiles-2. branch.json shows only what is durable: it is written while nothing is in flight, or by a checkpoint.
//   BranchFiles-3. A checkpoint writes all that are behind. So whatever is behind when the process dies has its newest facts in the redo
//       log, and opening writes it anew (replay.ts).
//   BranchFiles-4. Between checkpoints a few files are written every moment, outside the redo log: a branch that is appended to all the
//       time costs one small write a moment, not one an append.

import { encodeBranch } from "./branch-document.ts";
import type { Change } from "./change.ts";
import type { Disk } from "./disk.ts";
import { inBranch } from "./layout.ts";
import type { BranchState } from "./state.ts";

const momentMs = 250;
const filesAtOnce = 16;

export class BranchFiles {
  readonly #disk: Disk;
  readonly #whenDurable: (write: () => void) => Promise<void>;
  readonly #behind = new Set<BranchState>();
  #timer: NodeJS.Timeout | undefined;
  /** Branches that began since the timer last fired. */
  #begun = 0;

  /** `whenDurable` runs a stretch while nothing is in flight, and rejects when nothing may be written any more. */
  constructor(disk: Disk, whenDurable: (write: () => void) => Promise<void>) {
    this.#disk = disk;
    this.#whenDurable = whenDurable;
  }

  /** Notes that the branch's file is behind. */
  note(branch: BranchState): void {
    this.#behind.add(branch);
    this.#timer ??= setTimeout(() => void this.#writeSome(), momentMs).unref();
  }

  /** Writes the file of a new branch together with its log. */
  begin(branch: BranchState, change: Change): void {
    // In a burst of forks the files come a few at a time, like all others.
    if (++this.#begun > filesAtOnce) {
      this.note(branch);
      return;
    }
    this.#timer ??= setTimeout(() => void this.#writeSome(), momentMs).unref();
    // As the branch is now: by the time it is durable, appends that are not may have changed it.
    const document = encodeBranch(this.#disk, branch);
    branch.shownTo = branch.log.end.offset;
    change.local.push(() => {
      try {
        this.#disk.write(inBranch.document(branch.path), document);
      } catch {
        this.note(branch);
      }
    });
  }

  forget(branch: BranchState): void {
    this.#behind.delete(branch);
  }

  /** Puts every file that is behind into the change of a checkpoint (BranchFiles-3). */
  writeAll(change: Change): void {
    for (const branch of this.#behind) {
      if (branch.damage) continue;
      change.write(inBranch.document(branch.path), encodeBranch(this.#disk, branch));
      branch.shownTo = branch.log.end.offset;
    }
    this.#behind.clear();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  async #writeSome(): Promise<void> {
    try {
      await this.#whenDurable(() => {
        for (const branch of [...this.#behind].slice(0, filesAtOnce)) this.#write(branch);
      });
    } catch {
      // The checkpoint meets the same failure and tells of it.
      return;
    } finally {
      this.#timer = undefined;
      this.#begun = 0;
    }
    const [next] = this.#behind;
    if (next) this.note(next);
  }

  #write(branch: BranchState): void {
    if (!branch.damage) this.#disk.write(inBranch.document(branch.path), encodeBranch(this.#disk, branch));
    branch.shownTo = branch.log.end.offset;
    this.#behind.delete(branch);
  }
}
