// Committer: the only way anything is changed. Takes all operations that are waiting, decides them in order, makes them
// durable with one write and one sync of the redo log, applies them to the files, and only then answers.
//
//   FileCommit-1. Nothing is answered, applied or seen by a reader before it is on the disk.
//   FileCommit-2. Operations are decided in the order they came; each sees what those before it decided, also in its own group.
//   FileCommit-3. A refusal undoes and rejects its own operation only.
//   FileCommit-4. The first failure of a write or a sync is the last write: everything not answered is undone in memory and rejected,
//       and so is whatever comes later, until the directory is opened again. Reading goes on.
//   FileCommit-5. A path whose removal is still in the redo log is not used again: replaying the removal would remove its successor.
//       The operation that wants it waits for a checkpoint.
//   FileCommit-6. While a checkpoint makes what lies behind it durable, groups go on into a new file of the redo log.

import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import { refuse } from "../../log/index.ts";
import { Change, PathHeld } from "./change.ts";
import type { Dirty, Disk } from "./disk.ts";
import { breathe, errnoOf } from "./files.ts";
import type { Identity } from "./identity.ts";
import { syncAll } from "./sync.ts";
import { Wal } from "./wal.ts";

interface Waiting {
  readonly decide: (change: Change) => unknown;
  resolve(value: unknown): void;
  readonly reject: (error: unknown) => void;
}

interface Decided extends Omit<Waiting, "decide"> {
  readonly change: Change;
  readonly result: unknown;
}

export interface CommitOptions {
  /** Puts what only memory knows (branch documents, activity times) into a change, before a file of the redo log goes. */
  readonly snapshot: (change: Change) => void;
  /** Runs after a checkpoint, while nothing is in flight. */
  readonly afterCheckpoint: () => void;
}

const checkpointBytes = 16 * 1024 * 1024;
const checkpointDirty = 4096;
/** Where groups wait for a checkpoint that is slower than they are. */
const waitBytes = 4 * checkpointBytes;
const largestGroup = 1024;
const largestGroupBytes = 8 * 1024 * 1024;

export class Committer {
  readonly #disk: Disk;
  readonly #identity: Identity;
  readonly #wal: Wal;
  readonly #options: CommitOptions;
  readonly #queue: Waiting[] = [];
  #held: Waiting[] = [];
  #draining: Promise<void> | undefined;
  #flight: Promise<void> | undefined;
  #checkpoint: Promise<void> | undefined;
  #sealed: Dirty | undefined;
  #failure: BoughError | undefined;
  #closed = false;

  constructor(disk: Disk, identity: Identity, options: CommitOptions) {
    this.#disk = disk;
    this.#identity = identity;
    this.#wal = new Wal(disk, () => identity.next());
    this.#options = options;
  }

