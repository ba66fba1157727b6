// The middleware port: where user code can hook into a run. Before-hooks run in the order of the list, after-hooks and
// onError in reverse, the first wrapper is the outermost. A missing hook costs nothing.

import type { Json, JsonObject } from "../base/json.ts";
import type { AgentStamp, Message, NewMessage, Part, ToolCallPart, ToolOutput } from "../events/index.ts";
import type { ModelRequest, ModelStream, Usage } from "../models/index.ts";
import type { AskedBy, EmitEvent, RunScope, StateAccess, StateHandle, Tool, ToolSet } from "../tools/index.ts";

/** A question that is stored as a fact and survives a restart. */
export interface Question {
  readonly kind: "permission" | "clarification" | "continuation" | "client-tool";
  readonly request: JsonObject;
  readonly callId?: string;
  /** Distinguishes several questions of the same kind about the same call (default ""). */
  readonly key?: string;
  /** How long the question can be answered (default: the agent's `limits.answerMs`). */
  readonly expiresInMs?: number;
}

/** The outcome of a question. */
export type Answer =
  | {
      readonly answered: true;
      readonly answer: JsonObject;
      readonly by?: string;
      /** The question that was answered, and when. */
      readonly interactionId?: string;
      readonly at?: number;
    }
  | { readonly answered: false; readonly reason: "expired" | "nobody" };

/** The context of every hook of a run. */
export interface HookContext extends RunScope {
  readonly agent: AgentStamp;
  /** Whether the run resumed an open turn. */
  readonly resumed: boolean;
  readonly state: StateAccess;
  /** Emits an event that the program defined, or the live event `custom-emit`. */
  readonly emit: EmitEvent;
  /** Reports that a limit was reached, as the live event `limit-reach`. */
  reachLimit(limit: string, value?: number): void;
  /**
   * Opens an interaction and waits for its answer. Asking the same question again after a restart (same kind, call and key)
   * returns the answer already given, or keeps waiting under the same id.
   */
  ask(question: Question): Promise<Answer>;
  /**
   * Closes a question that no longer needs an answer, so that no one answers it in vain. Returns the answer if it came
   * first.
   */
  withdraw(question: Question): Promise<Answer | undefined>;
  /** Saves a checkpoint at this position of the branch; returns its id. */
  checkpoint(label?: string): Promise<string>;
  /** Ends the turn after the current step; the turn is committed with this reason. */
  stop(reason: string): void;
}

/** The context before the turn is written. The branch is not held yet, so questions can't be asked here. */
export interface TurnContext extends AskedBy {
  readonly sessionId: string;
  readonly branchId: string;
  readonly agent: AgentStamp;
  /** Aborts when the run is cancelled. */
  readonly signal: AbortSignal;
  readonly state: StateAccess;
  /** The turn's input; may be replaced. */
  input: readonly NewMessage[];
  /** The turn is running: `input` are queued messages that are about to join it. What a hook throws withdraws them. */
  readonly isSteering?: true;
}

/** How a turn is about to close. */
export interface TurnSummary {
  readonly status: "completed" | "interrupted" | "failed";
  readonly reason?: string;
  readonly text: string;
  /** The turn's own messages. */
  readonly messages: readonly Message[];
  readonly iterations: number;
  readonly usage: Usage;
  readonly error?: unknown;
  /** Aborts shortly after the run was cancelled, when the turn closes without waiting any longer. */
  readonly signal: AbortSignal;
}

/** What `beforeIteration` hooks see of a model call and may change. */
export interface IterationContext extends HookContext {
  /** 1 for the first of the turn. */
  readonly iteration: number;
  /** The request to the model; may be replaced, for this call only. */
  request: ModelRequest;
  /** Answers in place of the model, which is not called. */
  answer(content: string | readonly Part[]): void;
  /** Whether a hook has answered; no further hook of this kind is called. */
  readonly isAnswered: boolean;
}

/** What one model call and its tools gave. */
export interface IterationSummary {
  readonly message: Message;
  /** One output per call, in the order of the calls. */
  readonly outputs: readonly ToolOutput[];
  readonly finishReason: string;
  readonly usage: Usage;
}

/** What hooks see of the tool calls of one message. */
export interface ToolBatchContext extends HookContext {
  readonly iteration: number;
  readonly calls: readonly ToolCallPart[];
  /** Gives every call of the batch this result without running it. */
  skip(output: ToolOutput): void;
}

/** Why a call that needs permission runs without asking. */
export interface PermissionGrant {
  /** A mode allows all calls, or this tool was allowed with "always". */
  readonly how: "mode" | "always";
  /** Whose mode applied: the agent's or the run's. */
  readonly modeOf?: "agent" | "run";
  /** Who answered with "always", and to which question. */
  readonly by?: string;
  readonly interactionId?: string;
}

/** What hooks see of one tool call and may change. */
export interface ToolCallContext extends HookContext {
  readonly iteration: number;
  readonly call: ToolCallPart;
  readonly tool: Tool;
  /** Whether the call may have run before a crash. */
  readonly isUnsure: boolean;
  /** How often the call may have started before. */
  readonly starts: number;
  /** The tool's input. May be replaced in beforeToolCall, and is fixed from then on. */
  input: Json;
  /** Gives the call this result without running it. */
  block(output: ToolOutput): void;
  /** In beforeToolCall: records why the call runs without asking, as the fact `permission.granted` before the call. */
  grant(grant: PermissionGrant): void;
  /** Whether a hook has blocked the call; no further hook of this kind is called. */
  readonly isBlocked: boolean;
}

/** What `beforeFork` hooks see of a fork and may change. */
export interface ForkContext {
  readonly sessionId: string;
  readonly sourceBranchId: string;
  readonly newBranchId: string;
  /** The last message that both branches share. */
  readonly messageId?: string;
  /** The new branch's state; changes become part of the fork. */
  readonly state: StateAccess;
  /** The new branch's metadata; may be replaced. */
  metadata: JsonObject;
}

/** Hooks, state and tools that take part in every run of an agent. */
export interface Middleware {
  readonly name: string;
  /** The state it declares. Stored state that nothing declares is reported as removed. */
  readonly state?: readonly StateHandle[];
  /** Tools it adds to the agent. */
  readonly tools?: ToolSet;
  /** May rewrite the input. */
  beforeTurn?(context: TurnContext): void | Promise<void>;
  /** Runs before the turn closes; state written here is stored with the close. */
  afterTurn?(context: HookContext, turn: TurnSummary): void | Promise<void>;
  beforeIteration?(context: IterationContext): void | Promise<void>;
  afterIteration?(context: HookContext, iteration: IterationSummary): void | Promise<void>;
  wrapModelCall?(
    context: HookContext,
    request: ModelRequest,
    next: (request: ModelRequest) => ModelStream,
  ): ModelStream;
  beforeTools?(context: ToolBatchContext): void | Promise<void>;
  afterTools?(context: ToolBatchContext, outputs: readonly ToolOutput[]): void | Promise<void>;
  beforeToolCall?(context: ToolCallContext): void | Promise<void>;
  wrapToolCall?(context: ToolCallContext, next: () => Promise<ToolOutput>): Promise<ToolOutput>;
  /** May return another result to replace it. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a hook that returns nothing leaves the result as it is
  afterToolCall?(context: ToolCallContext, output: ToolOutput): void | ToolOutput | Promise<void | ToolOutput>;
  /** Runs when a tool threw. The model reads the tool's error in any case; errors of this hook are ignored. */
  onError?(context: ToolCallContext, error: unknown): void | Promise<void>;
  beforeFork?(context: ForkContext): void | Promise<void>;
}
