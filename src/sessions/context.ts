// Context: what commands work with on one store of one process: its journal, its views, and who asks.
//   Context-1. Contexts derived from one another share journal and views, so each fact is folded once and each view is kept once.
//   Context-2. Closing a derived context leaves the store open: the store is closed by the context that was created on it.

import { type Clock, systemClock } from "../base/clock.ts";
import { checkId, FreshIds, type Ids, randomIds } from "../base/ids.ts";
import { checkOptions, checkSpelling, number, object, optionKeys, optionTable, text } from "../base/options.ts";
import { processOwner } from "../base/owner.ts";
import { Journal } from "../log/journal.ts";
import type { Store } from "../log/store.ts";
import { type ContentLimits, completeLimits } from "./content-limits.ts";
import { ContentUsage } from "./content-usage.ts";
import { Staging } from "./staging.ts";
import { ViewCache } from "./view-cache.ts";
import { Views } from "./views.ts";

/** What every command works with. */
export interface Context {
  readonly store: Store;
  readonly journal: Journal;
  readonly views: Views;
  readonly clock: Clock;
  readonly ids: FreshIds;
  /** The name under which this process claims runs; asked for when it is first needed, since most readers claim nothing. */
  readonly owner: () => string;
  /** Under which complete turns wait to be saved. */
  readonly staging: Staging;
  readonly contentLimits: ContentLimits;
  /** Of all sessions of the store. */
  readonly contentUsage: ContentUsage;
  /** Finishes what is under way and, unless the context is derived (Context-2), closes the store. */
  readonly close: () => Promise<void>;
}

/** Ports and limits of `openSessions`. */
export interface SessionsOptions {
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** The name that claims of branches carry (default: this host and process). */
  readonly owner?: string;
  /** Bytes of conversations cached in memory (default 256 MiB, at most an eighth of the heap limit). */
  readonly cacheBytes?: number;
  /** How much content may be stored (default: 100 MB for a file, no other limit). */
  readonly contentLimits?: Partial<ContentLimits>;
}

const sessionsTable = optionTable<SessionsOptions>({
  clock: object,
  ids: object,
  owner: text,
  cacheBytes: number,
  contentLimits: object,
});

/** Refuses invalid options of `openSessions` (`invalid_argument`). */
export function checkSessionsOptions(options: SessionsOptions): void {
  checkOptions("The options of openSessions", options, sessionsTable);
}

/** A context of its own on a store. Several may be given one cache, so that their views share a budget. */
export function createContext(
  store: Store,
  options: SessionsOptions,
  cache = new ViewCache(options.cacheBytes),
): Context {
  const { clock = systemClock } = options;
  const ids = new FreshIds(options.ids ?? randomIds);
  const owner = () => options.owner ?? processOwner();
  const journal = new Journal(store);
  const views = new Views({ store, journal, clock, cache });
  const staging = new Staging(owner);
  const close = async () => {
    await settle(staging, views);
    await store.close();
  };
  const contentLimits = completeLimits(options.contentLimits);
  const contentUsage = new ContentUsage(store, clock);
  return { store, journal, views, clock, ids, owner, staging, contentLimits, contentUsage, close };
}

/** The context of another user of the same store (Context-1), such as one agent of several; what `options` leave out is inherited. */
export function deriveContext(context: Context, options: Omit<SessionsOptions, "cacheBytes">): Context {
  const { clock = context.clock } = options;
  const ids = options.ids ? new FreshIds(options.ids) : context.ids;
  const owner = () => options.owner ?? context.owner();
  const staging = new Staging(owner);
  const contentLimits = completeLimits(options.contentLimits, context.contentLimits);
  return { ...context, clock, ids, owner, staging, contentLimits, close: () => settle(staging, context.views) };
}

async function settle(staging: Staging, views: Views): Promise<void> {
  staging.close();
  await views.settle();
}

/** A session and one of its branches. The branch may be omitted while the session has only one. */
export interface ScopeObject {
  readonly sessionId: string;
  readonly branchId?: string;
}

/** Names a branch: a session id, or a session id and a branch id. */
export type Scope = string | ScopeObject;

const scopeKeys = optionKeys<ScopeObject>({ sessionId: true, branchId: true });

/** The ids in a scope, checked. A scope may be a larger object, such as an interrupted run, but its ids can't be misspelt. */
export function readScope(scope: Scope): ScopeObject {
  checkSpelling("A scope", scope, scopeKeys);
  const { sessionId, branchId } = typeof scope === "string" ? { sessionId: scope, branchId: undefined } : (scope ?? {});
  checkId(sessionId, "session");
  if (branchId === undefined) return { sessionId };
  checkId(branchId, "branch");
  return { sessionId, branchId };
}