  /** Runs a decision in its turn; resolves with what it returned when its change is durable and can be seen. */
  submit<T>(decide: (change: Change) => T): Promise<T> {
    if (this.#closed) return Promise.reject(refuse.closed());
    return this.#enqueue(decide, (waiting) => this.#queue.push(waiting));
  }

  /** Runs a synchronous look at memory while all of it is durable (FileCommit-1). */
  async look<T>(see: () => T): Promise<T> {
    while (this.#flight) await this.#flight;
    if (this.#closed) throw refuse.closed();
    return see();
  }

  /** Runs a synchronous stretch that writes outside the redo log, while all of memory is durable and writing goes on (FileCommit-4). */
  whenDurable(write: () => void): Promise<void> {
    return this.look(() => {
      if (this.#failure) throw this.#failure;
      write();
    });
  }

  /** Makes everything done so far durable outside the redo log. */
  async checkpoint(): Promise<void> {
    while (this.#checkpoint) await this.#checkpoint;
    if (this.#failure) throw this.#failure;
    this.#checkpoint = this.#runCheckpoint()
      .catch((error) => void this.fail(error))
      .finally(() => {
        this.#checkpoint = undefined;
        this.#queue.unshift(...this.#held.splice(0));
        this.#start();
      });
    await this.#checkpoint;
    if (this.#failure) throw this.#failure;
  }

  /** Answers what was submitted, empties the redo log and lets go of it. */
  async close(): Promise<void> {
    this.#closed = true;
    try {
      while (this.#draining || this.#checkpoint) await (this.#draining ?? this.#checkpoint);
      // The first may leave snapshots in the redo log; the second leaves nothing.
      while (!this.#failure && (!this.#wal.isEmpty || this.#disk.dirtyCount > 0)) {
        await this.checkpoint();
        while (this.#draining) await this.#draining;
      }
    } catch (error) {
      if (error !== this.#failure) throw error;
    } finally {
      this.#wal.close();
    }
  }

  #enqueue<T>(decide: (change: Change) => T, add: (waiting: Waiting) => void): Promise<T> {
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      add({ decide, resolve, reject });
      this.#start();
    });
  }

  #start(): void {
    if (this.#draining || this.#queue.length === 0) return;
    this.#draining = this.#drain().finally(() => {
      this.#draining = undefined;
      this.#start();
    });
  }

  async #drain(): Promise<void> {
    // Operations that are ready at the same time share the group, including those of callers answered a moment ago.
    for (await breathe(); this.#queue.length > 0; await breathe()) {
      if (this.#identity.isLow) await this.#renew().catch((error) => this.fail(error));
      const group = this.#decideGroup();
      if (group.length > 0) await this.#commit(group);
      if (this.#failure) continue;
      await this.#checkpointIfDue();
    }
  }

  async #renew(): Promise<void> {
    this.#wal.checkDirectory();
    await this.#identity.renew();
  }

  async #checkpointIfDue(): Promise<void> {
    const { bytes } = this.#wal;
    if (!this.#checkpoint) {
      const due = bytes > checkpointBytes || this.#disk.dirtyCount > checkpointDirty || this.#held.length > 0;
      if (due) this.checkpoint().catch(() => {});
    } else if (bytes > waitBytes) {
      // Its snapshots are in the first group after the seal, so it does not wait for this loop any more.
      await this.#checkpoint;
    }
  }

  #decideGroup(): Decided[] {
    const group: Decided[] = [];
    const isRemoved = (path: string) => this.#isRemoved(path, group);
    let bytes = 0;
    while (this.#queue.length > 0 && group.length < largestGroup && bytes < largestGroupBytes) {
      const one = this.#queue.shift()!;
      const change = new Change(this.#disk, isRemoved);
      try {
        const result = one.decide(change);
        group.push({ change, result, resolve: one.resolve, reject: one.reject });
        bytes += change.bytes;
      } catch (error) {
        change.revert();
        if (error instanceof PathHeld) this.#held.push(one);
        else one.reject(error);
      }
    }
    return group;
  }

  #isRemoved(path: string, group: readonly Decided[]): boolean {
    if (this.#disk.isRemoved(path) || this.#sealed?.removed.has(path)) return true;
    return group.some(({ change }) => change.removes(path));
  }

  async #commit(group: readonly Decided[]): Promise<void> {
    const records = group.map(({ change }) => change.operations).filter((operations) => operations.length > 0);
    let land = () => {};
    let applied = false;
    try {
      if (records.length > 0) {
        this.#flight = new Promise((resolve) => {
          land = resolve;
        });
        await this.#wal.write(records);
      }
      failpoint("file.apply.before");
      for (const { change } of group) {
        this.#disk.apply(change.operations);
        for (const write of change.local) write();
      }
      failpoint("file.apply.done");
      applied = true;
    } catch (error) {
      for (const { change } of [...group].reverse()) change.revert();
      this.fail(error);
      for (const { reject } of group) reject(this.#failure);
    } finally {
      this.#flight = undefined;
      land();
    }
    if (!applied) return;
    for (const { change } of group) for (const done of change.done) done();
    for (const one of group) this.#answer(one);
  }

  #answer({ change, result, resolve, reject }: Decided): void {
    if (change.after.length === 0) {
      resolve(result);
      return;
    }
    const all = change.after.reduce((before, after) => before.then(after), Promise.resolve());
    all.then(
      () => resolve(result),
      (error) => reject(this.fail(error)),
    );
  }

  async #runCheckpoint(): Promise<void> {
    while (this.#flight) await this.#flight;
    failpoint("file.checkpoint.before");
    this.#wal.seal();
    const dirty = this.#disk.takeDirty();
    this.#sealed = dirty;
    const snapshotted = this.#enqueue(this.#options.snapshot, (waiting) => this.#queue.unshift(waiting));
    await Promise.all([snapshotted, syncAll(this.#disk, dirty)]);
    failpoint("file.checkpoint.synced");
    await this.#wal.dropSealed();
    this.#sealed = undefined;
    failpoint("file.checkpoint.done");
    while (this.#flight) await this.#flight;
    this.#options.afterCheckpoint();
  }

  /** Ends all writing (FileCommit-4); returns the error that every later operation gets. */
  fail(error: unknown): BoughError {
    if (BoughError.is(error, "store_unavailable")) this.#failure ??= error;
    if (!this.#failure) {
      const reason = errnoOf(error) ?? "unknown";
      this.#failure = new BoughError(
        "store_read_only",
        `The store in ${this.#disk.base} stopped accepting writes after an error (${reason}); reopen it to continue.`,
        { cause: error, data: { reason, path: this.#disk.base } },
      );
    }
    for (const { reject } of [...this.#queue.splice(0), ...this.#held.splice(0)]) reject(this.#failure);
    return this.#failure;
  }
}
