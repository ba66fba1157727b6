import type { Clock } from "../base/clock.ts";
import type { Ids } from "../base/ids.ts";
import type { Journal } from "../log/journal.ts";
import type { Store } from "../log/store.ts";
import type { Views } from "./views.ts";

/** What every command works with. */
export interface Context {
  readonly store: Store;
  readonly journal: Journal;
  readonly views: Views;
  readonly clock: Clock;
  readonly ids: Ids;
  /** The name under which this process claims runs; asked for when it is first needed, since most readers claim nothing. */
  readonly owner: () => string;
}

/** A session and one of its branches; the branch may be left out while the session has only one. */
export interface Scope {
  readonly sessionId: string;
  readonly branchId?: string;
}
