// Who acts. Low enough for a run to carry it; only the server makes one from a request.

/**
 * What a credential allows. "run" starts and interrupts runs and returns results of client tools, "approve" answers a
 * run's questions, "admin" changes agents and reads the audit log.
 */
export type Scope = "read" | "write" | "run" | "approve" | "admin";
export const scopes: readonly Scope[] = ["read", "write", "run", "approve", "admin"];

/** The sender of a request. */
export interface Identity {
  /** The tenant. Only its sessions and agents are visible. */
  readonly tenant: string;
  /** Stored with answers to interactions and in the audit log. */
  readonly user?: string;
  readonly scopes: readonly Scope[];
  /** A label of the credential for the audit log. Never the secret. */
  readonly credential?: string;
}
