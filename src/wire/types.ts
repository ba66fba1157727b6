// Types of responses. The server's internal types are wider; these are the contract.

import type { JsonObject } from "../base/json.ts";
import type { BranchOwner, Interaction, Message } from "../events/index.ts";
import type { QueuedInputBody } from "./queue.ts";
import type { AgentConfig } from "./schemas.ts";
import type { OpenTaskBody } from "./tasks.ts";

export interface SessionBody {
  readonly id: string;
  readonly createdAt: number;
  readonly lastActivity: number;
  readonly version: number;
  readonly metadata: JsonObject;
  /** With `include: "title"`: the metadata key `title`, else the first words of the branch main; absent while there are none. */
  readonly title?: string;
  /** With `include: "marks"`. */
  readonly marks?: SessionMarks;
  /** With `include: "branches"`: how many are shown. */
  readonly branchCount?: number;
  /** With `include: "usage"`: tokens of all closed turns, those of subagents included. */
  readonly usage?: JsonObject;
}

/** What goes on in a session. */
export interface SessionMarks {
  /** Branches with an open turn that waits for nobody. */
  readonly working: number;
  /** Questions that wait for an answer. */
  readonly waiting: number;
  /** Inputs that wait for a turn. */
  readonly queued: number;
  /** The agent of main's newest turn, and how that turn ended unless it was committed. */
  readonly agentId?: string;
  readonly ended?: "interrupted" | "failed";
}

export interface SessionListBody {
  readonly sessions: readonly SessionBody[];
  readonly cursor?: string;
}

/** A branch in a list. */
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
  /** Whether that turn sleeps; absent when it does not. */
  readonly asleep?: true;
  /** How many questions wait for an answer; absent when none does. */
  readonly waiting?: number;
  /** How the newest closed turn ended, unless it was committed. */
  readonly ended?: "interrupted" | "failed";
  /** The agent of the newest turn. */
  readonly agentId?: string;
  /** The first message of its own, and how its text begins. */
  readonly firstMessageId?: string;
  readonly firstWords?: string;
  /** Its newest reverts, oldest first: where they stand in the log, and what was left. */
  readonly reverts?: readonly { readonly seq: number; readonly messageCount: number; readonly messageId?: string }[];
  /** Tokens of the branch's own closed turns. */
  readonly usage?: JsonObject;
  /** How many inputs wait for a turn; absent when none does. */
  readonly queued?: number;
  readonly forkedFrom?: string;
  readonly forkedAtMessageId?: string;
  readonly forkedAtMessageIndex?: number;
  readonly forkedAtSeq?: number;
  /** The owner, if the branch works for another branch. */
  readonly owner?: BranchOwner;
  /** Absent if the branch is shown. */
  readonly visibility?: "hidden";
  readonly totalForks: number;
  readonly siblingIndex: number;
  readonly totalSiblings: number;
  readonly previousSibling?: string;
  readonly nextSibling?: string;
}

/** One branch, with its ancestors and its forks. */
export interface BranchBody extends BranchSummary {
  /** The nearest 1,000 ancestors, the direct parent last. */
  readonly ancestors: readonly string[];
  readonly totalAncestors: number;
  /** The oldest 1,000 direct forks, of `totalForks`. */
  readonly children: readonly string[];
}

export interface BranchListBody {
  readonly branches: readonly BranchSummary[];
  readonly cursor?: string;
}

/** A branch with its forks. */
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
   * "open": its turn is unfinished and has no run; an input without text resumes it. "parked": the same, but the turn
   * waits for an answer, which resumes it.
   */
  readonly status: "active" | "open" | "parked" | "completed" | "interrupted" | "failed";
  readonly startedAt: number;
  readonly endedAt?: number;
}

/** A permission that is remembered in a session until it is revoked. */
export interface PermissionBody {
  /** The agent it applies to; absent for agents without an id, which share it. */
  readonly agentId?: string;
  readonly tool: string;
  readonly decision: "allow" | "deny";
  readonly by?: string;
  readonly at: number;
  /** The question that was answered with "always". */
  readonly interactionId?: string;
}

export type InteractionBody = Interaction;

/** An open question, and where it was asked. */
export type OpenInteractionBody = Interaction & {
  readonly sessionId: string;
  readonly branchId: string;
  /** The agent and the run that last worked on its turn. */
  readonly agentId?: string;
  readonly runId?: string;
};

export interface InteractionListBody {
  readonly interactions: readonly OpenInteractionBody[];
  readonly cursor?: string;
}

/** A step of a workflow, without its output. */
export interface StepBody {
  readonly key: string;
  readonly kind: "step" | "agent" | "sleep" | "ask" | "wait" | "flow";
  readonly status: "started" | "returned" | "failed" | "skipped";
  /** The position and time of its newest fact. */
  readonly seq: number;
  readonly at: number;
  readonly until?: number;
  readonly tries?: number;
  readonly ms?: number;
  readonly error?: JsonObject;
  readonly why?: string;
  /** Where its agent worked. */
  readonly child?: JsonObject;
  readonly usage?: JsonObject;
}

