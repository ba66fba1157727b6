// What an agent and a run can be told.

import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { Redact } from "../base/redact.ts";
import type { AgentStamp, NewMessage, Part, RunIdentity, TurnRequest } from "../events/index.ts";
import type { Hub } from "../live/index.ts";
import type { Middleware, Pipeline } from "../middleware/index.ts";
import type { LanguageModel, ModelChoice, ModelSettings, RetryPolicy, ToolChoice, ToolSpec } from "../models/index.ts";
import type { Branch, Retention } from "../sessions/index.ts";
import type { Tool, ToolSet } from "../tools/index.ts";
import type { OutputChoice, OutputPlan } from "./output-plan.ts";

/** What begins a turn: a text, the parts of one message, or messages. Nothing resumes what was left open. */
export type RunInput = string | readonly Part[] | readonly NewMessage[];

export interface Limits {
  /** Model calls in one turn (default 10). */
  readonly iterations: number;
  /** Tools that run at the same time (default 8). */
  readonly parallelTools: number;
  /** Tool calls of one message that are run (default 128); each further one is denied. */
  readonly calls: number;
  /** How long a question can be answered (default: no end). Its end is the interaction's `expiresAt`. */
  readonly answerMs?: number;
  /** How long a turn may take, waiting included (default: no end). */
  readonly turnMs?: number;
}

export const defaultLimits: Limits = { iterations: 10, parallelTools: 8, calls: 128 };

/** How a run asks for what its agent does not say, or says otherwise. */
export interface RunConfig extends ModelSettings {
  readonly model?: ModelChoice;
  /** In place of the agent's. */
  readonly instructions?: string;
  /** After the agent's. */
  readonly addInstructions?: string;
  /** Beside the agent's. */
  readonly tools?: ToolSet;
  readonly toolChoice?: ToolChoice;
  /** "ask" (default), or all calls that need permission are allowed, or denied. */
  readonly permissionMode?: "ask" | "allow" | "deny";
  readonly limits?: Partial<Limits>;
  /** Around the agent's: the first one is the outermost of all. */
  readonly middleware?: readonly Middleware[];
  /** Which reasoning goes back to the model: that of the turn (default), or all. */
  readonly sendReasoning?: "turn" | "all";
  /**
   * Applies only where it is stricter than what holds otherwise: the stricter permission mode (allow < ask < deny), the
   * lower limit. For options of somebody who may not loosen what the agent allows, such as a server's client.
   */
  readonly tighten?: Tightening;
}

/** Bounds that a run can lower and never raise. */
export interface Tightening {
  readonly permissionMode?: "ask" | "allow" | "deny";
  readonly limits?: Partial<Limits>;
  readonly maxOutputTokens?: number;
}

export interface RunOptions<Output extends OutputChoice = OutputChoice, Context = unknown> {
  readonly sessionId?: string;
  readonly branchId?: string;
  /** Instead of ids: a branch in hand. */
  readonly branch?: Pick<Branch, "sessionId" | "id">;
  readonly config?: RunConfig;
  /** Interrupts the run. */
  readonly signal?: AbortSignal;
  /** The answer is an object that fits; its value is the result's `output`. */
  readonly output?: Output;
  /**
   * What to do with a question to a person: wait for the answer; "park" (give the branch back and end, to be resumed when
   * the answer comes); "deny" (don't ask). By default it waits if anybody listens to the run, and otherwise doesn't ask.
   */
  readonly questions?: "wait" | "park" | "deny";
  /** With "park": how long the answer of a client's tool is waited for first (default 0). Clients answer at once, or not at all. */
  readonly clientGraceMs?: number;
  /** A new input while the turn before waits for an answer: ends that turn (default), or is refused with `turn_open`. */
  readonly ifWaiting?: "supersede" | "refuse";
  /** Kept with the turn. */
  readonly metadata?: JsonObject;
  /** What tools and hooks need to know of this run, as JSON; checked by the agent's `context` schema and kept with the turn. */
  readonly context?: Context;
  /** The person or program that asks (default `identity.user`); kept with the turn. */
  readonly by?: string;
  /** Tenant, user and scopes of who asks; kept with the turn. */
  readonly identity?: RunIdentity;
}

/** Named positions of a branch, taken while it runs. */
export interface Durable {
  /** When one is taken by itself (default "per-turn"). */
  readonly checkpoints?: "per-turn" | "per-iteration" | "manual";
  /** Which ones stay (default the latest only). */
  readonly retention?: Retention;
  /** Whether each tool result is written as it arrives (default), or all of a batch together. */
  readonly pendingWrites?: boolean;
}

/** What all runs of an agent share. */
export interface AgentSettings {
  readonly stamp: AgentStamp;
  readonly clock: Clock;
  /** From 0 to 1; spreads retries. */
  readonly random: () => number;
  readonly hub: Hub;
  readonly limits: Limits;
  readonly retry: RetryPolicy;
  readonly persistAfterTurn: boolean;
  readonly durable?: Durable & { readonly retention: Retention };
  readonly leaseMs: number;
  readonly tasks: Tasks;
  /** Takes secrets out of the texts of errors. */
  readonly redact: Redact;
  /** Aborted when the agent is about to close: from then on its runs wait for no answer, but are handed over. */
  readonly leaving: AbortSignal;
}

/** Background work of an agent: it is waited for, or called off, when the agent closes. */
export interface Tasks {
  readonly signal: AbortSignal;
  track(task: Promise<void>): void;
}

/** One run's own: the agent's settings with the run's laid over them. */
export interface RunPlan extends AgentSettings {
  readonly model: LanguageModel;
  readonly instructions?: string;
  readonly tools: ReadonlyMap<string, Tool>;
  /** What the model is told of them, and of those that take the output. */
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
  /** What the run's caller said, and a turn that it takes up records anew. */
  readonly request?: TurnRequest;
  /** How the turn is asked: what it kept, with the caller's own over it. A new turn records it. */
  readonly wholeRequest?: TurnRequest;
  /** The run's context, as the agent's schema gives it. */
  readonly runContext: unknown;
  readonly by?: string;
  readonly clientGraceMs?: number;
  readonly ifWaiting?: "supersede" | "refuse";
  readonly metadata?: JsonObject;
}

/** The messages an input stands for; none for a list without messages, which resumes, as no input does. */
export function messagesOf(input: RunInput): readonly NewMessage[] | undefined {
  if (typeof input !== "string" && !Array.isArray(input)) throw badInput();
  if (typeof input !== "string" && input.length === 0) return undefined;
  const messages = isMessages(input) ? input : [{ role: "user", content: input as string | readonly Part[] } as const];
  for (const { content } of messages) {
    if (typeof content !== "string" && !Array.isArray(content)) throw badInput();
    // No provider takes a message that says nothing.
    if (content.length === 0) throw badInput();
    if (typeof content !== "string" && !content.every(isObject)) throw badInput();
  }
  return messages;
}

function isMessages(input: RunInput): input is readonly NewMessage[] {
  return typeof input !== "string" && input.every(isObject) && "role" in input[0]!;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function badInput(): BoughError {
  const sentence =
    "A run's input is a text, a list of parts or a list of messages, and says something; without any, it resumes.";
  return new BoughError("invalid_argument", sentence);
}
