import type { Store } from "./store.ts";

/** A part of a store: the sessions of one space (StoreSessionQuery), under ids without it. */
export interface StorePart {
  readonly whole: Store;
  /** "" for the sessions of no space. */
  readonly space: string;
}

const parts = new WeakMap<Store, StorePart>();

/** Says what a store is a part of, so that what looks at several parts can look at the whole once. */
export function notePart(store: Store, part: StorePart): void {
  parts.set(store, part);
}

/** What a store is a part of; its own whole, unless something else was said. */
export function partOf(store: Store): StorePart {
  return parts.get(store) ?? { whole: store, space: "" };
}
