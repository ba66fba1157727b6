// The middleware port: where code of others can stand in a run. Before-hooks run in the order of the list, after-hooks and
// onError in reverse, the first wrapper is the outermost. A hook that is not there costs nothing.

import type { Json, JsonObject } from "../base/json.ts";
import type { AgentStamp, Message, NewMessage, Part, ToolCallPart, ToolOutput } from "../events/index.ts";
import type { ModelRequest, ModelStream, Usage } from "../models/index.ts";
import type { AskedBy, RunScope, StateAccess, StateHandle, Tool, ToolSet } from "../tools/index.ts";

/** A question that becomes a fact and survives a restart. */
export interface Question {
  readonly kind: "permission" | "clarification" | "continuation" | "client-tool";
  readonly request: JsonObject;
  readonly callId?: string;
  /** Tells this question from others of the same kind about the same call (default ""). */
  readonly key?: string;
  /** How long an answer is waited for; without it, as long as the agent's `limits.answerMs` says. */
  readonly expiresInMs?: number;
}

/** What came of a question. */
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

/** What every hook of a run is given. */
export interface HookContext extends RunScope {
  readonly agent: AgentStamp;
  /** The run took up a turn that was left open. */
  readonly resumed: boolean;
  readonly state: StateAccess;
  /** Shows something to whoever watches: the live event `custom-emit`. */
  emit(name: string, data: Json): void;
  /** Says that a limit was reached (the live event `limit-reach`). */
  reachLimit(limit: string, value?: number): void;
  /**
   * Opens an interaction and waits. Asking the same again after a restart (same kind, call and key) gives the answer that
   * was given, or waits on under the same id.
   */
  ask(question: Question): Promise<Answer>;
  /**
   * Closes a question that may have been asked and needs no answer any more, so that none is taken that would come to
   * nothing. Gives the answer, if it was there first.
   */
  withdraw(question: Question): Promise<Answer | undefined>;
  /** Names this position of the branch; returns the checkpoint's id. */
  checkpoint(label?: string): Promise<string>;
  /** Ends the turn after what is being done now; the turn is committed with this reason. */
  stop(reason: string): void;
}

/** Before the turn is written; the branch is not held yet, so nothing can be asked here. */
export interface TurnContext extends AskedBy {
  readonly sessionId: string;
  readonly branchId: string;
  readonly agent: AgentStamp;
  /** Aborts when the run is called off. */
  readonly signal: AbortSignal;
  readonly state: StateAccess;
  /** What the turn begins with; may be replaced. */
  input: readonly NewMessage[];
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
  /** Aborts when the turn closes without waiting any longer: some time after the run was called off. */
  readonly signal: AbortSignal;
}

export interface IterationContext extends HookContext {
  /** 1 for the first of the turn. */
  readonly iteration: number;
  /** What the model will get; may be replaced, for this call only. */
  request: ModelRequest;
  /** Answers in the model's place; it is not called. */
  answer(content: string | readonly Part[]): void;
  /** Whether somebody has answered: no further hook of this kind is called. */
  readonly isAnswered: boolean;
}

export interface IterationSummary {
  readonly message: Message;
  /** One for each call, in the order asked. */
  readonly outputs: readonly ToolOutput[];
  readonly finishReason: string;
  readonly usage: Usage;
}

export interface ToolBatchContext extends HookContext {
  readonly iteration: number;
  readonly calls: readonly ToolCallPart[];
  /** Gives every call of the batch this result; none is run. */
  skip(output: ToolOutput): void;
}

/** Why a call that needs permission runs without a question of its own. */
export interface PermissionGrant {
  /** A mode allows all calls, or this tool was allowed with "always". */
  readonly how: "mode" | "always";
  /** Whose mode: the agent's own, or the one that the run was given. */
  readonly modeOf?: "agent" | "run";
  /** Who answered with "always", and to which question. */
  readonly by?: string;
  readonly interactionId?: string;
}

export interface ToolCallContext extends HookContext {
  readonly iteration: number;
  readonly call: ToolCallPart;
  readonly tool: Tool;
  /** Whether the call may have run before a crash. */
  readonly isUnsure: boolean;
  /** How often the call may have begun to run before. */
  readonly starts: number;
  /** What the tool will get; may be replaced in beforeToolCall, and is fixed from then on. */
  input: Json;
  /** Gives the call this result; it is not run. */
  block(output: ToolOutput): void;
  /** Says in beforeToolCall why the call needs no question: the fact `permission.granted`, written before the call runs. */
  grant(grant: PermissionGrant): void;
  /** Whether somebody has blocked it: no further hook of this kind is called. */
  readonly isBlocked: boolean;
}

export interface ForkContext {
  readonly sessionId: string;
  readonly sourceBranchId: string;
  readonly newBranchId: string;
  /** The last message both will share. */
  readonly messageId?: string;
  /** The new branch's state; changes become part of the fork. */
  readonly state: StateAccess;
  /** The new branch's metadata; may be replaced. */
  metadata: JsonObject;
}

/** Code that stands in every run of an agent. */
export interface Middleware {
  readonly name: string;
  /** The state it declares; undeclared state is reported as removed. */
  readonly state?: readonly StateHandle[];
  /** Tools it brings along. */
  readonly tools?: ToolSet;
  /** May rewrite the input. */
  beforeTurn?(context: TurnContext): void | Promise<void>;
  /** Before the turn closes: state written here closes with it. */
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
  /** May return another result in its place. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a hook that returns nothing leaves the result as it is
  afterToolCall?(context: ToolCallContext, output: ToolOutput): void | ToolOutput | Promise<void | ToolOutput>;
  /** A tool's body threw; the result the model will read is made of the error in any case. What it throws is dropped. */
  onError?(context: ToolCallContext, error: unknown): void | Promise<void>;
  beforeFork?(context: ForkContext): void | Promise<void>;
}
