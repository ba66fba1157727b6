// The tool port: a tool as a run sees it, wherever it comes from (defineTool, the AI SDK's tool(), an MCP server), and the
// context that a tool gets while it runs.

import type { Json, JsonObject } from "../base/json.ts";
import type { FileBytes, FilePart } from "../events/files.ts";
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
  /**
   * Stores a file and attaches it to the turn, as the fact `content.attached`. Returned in a content output, its `part` shows it
   * to the model.
   */
  attach(file: NewArtifact): Promise<Artifact>;
  /** Reads stored content that the branch sees. */
  readonly content: ContentReader;
  /** Starts work that continues after the call has returned; returns its id. `task.started` and `task.ended` are stored. */
  background(name: string, work: (signal: AbortSignal) => Promise<Json | undefined>): Promise<string>;
  /** Runs another agent as a child of this call and waits for its end. A call that runs again finds its child. */
  readonly spawn: Spawn;
  /** The background tasks of the branch. */
  readonly tasks: TaskControl;
}

/** A file that a tool makes. */
export interface NewArtifact {
  readonly name: string;
  /** The bytes, in any form; a string is base64 or a data URL. */
  readonly bytes: FileBytes;
  /** By default that of the bytes, or of the name's ending. */
  readonly mediaType?: string;
  /** Stored with the fact. */
  readonly meta?: JsonObject;
}

/** A file that is attached to a turn. */
export interface Artifact {
  /** The id of its content. */
  readonly id: string;
  readonly name: string;
  readonly mediaType: string;
  readonly size: number;
  /** The file as messages and outputs refer to it. */
  readonly part: FilePart;
}

/** Stored content, by its id or its address. */
export interface ContentReader {
  /** `content_not_found` if the branch doesn't see it. */
  get(id: string): Promise<{ readonly bytes: Uint8Array; readonly mediaType: string; readonly name?: string }>;
  /** The text of a file, or a piece of it by characters: also of PDF, Office and HTML files. */
  text(id: string, piece?: { readonly from?: number; readonly to?: number }): Promise<TextPiece>;
}

/** A piece of a file's text. */
export interface TextPiece {
  readonly text: string;
  readonly from: number;
  readonly to: number;
  /** The length of the whole text. */
  readonly length: number;
}

/** An agent that a run can start as its child: one made by `createAgent` without a store, or the id of one that the host knows. */
export type SpawnableAgent = string | { readonly id?: string | undefined; readonly name?: string | undefined };

/** How the history of a forked child begins. */
export type SpawnCompaction = "inherit" | "none" | Readonly<Record<string, unknown>>;

/** Where a child works, and within which bounds. */
export interface SpawnOptions {
  /**
   * Distinguishes several children of one call; the same key is the same child, also when the call runs again. Without it,
   * children are counted in the order in which the call spawns them.
   */
  readonly key?: string;
  /** The session of the child: the parent's (default), a new one, or one that several agents share. */
  readonly session?: "parent" | "new" | { readonly shared: string };
  /**
   * The branch of the child: a hidden fork of the parent's at its last complete message (default), a hidden empty one, or one
   * that exists, once it is free.
   */
  readonly branch?: "fork" | "fresh" | { readonly existing: string };
  /** "branch": one child for each branch of the parent, which remembers earlier calls. Default: one for each call. */
  readonly memory?: "call" | "branch";
  /**
   * "parent": the child's prompt begins exactly like the parent's (instructions, tools, history), so that providers read it from
   * their cache; the child's own instructions go into its task. Needs the parent's model and a fork. Default: its own.
   */
  readonly prompt?: "own" | "parent";
  /** What a forked child sees of the parent's history, as in `forkBranch`. */
  readonly compaction?: SpawnCompaction;
  /** The schema of the child's answer. */
  readonly output?: unknown;
  readonly limits?: SpawnLimits;
  /**
   * "background": the call does not wait for the child. Its end begins a turn on this branch. A run that is a child itself waits
   * in any case. Default: "wait".
   */
  readonly mode?: "wait" | "background";
  /** Which end of a background child begins a turn, or what that says (default "all"). */
  readonly notify?: TaskNotify;
  /** JSON for the child's tools and hooks (default: the parent's `context`). */
  readonly context?: unknown;
  /** Stored with the child's branch, beside what Bough writes there. */
  readonly metadata?: JsonObject;
}

