// Where audit records are stored: each tenant has a namespace with a session per day (UTC), whose branch main is the day's log. All nodes
// append to the same one. Expired days are deleted as a whole.

import type { Store } from "../../log/store.ts";
import { NamespacedStore, namespaceOf } from "../../stores/namespaced/index.ts";

const room = "audit";
/** Metadata that marks the days of all tenants. */
export const auditMark = { "~audit": "day" };

/**
 * The part of a store that holds a tenant's audit log. That of the tenant "" also has requests without a valid
 * credential.
 */
export function auditStore(store: Store, tenant: string): Store {
  return new NamespacedStore(store, namespaceOf(room, tenant));
}

export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
