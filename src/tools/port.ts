// The tool port: a tool as a run sees it, wherever it comes from (defineTool, the AI SDK's tool(), an MCP server), and the
// context that a tool gets while it runs.

import type { Json, JsonObject } from "../base/json.ts";
import type { Message, OwnEventDefinition, Part, RunIdentity, ToolOutput } from "../events/index.ts";

/**
 * Whether a call may run again after a crash. "retry": it is run again; the call id is the idempotency key. "read": the same,
 * and because it has no side effects it may start before its call is persisted. "once": it is never repeated silently; a
 * `reconcile` function or a person decides.
 */
export type ToolEffect = "retry" | "read" | "once";

/** Whether a person must allow a call: never, always, or as a function of the input decides. */
export type PermissionRule<Input = unknown> = boolean | ((input: Input) => boolean | Promise<boolean>);

/** How a failed tool call is tried again. */
export interface ToolRetry {
  /** The maximum number of attempts, including the first. */
  readonly attempts: number;
  /** The delay before the second attempt (default 1,000). Exponential up to 30,000, with up to 25 % jitter. */
  readonly delayMs?: number;
  /** Which errors are retried (default: all except invalid arguments). */
  readonly when?: (error: unknown) => boolean;
}

/** A piece of state that is declared once and used by handle. */
export interface StateHandle<T extends Json = Json> {
  readonly key: string;
  readonly scope: "run" | "branch" | "session";
  readonly version: number;
  /** The value before the first write. */
  readonly initial: T;
  /** Validates a value: throws, or returns the value to use. */
  readonly parse?: (value: Json) => T;
  /** Converts a value of an older version. Without it, an older value is replaced by the initial one. */
  readonly migrate?: (value: Json, from: number) => T;
}

/** State access for hooks and tools. Changes are visible to later hooks and tools, and stored when the turn closes. */
export interface StateAccess {
  get<T extends Json>(handle: StateHandle<T>): Promise<T>;
  set<T extends Json>(handle: StateHandle<T>, value: T): Promise<void>;
  /** Updates the current value atomically. */
  update<T extends Json>(handle: StateHandle<T>, change: (value: T) => T): Promise<T>;
}

/** Who requested a turn, and with which context. Stored with the turn, so a resumed run sees the same. */
export interface AskedBy<Context = unknown> {
  /** The run's `context`, as validated by the agent's schema. */
  readonly context: Context;
  /** Tenant, user and scopes, from the server's `auth` or the calling program. */
  readonly identity: RunIdentity;
  /** The person or program that requested the turn. */
  readonly by?: string;
  /** The turn's own metadata. */
  readonly metadata: JsonObject;
}

/** The run that a hook or a tool works for. */
export interface RunScope<Context = unknown> extends AskedBy<Context> {
  readonly sessionId: string;
  readonly branchId: string;
  readonly turnId: string;
  readonly runId: string;
  /** Reads the session's metadata. */
  sessionMetadata(): Promise<JsonObject>;
  /** Aborts when the run is interrupted, parked or taken over. */
  readonly signal: AbortSignal;
}

/** Emits an event of a run. */
export interface EmitEvent {
  /** Shows data under a name, as the live event `custom-emit`. */
  (name: string, data: Json): void;
  /** Emits an event of `createAgent({ events })`. Resolves when a kept event is durable; a live one is shown and forgotten. */
  <Input>(event: OwnEventDefinition<string, Input, unknown>, data: Input): Promise<void>;
}

/** The second argument of a tool's `execute`. */
export interface ToolContext<Context = unknown> extends RunScope<Context> {
  readonly callId: string;
  readonly toolName: string;
  /** The attempt: 1, and more when the call is retried. */
  readonly attempt: number;
  /** The conversation so far. */
  readonly messages: readonly Message[];
  readonly state: StateAccess;
  /** Emits an event that the program defined, or the live event `custom-emit`. */
  readonly emit: EmitEvent;
  /** Shows intermediate output, as the live event `tool-progress`. */
  progress(output: Json): void;
  /** Asks a person and waits for the answer, which survives a restart. Throws `no_answer` if none comes. */
  ask(question: string, options?: { choices?: readonly string[] }): Promise<string>;
  /** Saves a checkpoint at this position of the branch; returns its id. */
  checkpoint(label?: string): Promise<string>;
  /** Starts work that continues after the call has returned; returns its id. `task.started` and `task.ended` are stored. */
  background(name: string, work: (signal: AbortSignal) => Promise<Json | undefined>): Promise<string>;
}

/** An agent that a run can start as its child. The run's host decides which objects it accepts. */
export interface SpawnableAgent {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
}

export interface SpawnOptions {
  /** Distinguishes several children of one call; the same key is the same child, also when the call runs again. */
  readonly key?: string;
}

/** A child run that has completed. */
export interface Child {
  readonly text: string;
  /** The child's structured output, if it was asked for one. */
  readonly output?: unknown;
  readonly usage: JsonObject;
  /** The branch the child worked on. */
  readonly ref: { readonly sessionId: string; readonly branchId: string; readonly turnId: string };
}

/** Runs another agent as a child of the call and waits for its end. */
export type Spawn = (agent: SpawnableAgent, input: string | readonly Part[], options?: SpawnOptions) => Promise<Child>;

/**
 * A tool's context in a run whose host starts children. Not part of the public `ToolContext`: agents made with
 * `createAgent` have no such host yet, and an option that is never there would promise too much.
 */
export interface SpawningContext extends ToolContext {
  readonly spawn?: Spawn;
}

/** A tool, ready to run. */
export interface Tool {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the input, as sent to the model. */
  readonly inputSchema: JsonObject;
  /** Whether `parse` validates. */
  readonly isChecked: boolean;
  readonly effect: ToolEffect;
  readonly permission: PermissionRule;
  readonly timeoutMs?: number;
  readonly retry?: ToolRetry;
  /** Its outputs are never cleared from the model's view. */
  readonly retain?: true;
  /** A provider-defined tool, by its id. The provider runs it unless it calls us. */
  readonly provider?: { readonly id: `${string}.${string}`; readonly args: JsonObject };
  /** Validates the input: returns the value for the tool, or the problem in words a model can use. Never throws. */
  parse(input: Json): Promise<{ readonly value: unknown } | { readonly problem: string }>;
  /** If omitted, the connected client runs the call. */
  execute?(input: unknown, context: ToolContext): unknown;
  /** After a crash: determines what the call did, if possible. */
  reconcile?(input: unknown, context: ToolContext): Promise<ToolOutput | "not-executed" | undefined>;
  /** Converts a result to what the model reads. */
  toOutput(result: unknown, call: { callId: string; input: unknown }): ToolOutput | Promise<ToolOutput>;
}

/** A source of tools, such as an MCP server. Loaded once per agent. */
export interface ToolSource {
  /** Its name in errors. */
  readonly name?: string;
  tools(): Promise<Readonly<Record<string, AnyTool>>>;
  close?(): Promise<void>;
}

/** A tool made by `defineTool`, an AI SDK `tool()`, or anything of that shape. */
export interface AnyTool {
  // biome-ignore lint/suspicious/noExplicitAny: the AI SDK's may make it of a context that is not used here
  readonly description?: string | ((options: any) => string) | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: tools of every input type go into one set
  readonly execute?: ((input: any, context: any) => unknown) | undefined;
  readonly [key: string]: unknown;
}

/** Tools by name. */
export type ToolSet = Readonly<Record<string, AnyTool>>;
