// Who acts. Low enough for a run to carry it; only the server makes one from a request.

/**
 * What a credential allows. "run" starts and interrupts runs and returns the results of a client's own tools, "approve"
 * answers questions of a run, "admin" changes agents and reads the audit log.
 */
export type Scope = "read" | "write" | "run" | "approve" | "admin";
export const scopes: readonly Scope[] = ["read", "write", "run", "approve", "admin"];

/** Who a request comes from. */
export interface Identity {
  /** The tenant whose sessions and agents are seen; those of others are not. */
  readonly tenant: string;
  /** Kept with answers to interactions and in the audit log. */
  readonly user?: string;
  readonly scopes: readonly Scope[];
  /** A label of the credential for the audit log. Never the secret itself. */
  readonly credential?: string;
}
