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

export interface BranchBody {
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
  readonly ancestors: readonly string[];
  readonly children: readonly string[];
  readonly totalForks: number;
  readonly siblingIndex: number;
  readonly totalSiblings: number;
  readonly previousSibling?: string;
  readonly nextSibling?: string;
}

/** A branch with those forked from it. */
export interface TreeBody extends BranchBody {
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
  readonly branch: Omit<BranchBody, "ancestors" | "children" | "totalForks" | "siblingIndex" | "totalSiblings">;
  /** The newest messages of closed turns. */
  readonly messages: readonly Message[];
  /** The turn without an end, with its messages so far. */
  readonly openTurn?: { readonly id: string; readonly startedAt: number; readonly messages: readonly Message[] };
  readonly interactions: readonly InteractionBody[];
  readonly activeRun: RunBody | null;
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

export interface ContextUsageBody {
  readonly seq: number;
  /** Messages a model would be sent now. */
  readonly messages: number;
  /** Their text, in characters. */
  readonly characters: number;
  /** What the last model call of the newest turn reported, when it did. */
  readonly lastUsage?: JsonObject;
}
