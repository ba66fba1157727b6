// The options of agents and runs.

import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { Redact } from "../base/redact.ts";
import type { InputPart } from "../events/files.ts";
import type { AgentStamp, OwnEventTable, RunIdentity, TurnRequest } from "../events/index.ts";
import type { Hub } from "../live/index.ts";
import type { Middleware, Pipeline } from "../middleware/index.ts";
import type { LanguageModel, ModelChoice, ModelSettings, RetryPolicy, ToolChoice, ToolSpec } from "../models/index.ts";
import type { InputMessage } from "../sessions/files.ts";
import type { Branch, Retention } from "../sessions/index.ts";
import type { Tool, ToolSet } from "../tools/index.ts";
import type { AudioOptions } from "./audio/options.ts";
import type { CompactionPlan, RunCompaction } from "./compaction/options.ts";
import type { FilePlan } from "./files/options.ts";
import type { OutputChoice, OutputPlan } from "./structured-output/plan.ts";

/**
 * The input of a turn: a string, the parts of one message, or messages. Files may hold their bytes in any form. Omit it to
 * resume the open turn.
 */
export type RunInput = string | readonly InputPart[] | readonly InputMessage[];

/** Bounds of a run. */
export interface Limits {
  /** Model calls in one turn (default 10). */
  readonly iterations: number;
  /** Tools that run in parallel (default 8). */
  readonly parallelTools: number;
  /** Tool calls per message (default 128); any further call is denied. */
  readonly calls: number;
  /** How long a question can be answered (default: no limit). It ends at the interaction's `expiresAt`. */
  readonly answerMs?: number;
  /** How long a turn may take with its children, including waits (default: no limit). */
  readonly turnMs?: number;
  /** Tokens of a turn with its children (default: no limit). It ends at the first model call past the limit. */
  readonly tokens?: number;
  /** How many agents deep a run may start others (default 3); 0 lets it start none. */
  readonly maxDepth: number;
  /** Background children that may go on at a time on a branch (default 32). */
  readonly tasks: number;
}

export const defaultLimits: Limits = { iterations: 10, parallelTools: 8, calls: 128, maxDepth: 3, tasks: 32 };

/** Overrides of the agent's options for one run. */
export interface RunConfig extends ModelSettings {
  readonly model?: ModelChoice;
  /** Replaces the agent's instructions. */
  readonly instructions?: string;
  /** Appended to the agent's instructions. */
  readonly addInstructions?: string;
  /** Added to the agent's tools. */
  readonly tools?: ToolSet;
  readonly toolChoice?: ToolChoice;
  /** What happens to calls that need permission: ask (default), allow all, or deny all. */
  readonly permissionMode?: "ask" | "allow" | "deny";
  readonly limits?: Partial<Limits>;
  /** Wraps the agent's middleware; the first one is the outermost. */
  readonly middleware?: readonly Middleware[];
  /** Whether and when this run compacts by itself: "off", "force" (before its first model call in any case), or how. */
  readonly compaction?: RunCompaction;
  /** Which reasoning is sent back to the model: the turn's (default), or all. */
  readonly sendReasoning?: "turn" | "all";
  /**
   * Applies only where it is stricter than the other options: the stricter permission mode (allow < ask < deny), the lower
   * limit. For options from a caller that may not loosen the agent's limits, such as a server's client.
   */
  readonly tighten?: Tightening;
}

/** Limits that a run can lower but never raise. */
export interface Tightening {
  readonly permissionMode?: "ask" | "allow" | "deny";
  readonly limits?: Partial<Limits>;
  readonly maxOutputTokens?: number;
}

/** Where a run takes place and how it differs from its agent. */
export interface RunOptions<Output extends OutputChoice = OutputChoice, Context = unknown> {
  readonly sessionId?: string;
  readonly branchId?: string;
  /** A loaded branch, instead of ids. */
  readonly branch?: Pick<Branch, "sessionId" | "id">;
  readonly config?: RunConfig;
  /** Whether iterating the run also shows the events of its children ("tree", the default), or only its own. */
  readonly events?: "own" | "tree";
  /** Interrupts the run. */
  readonly signal?: AbortSignal;
  /** The schema of the answer; the result's `output` is the validated object. */
  readonly output?: Output;
  /**
   * What to do with questions: "wait" for the answer; "park" (release the branch and end; the turn is resumed when the
   * answer comes); "deny" (don't ask). Default: wait if anything listens to the run, otherwise deny.
   */
  readonly questions?: "wait" | "park" | "deny";
  /** With "park": how long to wait for the result of a client tool before parking (default 0). */
  readonly clientGraceMs?: number;
  /** New input while the previous turn waits for an answer: ends that turn (default), or fails with `turn_open`. */
  readonly ifWaiting?: "supersede" | "refuse";
  /** Stored with the turn. */
  readonly metadata?: JsonObject;
  /** JSON for tools and hooks of this run; validated by the agent's `context` schema and stored with the turn. */
  readonly context?: Context;
  /** The person or program that starts the run (default `identity.user`); stored with the turn. */
  readonly by?: string;
  /** Tenant, user and scopes of the caller; stored with the turn. */
  readonly identity?: RunIdentity;
}