/** A branch at one position. Events after `seq` are not included. */
export interface StateBody {
  readonly seq: number;
  readonly branch: Omit<BranchSummary, "totalForks" | "siblingIndex" | "totalSiblings">;
  /** The newest messages of closed turns. */
  readonly messages: readonly Message[];
  /** If there are earlier messages: pass this as `before` of the messages route to read them. */
  readonly before?: string;
  /** The index of the first of `messages` among all that people see. */
  readonly firstIndex: number;
  /** The open turn, with its messages so far. */
  readonly openTurn?: {
    readonly id: string;
    readonly startedAt: number;
    readonly messages: readonly Message[];
    /** The steps of a workflow, without their outputs, in the order in which they began or returned. */
    readonly steps?: readonly StepBody[];
    /** Present while it sleeps: until a time, or until something is written on the branch. */
    readonly asleep?: { readonly until?: number };
  };
  readonly interactions: readonly InteractionBody[];
  /** Inputs that wait for a turn, oldest first. */
  readonly queue: readonly QueuedInputBody[];
  /** Background tasks that have not ended, oldest first. */
  readonly tasks: readonly OpenTaskBody[];
  readonly activeRun: RunBody | null;
}

/** A page of messages, oldest first. */
export interface MessagesBody {
  readonly messages: readonly Message[];
  /** Pass it to read earlier messages; absent at the beginning. */
  readonly before?: string;
  /** The index of the first of `messages` among all that people see. */
  readonly firstIndex: number;
}

export interface InputAnswer {
  /** The id of the first message it adds; of a queued input, its id in the queue and the `inputId` of its messages. */
  readonly inputId: string;
  readonly status: "started" | "queued";
  /** The run of an input that started. */
  readonly runId?: string;
}

export interface InterruptAnswer {
  readonly status: "accepted" | "already_terminal" | "no_active_run" | "active_run_mismatch";
  /** The run that was interrupted, has ended, or is active instead. */
  readonly runId?: string;
}

export interface ResponseAnswer {
  readonly interactionId: string;
  /** The run that the answer resumed, if none was waiting. */
  readonly runId?: string;
}

/** What became of a signal to an execution. */
export interface SignalAnswer {
  readonly signalId: string;
  /** The run that the signal resumed, if none was waiting. */
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
  /** "code": defined by the server's program; "stored": created over HTTP. */
  readonly source: "code" | "stored";
  /** Present for workflows: their runs are executions. */
  readonly kind?: "workflow";
  readonly createdAt?: number;
  readonly updatedAt?: number;
  readonly metadata?: JsonObject;
}

export interface AgentBody extends AgentSummary {
  /** The configuration of a stored agent. */
  readonly config?: AgentConfig;
  /** The definition of a stored graph. */
  readonly graph?: JsonObject;
}

/** What is stored for an agent: its configuration, or a graph. */
export type StoredDefinition =
  | { readonly config: AgentConfig; readonly graph?: undefined }
  | { readonly config?: undefined; readonly graph: JsonObject };

/** The graph of a workflow, and the steps of the execution that was asked for. */
export interface GraphBody {
  /** Absent for a workflow that is code. */
  readonly graph?: JsonObject;
  readonly steps?: readonly {
    readonly key: string;
    readonly kind?: string;
    readonly status: "started" | "returned" | "failed" | "skipped";
  }[];
}

/** One request to the server and its outcome. */
export interface AuditRecord {
  /** Its place in the log: a cursor. */
  readonly id: string;
  readonly at: number;
  /** The name of the route; "unknown" if there is none, "audit.lost" for a count of lost records. */
  readonly action: string;
  readonly requestId?: string;
  readonly transport?: "http" | "socket";
  readonly user?: string;
  /** A label of the credential. */
  readonly credential?: string;
  /** The remote address of the connection: the proxy's, if there is one. */
  readonly address?: string;
  readonly agentId?: string;
  readonly sessionId?: string;
  readonly branchId?: string;
  readonly runId?: string;
  readonly checkpointId?: string;
  readonly contentId?: string;
  readonly interactionId?: string;
  readonly messageId?: string;
  readonly compactionId?: string;
  readonly inputId?: string;
  /** The id of what the request created. */
  readonly createdId?: string;
  /** The permission mode that an input asked for. */
  readonly mode?: "ask" | "allow" | "deny";
  /** How a permission or a continuation was answered. */
  readonly decision?: "approved" | "always" | "denied";
  /** The HTTP status of the response. */
  readonly status?: number;
  /** The code of a refusal. */
  readonly code?: string;
  /** How many records were lost: "full" because the queue was full, "limited" because of the rate limit. */
  readonly lost?: number;
  readonly reason?: "full" | "limited";
}

/** A page of the audit log. */
export interface AuditPage {
  readonly records: readonly AuditRecord[];
  /** The cursor of the next page. With newest first, absent on the last page; with oldest first, present if there is a record. */
  readonly cursor?: string;
}
