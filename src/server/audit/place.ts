// Where audit records are: a namespace for each tenant, in it a session for each day (UTC), its branch main the day's log. All nodes
// append to the same one. Old days go as a whole.

import type { Store } from "../../log/store.ts";
import { NamespacedStore, namespaceOf } from "../namespace.ts";

const room = "audit";
/** Metadata by which the days of all tenants are found. */
export const auditMark = { "~audit": "day" };

/**
 * The part of a store that holds a tenant's audit log. That of the tenant "" also has what is no tenant's: requests without a valid
 * credential.
 */
export function auditStore(store: Store, tenant: string): Store {
  return new NamespacedStore(store, namespaceOf(room, tenant));
}

export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
