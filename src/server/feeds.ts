// Feeds: which branches are being watched. A feed lives as long as somebody reads it.

import type { Clock } from "../base/clock.ts";
import type { BoughEvent } from "../events/index.ts";
import { branchKey, RunningMessages } from "../live/index.ts";
import { refuse } from "../log/refusals.ts";
import type { BranchRef } from "../log/store.ts";
import type { RowHeader } from "../projection/header.ts";
import type { Context } from "../sessions/context.ts";
import { readEvents } from "../sessions/history.ts";
import { needBranch } from "../sessions/views.ts";
import { Feed } from "./feed.ts";
import type { Reader } from "./reader.ts";

interface Watched {
  readonly feed: Feed;
  readers: number;
}

/** Which branch a subagent's branch belongs to; events wait while that is looked up. */
type Parent = { readonly ref: BranchRef | undefined } | { readonly waiting: BoughEvent[] };

const knownParents = 1000;
/** Metadata is anybody's to write, and may name parents in a circle. */
const mostAncestors = 32;

export class Feeds {
  readonly #context: Context;
  readonly #clock: Clock;
  readonly #running = new RunningMessages();
  readonly #watched = new Map<string, Watched>();
  readonly #parents = new Map<string, Parent>();

  constructor(context: Context) {
    this.#context = context;
    this.#clock = context.clock;
  }

  /** Takes what an agent of this process emits. Never waits. */
  emitted(event: BoughEvent): void {
    const watched = this.#watched.get(branchKey(event));
    if (watched) watched.feed.emitted(event);
    else this.#running.note(event);
    if ((event.agent?.depth ?? 0) > 0 && this.#watched.size > 0) this.#toParent(event, event);
  }

  /** A reader of a branch after a cursor. `position_not_on_branch` for a cursor past its newest event. */
  async open(ref: BranchRef, after: number, { bufferBytes }: { bufferBytes: number }): Promise<Reader> {
    const { seq } = await needBranch(this.#context.store, ref);
    if (after > seq) throw refuse.notOnBranch(ref, after, seq);
    const watched = this.#watch(ref, seq);
    watched.readers++;
    return watched.feed.join(after, { bufferBytes, onLeft: () => this.#left(ref, watched) });
  }

  /** Something of a session was deleted: its readers hear of it before an id can come to mean another branch. */
  async deleted(sessionId: string): Promise<void> {
    const feeds = [...this.#watched.values()].map(({ feed }) => feed).filter((feed) => feed.sessionId === sessionId);
    await Promise.all(feeds.map((feed) => feed.settle()));
  }

  /** Ends all streams, once they were told all that is in the log. */
  async close(): Promise<void> {
    await Promise.all([...this.#watched.values()].map(({ feed }) => feed.settle()));
    for (const { feed } of this.#watched.values()) feed.close("closing");
    this.#watched.clear();
  }

  #watch(ref: BranchRef, head: number): Watched {
    const key = branchKey(ref);
    const known = this.#watched.get(key);
    if (known && !known.feed.isOver) return known;
    const source = {
      read: (options: Parameters<typeof readEvents>[2]) => readEvents(this.#context, ref, options),
      watch: (after: number, signal: AbortSignal) => this.#context.store.watch(ref, after, signal),
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

  /** A subagent's events are seen on the branch that called it, and on the one that called that. */
  #toParent(of: BranchRef, event: BoughEvent): void {
    const passed = new Set<string>();
    let at = of;
    while (passed.size < mostAncestors) {
      const key = branchKey(at);
      passed.add(key);
      const parent = this.#parents.get(key);
      if (!parent) {
        this.#parents.set(key, { waiting: [event] });
        void this.#findParent(at);
        return;
      }
      if ("waiting" in parent) parent.waiting.push(event);
      if ("waiting" in parent || !parent.ref || passed.has(branchKey(parent.ref))) return;
      this.#watched.get(branchKey(parent.ref))?.feed.emittedByChild(event);
      at = parent.ref;
    }
  }

  async #findParent(of: BranchRef): Promise<void> {
    const key = branchKey(of);
    const record = await this.#context.store.getBranch(of).catch(() => undefined);
    const { kind, parentSessionId, parentBranchId } = (record?.header as RowHeader | undefined)?.metadata ?? {};
    const isChild = kind === "subagent" && typeof parentSessionId === "string" && typeof parentBranchId === "string";
    const ref = isChild ? { sessionId: parentSessionId, branchId: parentBranchId } : undefined;
    const before = this.#parents.get(key);
    if (this.#parents.size > knownParents) this.#parents.clear();
    this.#parents.set(key, { ref });
    if (ref && before && "waiting" in before) for (const event of before.waiting) this.#toParent(of, event);
  }
}
