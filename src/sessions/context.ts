import { type Clock, systemClock } from "../base/clock.ts";
import { type Ids, randomIds } from "../base/ids.ts";
import { checkSpelling, optionKeys } from "../base/options.ts";
import { processOwner } from "../base/owner.ts";
import { Journal } from "../log/journal.ts";
import type { Store } from "../log/store.ts";
import { Staging } from "./staging.ts";
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
}

export function createContext(store: Store, options: SessionsOptions): Context {
  const { clock = systemClock, ids = randomIds } = options;
  const owner = () => options.owner ?? processOwner();
  const journal = new Journal(store);
  return { store, journal, views: new Views(store, journal), clock, ids, owner, staging: new Staging(owner) };
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
