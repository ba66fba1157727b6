// Options of the client's methods.

import type { BranchRunOptions } from "../wire/handle.ts";

/** The ids that name a branch of a server. */
export interface BranchScopeObject {
  /** The server's agent that works on the branch (default: the client's `agentId`). */
  readonly agentId?: string | undefined;
  readonly sessionId: string;
  /** Default "main". */
  readonly branchId?: string | undefined;
}

/** Names a branch of a server: a session id, or an object with the ids. */
export type BranchScope = string | BranchScopeObject;

/** Options of `submit` that only a server has. */
export interface SubmitOptions extends BranchRunOptions {
  /** An idempotency key (random by default), so that retries never start a second run. */
  readonly key?: string;
  /** What happens while a turn is open (default "reject"). */
  readonly ifActive?: "reject" | "queue" | "steer" | "interrupt";
}

/** Selects records of the audit log; all conditions must hold. */
export interface AuditRequest {
  /** Newest first (default), or oldest first, to follow the log. */
  readonly order?: "newest" | "oldest";
  /** The cursor of the previous page, or the id of a record. */
  readonly after?: string;
  /** At most this many (default 100, at most 1,000). */
  readonly limit?: number;
  readonly session?: string;
  /** The name of a route, such as "submitInput". */
  readonly action?: string;
  readonly user?: string;
  readonly outcome?: "done" | "refused";
}

/** Which sessions to list, and what to tell of them. */
export interface SessionsRequest {
  readonly metadata?: Readonly<Record<string, string>>;
  /** Words that the title has to contain. */
  readonly title?: string;
  readonly include?: readonly ("title" | "marks" | "branches" | "usage")[];
  readonly limit?: number;
  readonly cursor?: string;
}
