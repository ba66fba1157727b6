import { type Clock, systemClock } from "../base/clock.ts";
import { type Ids, randomIds } from "../base/ids.ts";
import { checkSpelling, optionKeys } from "../base/options.ts";
import { processOwner } from "../base/owner.ts";
import { Journal } from "../log/journal.ts";
import type { Store } from "../log/store.ts";
import { Staging } from "./staging.ts";
import { ViewCache } from "./view-cache.ts";
import { Views } from "./views.ts";

/** What every command works with. */
export interface Context {
  readonly store: Store;
  readonly journal: Journal;
  readonly views: Views;
  readonly clock: Clock;
  readonly ids: Ids;
  /** The name under which this process claims runs; asked for when it is first needed, since most readers claim nothing. */
  readonly owner: () => string;
  /** Under which complete turns wait to be saved. */
  readonly staging: Staging;
}

export interface SessionsOptions {
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** The name under which branches are held; by default this host and process. */
  readonly owner?: string;
  /** Bytes of conversations kept in memory (default 256 MiB, at most an eighth of the heap's limit). */
  readonly cacheBytes?: number;
}

type Shared = Pick<Context, "journal" | "views">;

const sharing = new WeakMap<Store, Shared>();

export function createContext(store: Store, options: SessionsOptions): Context {
  const { clock = systemClock, ids = randomIds, cacheBytes } = options;
  const owner = () => options.owner ?? processOwner();
  const { journal, views } = sharing.get(store) ?? createViews(store, clock, new ViewCache(cacheBytes));
  return { store, journal, views, clock, ids, owner, staging: new Staging(owner) };
}

/** From now on, contexts on this very store object keep each view once, in the cache given, instead of one each. */
export function shareViews(store: Store, clock: Clock, cache: ViewCache): void {
  sharing.set(store, createViews(store, clock, cache));
}

function createViews(store: Store, clock: Clock, cache: ViewCache): Shared {
  const journal = new Journal(store);
  return { journal, views: new Views({ store, journal, clock, cache }) };
}

/** A session and one of its branches; the branch may be left out while the session has only one. */
export interface Scope {
  readonly sessionId: string;
  readonly branchId?: string;
}

const scopeKeys = optionKeys<Scope>({ sessionId: true, branchId: true });

/** A scope may be a larger object, such as a run that was left; but not one whose ids are misspelt. */
export function checkScope(scope: Scope): void {
  checkSpelling("A scope", scope, scopeKeys);
}
