// One view that is kept: what is stored of it, how much memory it takes, and how facts are folded into it.

import type { Facts } from "../log/journal.ts";
import { type Ahead, adopt, foldNext } from "../projection/header.ts";
import { type BranchView, emptyView } from "../projection/index.ts";
import { stillSealed, visibleFrom } from "../projection/segment.ts";
import type { MessageIndex } from "./message-index.ts";
import { type Cuttable, sharedWith } from "./sealing.ts";
import type { Slot, ViewCache } from "./view-cache.ts";

/** What a view and each fact in it take besides their text, roughly. */
const viewBytes = 4096;
const factBytes = 512;
/** What a message takes that another view holds already. */
const pointerBytes = 8;

export interface Entry extends Slot, Cuttable {
  /** The first own fact of its branch; absent for a view that is not cached. */
  readonly born: string | undefined;
  index: MessageIndex | undefined;
}

/** What an entry is made of; `size` is that of its text. */
type NewEntry = Pick<Entry, "view" | "sealed" | "lastId"> &
  Partial<Pick<Entry, "unsealed" | "sealedFrom">> & { readonly size: number };

export const nothingFolded = () => ({ view: emptyView(), sealed: [], lastId: "", size: 0, behind: undefined });

/** An entry that `drop` takes out of its context. */
export function makeEntry(
  born: string | undefined,
  { view, sealed, lastId, size, unsealed = 0, sealedFrom }: NewEntry,
  drop: (entry: Entry) => void,
): Entry {
  const entry: Entry = {
    ...{ born, view, sealed, lastId, unsealed },
    sealedFrom: sealedFrom ?? (sealed.length > 0 ? visibleFrom(view) : 0),
    index: undefined,
    bytes: viewBytes + size + view.messages.length * factBytes,
    shares: [],
    usedAt: 0,
    heldUntil: 0,
    at: -1,
    drop: () => drop(entry),
  };
  return entry;
}

/** Counts what a fork's view takes by itself: messages are its parent's, so it has pointers. */
export function sizeFork(cache: ViewCache, entry: Entry, size: number): void {
  const { messages, turns } = entry.view;
  cache.resize(entry, viewBytes + size + (messages.length + turns.length) * pointerBytes);
}

/** Counts what was put in front of a view that held only a part. */
export function sizeFront(cache: ViewCache, entry: Entry, size: number, messages: number): void {
  cache.resize(entry, entry.bytes + size + messages * factBytes);
}

/** Folds facts into the entry's view. With `ahead`, they are folded already (Views-5). */
export function foldInto(cache: ViewCache, entry: Entry, { facts, size }: Facts, ahead?: Ahead): void {
  for (const fact of ahead ? facts.slice(-1) : facts) {
    // An append of this process may have extended the view while a page of the same facts was on its way.
    if (fact.seq <= entry.view.seq) continue;
    const { messages, turns } = entry.view;
    if (ahead) adopt(ahead);
    else foldNext(entry.view, fact);
    entry.lastId = fact.id;
    checkRewrite(cache, entry, { messages, turns });
  }
  entry.unsealed += size;
  cache.resize(entry, entry.bytes + size + facts.length * factBytes);
}

/** A revert replaced the arrays: sealed pieces hold only as far as nothing changed. */
function checkRewrite(cache: ViewCache, entry: Entry, before: Pick<BranchView, "messages" | "turns">): void {
  const { messages, turns } = entry.view;
  if (messages === before.messages && turns === before.turns) return;
  entry.sealed = stillSealed(entry.sealed, sharedWith(before, entry.view));
  entry.index = undefined;
  // What went is taken for as large as what stays; a cold load measures anew.
  const left = before.messages.length > 0 ? Math.min(1, messages.length / before.messages.length) : 1;
  cache.resize(entry, viewBytes + Math.ceil((entry.bytes - viewBytes) * left));
}
