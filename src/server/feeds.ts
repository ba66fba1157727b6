// Feeds: the branches that are being watched. A feed exists as long as it has readers.

import type { Clock } from "../base/clock.ts";
import type { BoughEvent } from "../events/index.ts";
import { RunningMessages } from "../live/index.ts";
import { branchKey } from "../log/branch-key.ts";
import type { Journal } from "../log/journal.ts";
import { refuse } from "../log/refusals.ts";
import type { BranchRef } from "../log/store.ts";
import type { RowHeader } from "../projection/header.ts";
import { needBranch } from "../sessions/branch-record.ts";
import type { Context } from "../sessions/context.ts";
import { readEvents } from "../sessions/history.ts";
import { Feed } from "./feed.ts";
import type { Reader } from "./reader.ts";

interface Watched {
  readonly feed: Feed;
  readers: number;
}

/** The branch that owns a branch; events are held back during the lookup. */
type Owner = { readonly ref: BranchRef | undefined } | { readonly waiting: BoughEvent[] };

const knownOwners = 1000;
/** Bounds the chain of owners: owners are not checked when a branch is created, so a program can create a cycle. */
const mostAncestors = 32;

export class Feeds {
  readonly #context: Context;
  readonly #clock: Clock;
  readonly #running = new RunningMessages();
  readonly #watched = new Map<string, Watched>();
  readonly #owners = new Map<string, Owner>();
  /** Journals, each with the function that ends the subscription. */
  readonly #journals = new Map<Journal, () => void>();

  constructor(context: Context) {
    this.#context = context;
    this.#clock = context.clock;
    this.hearJournal(context.journal);
  }

  /** Subscribes to a journal of this process, so that its facts need not be read from the log. */
  hearJournal(journal: Journal): void {
    if (this.#journals.has(journal)) return;
    const stop = journal.onWritten((ref, written) => this.#watched.get(branchKey(ref))?.feed.written(written));
    this.#journals.set(journal, stop);
  }

  /** Takes an event of an agent of this process. Never waits. */
  emitted(event: BoughEvent): void {
    const watched = this.#watched.get(branchKey(event));
    if (watched) watched.feed.emitted(event);
    else this.#running.note(event);
    if ((event.agent?.depth ?? 0) > 0 && this.#watched.size > 0) this.#toOwner(event, event);
  }

  /** Opens a reader of a branch after a cursor. Throws `position_not_on_branch` for a cursor past the newest event. */
  async open(
    ref: BranchRef,
    after: number,
    { bufferBytes, events = "tree" }: { bufferBytes: number; events?: "own" | "tree" },
  ): Promise<Reader> {
    const { seq } = await needBranch(this.#context.store, ref);
    if (after > seq) throw refuse.notOnBranch(ref, after, seq);
    const watched = this.#watch(ref, seq);
    watched.readers++;
    return watched.feed.join(after, { bufferBytes, events, onLeft: () => this.#left(ref, watched) });
  }

  /** Part of a session was deleted: its readers are ended before an id can be reused for another branch. */
  async deleted(sessionId: string): Promise<void> {
    const feeds = [...this.#watched.values()].map(({ feed }) => feed).filter((feed) => feed.sessionId === sessionId);
    await Promise.all(feeds.map((feed) => feed.settle()));
  }

  /** Ends all streams, after everything in the log was sent. */
  async close(): Promise<void> {
    await Promise.all([...this.#watched.values()].map(({ feed }) => feed.settle()));
    for (const { feed } of this.#watched.values()) feed.close("closing");
    this.#watched.clear();
    for (const stop of this.#journals.values()) stop();
    this.#journals.clear();
  }

  #watch(ref: BranchRef, head: number): Watched {
    const key = branchKey(ref);
    const known = this.#watched.get(key);
    if (known && !known.feed.isOver) return known;
    const source = {
      read: (options: Parameters<typeof readEvents>[2]) => readEvents(this.#context, ref, options),
      watch: (after: number, signal: AbortSignal) => this.#context.store.watch(ref, after, signal),
      settle: () => Promise.all([...this.#journals.keys()].map((journal) => journal.settle(ref))),
    };
    const { live } = this.#context.store;
    const feed = new Feed({ ref, head, source, running: this.#running, clock: this.#clock, live });
    const watched = { feed, readers: 0 };
    this.#watched.set(key, watched);
    return watched;
  }

  #left(ref: BranchRef, watched: Watched): void {
    watched.readers--;
    if (watched.readers > 0) return;
    watched.feed.close();
    const key = branchKey(ref);
    if (this.#watched.get(key) === watched) this.#watched.delete(key);
  }

  /** Events of an owned branch are also sent on its owner, and on that branch's owner. */
  #toOwner(of: BranchRef, event: BoughEvent): void {
    const passed = new Set<string>();
    let at = of;
    while (passed.size < mostAncestors) {
      const key = branchKey(at);
      passed.add(key);
      const owner = this.#owners.get(key);
      if (!owner) {
        this.#owners.set(key, { waiting: [event] });
        void this.#findOwner(at);
        return;
      }
      if ("waiting" in owner) owner.waiting.push(event);
      if ("waiting" in owner || !owner.ref || passed.has(branchKey(owner.ref))) return;
      this.#watched.get(branchKey(owner.ref))?.feed.emittedByChild(event);
      at = owner.ref;
    }
  }

  async #findOwner(of: BranchRef): Promise<void> {
    const key = branchKey(of);
    const record = await this.#context.store.getBranch(of).catch(() => undefined);
    const { owner } = (record?.header ?? {}) as RowHeader;
    const ref = owner && { sessionId: owner.sessionId, branchId: owner.branchId };
    const before = this.#owners.get(key);
    if (this.#owners.size > knownOwners) this.#owners.clear();
    this.#owners.set(key, { ref });
    if (ref && before && "waiting" in before) for (const event of before.waiting) this.#toOwner(of, event);
  }
}
