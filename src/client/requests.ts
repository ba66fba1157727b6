// What is asked of the server, in the words of the agent's own methods.

import type { JsonObject } from "../base/json.ts";
import type { InputBody } from "../wire/schemas.ts";

/** Which branch, and which agent of the server works on it. */
export interface BranchScope {
  readonly agentId: string;
  readonly sessionId: string;
  /** Default "main". */
  readonly branchId?: string;
}

/** What a branch is called. */
export interface BranchDetails {
  readonly name?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly metadata?: JsonObject;
}

export interface BranchPatch {
  readonly name?: string | null;
  readonly description?: string | null;
  readonly tags?: readonly string[] | null;
  readonly metadata?: JsonObject;
}

export interface ForkRequest extends BranchDetails {
  /** The last message the fork shares; without a point, the latest. */
  readonly from?: string;
  /** Instead: how many messages it shares. */
  readonly fromMessageIndex?: number;
  /** Instead: the last position of the log it shares. */
  readonly fromSeq?: number;
  readonly newBranchId?: string;
  /** Branch-scoped state: as of the fork point (default), as it is now, or none. */
  readonly state?: "fork-point" | "current" | "none";
}

export interface RevertRequest {
  /** The last message that stays. */
  readonly to?: string;
  /** Instead: how many messages stay. */
  readonly toMessageIndex?: number;
  /** Instead: the position to go back to. */
  readonly toSeq?: number;
}

/** What someone says: a text, the parts of one message, or messages. Nothing resumes what was left open. */
export type Input = NonNullable<InputBody["input"]>;

export interface SubmitOptions extends Omit<InputBody, "input"> {
  /** Makes a repetition harmless; drawn by chance unless given. */
  readonly key?: string;
  readonly signal?: AbortSignal;
}

/** Which records of the audit log; all that are said must fit. */
export interface AuditRequest {
  /** Newest first (default), or oldest first: the way to follow the log. */
  readonly order?: "newest" | "oldest";
  /** The cursor of the page before, or the id of a record. */
  readonly after?: string;
  /** At most this many (default 100, at most 1,000). */
  readonly limit?: number;
  readonly session?: string;
  /** The name of a route, such as "submitInput". */
  readonly action?: string;
  readonly user?: string;
  readonly outcome?: "done" | "refused";
}
