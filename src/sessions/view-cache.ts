// ViewCache: the views that are kept in memory, of one context or of several, within a budget of bytes.
//   ViewCache-1. What is kept stays within the budget; only what is in use may exceed it.
//   ViewCache-2. A view in use is never evicted: one whose branch a turn of this process holds, or that is being loaded.
//   ViewCache-3. Of three views drawn at random the least recently used is evicted. Strict LRU would miss every time when slightly
//       more branches than fit are used in turn.
//   ViewCache-4. What views share is counted once, whole, until the last of them is removed: a fork's view points at its parent's
//       messages. So the sum is never less than what is kept. It may be more, when only a fork of the beginning is left.
//   ViewCache-5. No turn begins on a view of more than `largest`: one conversation alone must not fill the memory.

import { BoughError } from "../base/errors.ts";
import { nodeModule } from "../base/node.ts";

/** What several views hold together. */
interface Share {
  readonly bytes: number;
  /** How many views that are kept hold it. */
  holders: number;
}

/** A view's place in the cache. */
export interface Slot {
  /** What it takes by itself, roughly. */
  bytes: number;
  /** What it holds together with others (ViewCache-4). */
  shares: readonly Share[];
  usedAt: number;
  /** Until then a turn holds its branch (ViewCache-2). */
  heldUntil: number;
  /** Its index among the slots; -1 when it is not kept. */
  at: number;
  /** Removes the view from the context that keeps it here. */
  readonly drop: () => void;
}

const mostByDefault = 256 * 1024 * 1024;
const largestByDefault = 64 * 1024 * 1024;
const drawn = 3;
/** Less than this is not shared but counted for each: a share for every turn between two forks would cost more than it says. */
const leastShared = 64 * 1024;
/** How often a victim is drawn when all that were drawn are in use; the next growth tries again. */
const draws = 16;

/** Where it is not known what the heap may grow to: less than the smallest of the usual limits, 128 MiB. */
const elsewhere = 16 * 1024 * 1024;

/** 256 MiB, but at most an eighth of what the heap may grow to. */
export function defaultCacheBytes(): number {
  const heap = nodeModule<typeof import("node:v8")>("node:v8")?.getHeapStatistics().heap_size_limit;
  return heap === undefined ? elsewhere : Math.min(mostByDefault, Math.floor(heap / 8));
}

/** What one conversation of a server may take: 64 MiB, but at most an eighth of what the heap may grow to. */
export function defaultConversationBytes(): number {
  return Math.min(largestByDefault, defaultCacheBytes());
}

export class ViewCache {
  readonly budget: number;
  /** What one view may take for a turn to begin on it. */
  readonly largest: number;
  readonly #slots: Slot[] = [];
  #bytes = 0;
  #tick = 0;
  #chance = 1;

  constructor(budget = defaultCacheBytes(), largest = Number.POSITIVE_INFINITY) {
    if (!(budget >= 0)) throw new BoughError("invalid_argument", "cacheBytes must be a number of bytes, ≥ 0.");
    this.budget = budget;
    this.largest = largest;
  }

  /** Whether a view takes more than it may (ViewCache-5), what it holds together with others included. */
  isTooLarge({ bytes, shares }: Pick<Slot, "bytes" | "shares">): boolean {
    return shares.reduce((sum, share) => sum + share.bytes, bytes) > this.largest;
  }

  /** What is kept now, in bytes and in views. */
  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#slots.length;
  }

  /** Keeps it, as the one used last. */
  touch(slot: Slot): void {
    slot.usedAt = ++this.#tick;
    if (slot.at >= 0) return;
    slot.at = this.#slots.length;
    this.#slots.push(slot);
    this.#bytes += slot.bytes;
    for (const share of slot.shares) if (share.holders++ === 0) this.#bytes += share.bytes;
  }

  remove(slot: Slot): void {
    if (slot.at < 0) return;
    const last = this.#slots.pop()!;
    if (last !== slot) {
      this.#slots[slot.at] = last;
      last.at = slot.at;
    }
    slot.at = -1;
    this.#bytes -= slot.bytes;
    for (const share of slot.shares) if (--share.holders === 0) this.#bytes -= share.bytes;
  }

  /** Has a slot that is not kept yet hold what another one holds (ViewCache-4). */
  share(from: Slot, to: Slot): void {
    if (from.bytes >= leastShared) {
      const isKept = from.at >= 0;
      const share: Share = { bytes: from.bytes, holders: isKept ? 1 : 0 };
      if (isKept) this.#bytes += share.bytes;
      from.shares = [...from.shares, share];
      this.resize(from, 0);
    }
    to.bytes += from.bytes;
    to.shares = from.shares;
  }

  resize(slot: Slot, bytes: number): void {
    if (slot.at >= 0) this.#bytes += bytes - slot.bytes;
    slot.bytes = bytes;
  }

  /** Makes room (ViewCache-1), by anything but the slot given and what is held at this time (ViewCache-2). */
  evict(now: number, keep?: Slot): void {
    for (let tries = 0; this.#bytes > this.budget && tries < draws; ) {
      const victim = this.#draw(now, keep);
      if (victim) victim.drop();
      else tries++;
    }
  }

  /** ViewCache-3. */
  #draw(now: number, keep: Slot | undefined): Slot | undefined {
    let oldest: Slot | undefined;
    for (let i = 0; i < drawn; i++) {
      const slot = this.#slots[this.#next(this.#slots.length)]!;
      if (!slot || slot === keep || slot.heldUntil > now) continue;
      if (!oldest || slot.usedAt < oldest.usedAt) oldest = slot;
    }
    return oldest;
  }

  /** Chance enough for this, and the same in every run: a linear congruential generator. */
  #next(below: number): number {
    this.#chance = (Math.imul(this.#chance, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#chance / 2 ** 32) * below);
  }
}
