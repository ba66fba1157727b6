// What answers look like. The server's own types are wider; these are the promise.

import type { JsonObject } from "../base/json.ts";
import type { Message } from "../events/index.ts";
import type { AgentConfig } from "./schemas.ts";

export interface SessionBody {
  readonly id: string;
  readonly createdAt: number;
  readonly lastActivity: number;
  readonly version: number;
  readonly metadata: JsonObject;
}

export interface SessionListBody {
  readonly sessions: readonly SessionBody[];
  readonly cursor?: string;
}

/** A branch among others. */
export interface BranchSummary {
  readonly sessionId: string;
  readonly id: string;
  readonly name?: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly metadata: JsonObject;
  readonly createdAt: number;
  readonly lastActivity: number;
  /** The newest position of its log: a cursor. */
  readonly seq: number;
  readonly messageCount: number;
  readonly openTurnId?: string;
  readonly forkedFrom?: string;
  readonly forkedAtMessageId?: string;
  readonly forkedAtMessageIndex?: number;
  readonly forkedAtSeq?: number;
  readonly totalForks: number;
  readonly siblingIndex: number;
  readonly totalSiblings: number;
  readonly previousSibling?: string;
  readonly nextSibling?: string;
}

/** One branch, with the branches it comes from and those that come from it. */
export interface BranchBody extends BranchSummary {
  /** The nearest 1,000, the direct parent last. */
  readonly ancestors: readonly string[];
  readonly totalAncestors: number;
  /** The oldest 1,000 direct forks, of `totalForks`. */
  readonly children: readonly string[];
}

export interface BranchListBody {
  readonly branches: readonly BranchSummary[];
  readonly cursor?: string;
}

/** A branch with those forked from it. */
export interface TreeBody extends BranchSummary {
  readonly forks: readonly TreeBody[];
}

export interface RunBody {
  readonly runId: string;
  readonly agentId?: string;
  readonly sessionId: string;
  readonly branchId: string;
  readonly turnId: string;
  /**
   * "open": its turn has no end and nobody works on it; an input without text resumes it. "parked": the same, and the turn
   * waits for an answer, which resumes it.
   */
  readonly status: "active" | "open" | "parked" | "completed" | "interrupted" | "failed";
  readonly startedAt: number;
  readonly endedAt?: number;
}

/** A permission that holds in a session until it is revoked. */
export interface PermissionBody {
  /** The agent it holds for; absent for agents without an id, which share it. */
  readonly agentId?: string;
  readonly tool: string;
  readonly decision: "allow" | "deny";
  readonly by?: string;
  readonly at: number;
  /** The question that was answered with "always". */
  readonly interactionId?: string;
}

export interface InteractionBody {
  readonly id: string;
  readonly kind: "permission" | "clarification" | "continuation" | "client-tool";
  readonly request: JsonObject;
  readonly openedAt: number;
  readonly turnId?: string;
  readonly callId?: string;
  readonly expiresAt?: number;
}

/** A question that waits for an answer, and where. */
export interface OpenInteractionBody extends InteractionBody {
  readonly sessionId: string;
  readonly branchId: string;
  /** The agent and the run that last worked on its turn. */
  readonly agentId?: string;
  readonly runId?: string;
}

export interface InteractionListBody {
  readonly interactions: readonly OpenInteractionBody[];
  readonly cursor?: string;
}

/** A branch at one position. Events after `seq` are what this does not show. */
export interface StateBody {
  readonly seq: number;
  readonly branch: Omit<BranchSummary, "totalForks" | "siblingIndex" | "totalSiblings">;
  /** The newest messages of closed turns. */
  readonly messages: readonly Message[];
  /** There are earlier messages: those before this one, to be asked for as `before` of the messages. */
  readonly before?: string;
  /** The turn without an end, with its messages so far. */
  readonly openTurn?: { readonly id: string; readonly startedAt: number; readonly messages: readonly Message[] };
  readonly interactions: readonly InteractionBody[];
  readonly activeRun: RunBody | null;
}

/** A page of messages, oldest first. */
export interface MessagesBody {
  readonly messages: readonly Message[];
  /** Pass it to get what came earlier; absent at the beginning. */
  readonly before?: string;
}

export interface InputAnswer {
  /** The id of the first message it adds. */
  readonly inputId: string;
  readonly status: "started" | "queued";
  /** Of an input that started. */
  readonly runId?: string;
}

export interface InterruptAnswer {
  readonly status: "accepted" | "already_terminal" | "no_active_run" | "active_run_mismatch";
  /** The run that was interrupted, is over, or is active instead. */
  readonly runId?: string;
}

export interface ResponseAnswer {
  readonly interactionId: string;
  /** The run that went on because of the answer, when none was waiting. */
  readonly runId?: string;
}

export interface CheckpointBody {
  readonly id: string;
  readonly sessionId: string;
  readonly branchId: string;
  readonly seq: number;
  readonly createdAt: number;
  readonly step: number;
  readonly messageIndex: number;
  readonly source: string;
  readonly turnId?: string;
  readonly label?: string;
}

export interface ContentBody {
  readonly id: string;
  readonly uri: string;
  readonly size: number;
  readonly mediaType: string;
  readonly name?: string;
  readonly createdAt: number;
  readonly branchId: string;
}

export interface AgentSummary {
  readonly id: string;
  readonly name?: string;
  /** "code": given to the server; "stored": created over HTTP. */
  readonly source: "code" | "stored";
  readonly createdAt?: number;
  readonly updatedAt?: number;
  readonly metadata?: JsonObject;
}

export interface AgentBody extends AgentSummary {
  /** Of a stored agent. */
  readonly config?: AgentConfig;
}

/** One request to the server and its outcome. */
export interface AuditRecord {
  /** Its place in the log: a cursor. */
  readonly id: string;
  readonly at: number;
  /** The name of the route; "unknown" when there is none, "audit.lost" for records that are not there. */
  readonly action: string;
  readonly requestId?: string;
  readonly transport?: "http" | "socket";
  readonly user?: string;
  /** A label of the credential. */
  readonly credential?: string;
  /** The other end of the connection: a proxy's, when there is one. */
  readonly address?: string;
  readonly agentId?: string;
  readonly sessionId?: string;
  readonly branchId?: string;
  readonly runId?: string;
  readonly checkpointId?: string;
  readonly contentId?: string;
  readonly interactionId?: string;
  /** The id of what the request created. */
  readonly createdId?: string;
  /** The permission mode that an input asked for. */
  readonly mode?: "ask" | "allow" | "deny";
  /** How a permission or a continuation was answered. */
  readonly decision?: "approved" | "always" | "denied";
  /** The HTTP status of the answer. */
  readonly status?: number;
  /** The code of a refusal. */
  readonly code?: string;
  /** How many records are missing: "full" for want of room, "limited" because they came too fast. */
  readonly lost?: number;
  readonly reason?: "full" | "limited";
}

export interface AuditPage {
  readonly records: readonly AuditRecord[];
  /** Leads to the next page. Newest first, absent on the last; oldest first, there as soon as there is a record. */
  readonly cursor?: string;
}

export interface ContextUsageBody {
  readonly seq: number;
  /** Messages a model would be sent now. */
  readonly messages: number;
  /** Their text, in characters. */
  readonly characters: number;
  /** What the last model call of the newest turn reported, when it did. */
  readonly lastUsage?: JsonObject;
}