/** Which checkpoints a run saves, and how tool results are written. */
export interface Durable {
  /** When checkpoints are saved automatically (default "per-turn"). */
  readonly checkpoints?: "per-turn" | "per-iteration" | "manual";
  /** Which checkpoints are kept (default: the latest only). */
  readonly retention?: Retention;
  /** Whether each tool result is written as it arrives (default), or a batch's results together. */
  readonly pendingWrites?: boolean;
}

/** What all runs of an agent share. */
export interface AgentSettings {
  readonly stamp: AgentStamp;
  readonly clock: Clock;
  /** From 0 to 1; spreads retries. */
  readonly random: () => number;
  readonly hub: Hub;
  /** The event types that the program defined. */
  readonly events: OwnEventTable;
  readonly limits: Limits;
  readonly retry: RetryPolicy;
  readonly persistAfterTurn: boolean;
  /** Whether prompts carry hints for the provider's cache. */
  readonly promptCaching: boolean;
  readonly compaction: CompactionPlan;
  /** A model by the agent's name for it, by the provider's, or as it is. */
  readonly findModel: (choice: ModelChoice) => Promise<LanguageModel>;
  /** How files are sent. */
  readonly files: FilePlan;
  readonly audio: AudioOptions;
  readonly durable?: Durable & { readonly retention: Retention };
  readonly leaseMs: number;
  readonly tasks: Tasks;
  /** Removes secrets from error messages. */
  readonly redact: Redact;
  /** Aborted when the agent is about to close: from then on its runs wait for no answer, but are handed over. */
  readonly leaving: AbortSignal;
}

/** Background work of an agent, which is awaited or cancelled when the agent closes. */
export interface Tasks {
  readonly signal: AbortSignal;
  track(task: Promise<void>, work?: TrackedWork): void;
  /** Ends a function of this process; false if there is none for the task. */
  cancel(taskId: string): boolean;
}

/** How tracked work is stopped before its end. */
export interface TrackedWork {
  readonly taskId?: string;
  /** Ends a function. */
  readonly cancel?: () => void;
  /** Hands a child over, when the agent closes. */
  readonly park?: () => Promise<void>;
}

/** The settings of one run: the agent's, overridden by the run's. */
export interface RunPlan extends AgentSettings {
  readonly model: LanguageModel;
  readonly instructions?: string;
  readonly tools: ReadonlyMap<string, Tool>;
  /** The tools as the model sees them, including those that take the output. */
  readonly toolSpecs: readonly ToolSpec[];
  readonly toolChoice?: ToolChoice;
  readonly pipeline: Pipeline;
  /** Whether hooks that are not built in stand around calls: they may have effects of their own. */
  readonly hasToolHooks: boolean;
  /** Asked before an iteration past `limits.iterations`. */
  readonly atLimit: Middleware;
  readonly config: Omit<RunConfig, keyof ModelSettings>;
  /** What every model call of the run asks for. */
  readonly settings: ModelSettings;
  readonly output?: OutputPlan;
  readonly questions?: "wait" | "park" | "deny";
  /** The permission mode that children may not loosen, where the agent or the run says one. */
  readonly permissionBound?: "ask" | "allow" | "deny";
  /** The caller's own options, which a resumed turn records again. */
  readonly request?: TurnRequest;
  /** How the turn is asked: what it kept, with the caller's own over it. A new turn records it. */
  readonly wholeRequest?: TurnRequest;
  /** The run's context, as the agent's schema gives it. */
  readonly runContext: unknown;
  readonly by?: string;
  readonly clientGraceMs?: number;
  readonly ifWaiting?: "supersede" | "refuse";
  readonly metadata?: JsonObject;
  /** The stamp of the agent that began the turn, if this plan is that of one that it was handed over to. */
  readonly firstStamp?: AgentStamp;
  /** Leads from the agent that began the turn to a handoff of this one. */
  readonly pathTo?: (name: string) => readonly string[];
}

/** The messages an input stands for; none for a list without messages, which resumes, as no input does. */
export function messagesOf(input: RunInput): readonly InputMessage[] | undefined {
  if (typeof input !== "string" && !Array.isArray(input)) throw badInput();
  if (typeof input !== "string" && input.length === 0) return undefined;
  const messages = isMessages(input)
    ? input
    : [{ role: "user", content: input as string | readonly InputPart[] } as const];
  for (const { content } of messages) {
    if (typeof content !== "string" && !Array.isArray(content)) throw badInput();
    // No provider takes a message that says nothing.
    if (content.length === 0) throw badInput();
    if (typeof content !== "string" && !content.every(isObject)) throw badInput();
  }
  return messages;
}

function isMessages(input: RunInput): input is readonly InputMessage[] {
  return typeof input !== "string" && input.every(isObject) && "role" in input[0]!;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function badInput(): BoughError {
  const sentence = "A run's input must be a non-empty string, list of parts or list of messages; omit it to resume.";
  return new BoughError("invalid_argument", sentence);
}