/** Bounds of a child; those of the parent hold, too. */
export interface SpawnLimits {
  readonly iterations?: number;
  readonly tokens?: number;
  readonly turnMs?: number;
}

/** A child run that has completed. */
export interface Child {
  readonly status: "completed";
  readonly text: string;
  /** The child's structured output, if it was asked for one. */
  readonly output?: unknown;
  /** The files that it made: artifacts of its tools and of its model. They are content of the parent's branch, too. */
  readonly files: readonly FilePart[];
  /** What the child used, with its own children. */
  readonly usage: JsonObject;
  /** Where the child worked; `seq` is the position of its end, for `loadBranch(…, { at: seq })`. */
  readonly ref: {
    readonly sessionId: string;
    readonly branchId: string;
    readonly turnId: string;
    readonly seq: number;
  };
}

/** A child that goes on in the background. */
export interface StartedTask {
  readonly status: "started";
  readonly taskId: string;
  readonly ref: { readonly sessionId: string; readonly branchId: string; readonly turnId: string };
}

/**
 * Runs another agent as a child of the call and waits for its end; throws if it fails or is interrupted. With
 * `mode: "background"` it returns once the child has begun.
 */
export type Spawn = <Options extends SpawnOptions = SpawnOptions>(
  agent: SpawnableAgent,
  input: string | readonly Part[],
  options?: Options,
) => Promise<Options extends { readonly mode: "background" } ? StartedTask | Child : Child>;

/** How a background child ended. */
export interface TaskEnd {
  readonly taskId: string;
  readonly name: string;
  readonly status: "completed" | "failed" | "cancelled";
  /** The child's answer; of one that did not complete, what it said last. */
  readonly text: string;
  readonly reason?: string;
  readonly error?: { readonly message: string };
  /** Where the child worked; absent when its branch is gone. */
  readonly ref?: Child["ref"];
}

/**
 * Which ends of a background child begin a turn: completed ones, failed ones, all (also cancelled ones, unless the task was
 * cancelled as a task), or none. A function returns what the turn begins with, or nothing for none.
 */
export type TaskNotify =
  | "completed"
  | "failed"
  | "all"
  | "none"
  | ((end: TaskEnd) => TaskNotice | undefined | Promise<TaskNotice | undefined>);

/** What the turn begins with that the end of a task begins. */
export type TaskNotice = string | readonly Part[];

/** A background task, as far as it is. */
export interface TaskState {
  readonly taskId: string;
  readonly name: string;
  /** "waiting": for a person. */
  readonly status: "running" | "waiting" | "completed" | "failed" | "cancelled";
  readonly startedAt: number;
  /** What its agent said last, or answered: a piece of it. */
  readonly text?: string;
  /** Where the next piece of the text begins. */
  readonly next?: number;
  readonly reason?: string;
  readonly error?: { readonly message: string };
  /** What a function returned. */
  readonly output?: Json;
}

/** The background tasks of a branch, for a tool. */
export interface TaskControl {
  /** Those that have not ended. */
  list(): Promise<readonly TaskState[]>;
  /** How far a task is, or how it ended; `task_not_found`. `from`: where the piece of its text begins. */
  check(taskId: string, piece?: { readonly from?: number }): Promise<TaskState>;
  /** Says something to the agent of a task before its next model call; `task_ended`. */
  message(taskId: string, text: string): Promise<void>;
  /** Ends a task, whose end then begins no turn; `task_ended`. */
  cancel(taskId: string): Promise<void>;
}

/** One attempt of a call: its number, and the signal that ends it. */
export interface CallAttempt {
  readonly attempt: number;
  readonly signal: AbortSignal;
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
  /** A long output is stored as a file, and the model reads its beginning and its end. */
  readonly overflow?: "artifact";
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
