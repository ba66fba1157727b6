// The tool port: what a tool is to the run, whoever wrote it (defineTool, the AI SDK's tool(), an MCP server), and what a
// tool is given while it runs.

import type { Json, JsonObject } from "../base/json.ts";
import type { Message, RunIdentity, ToolOutput } from "../events/index.ts";

/**
 * What it means to run a call a second time after a crash: "retry" (run again, the call id is the idempotency key),
 * "read" (the same; it changes nothing, so it may begin before its call is on the disk), "once" (never silently: a
 * `reconcile` function or a person settles it).
 */
export type ToolEffect = "retry" | "read" | "once";

/** Whether somebody has to allow a call: never, always, or as a function of the input says. */
export type PermissionRule<Input = unknown> = boolean | ((input: Input) => boolean | Promise<boolean>);

export interface ToolRetry {
  /** How often at most, the first time included. */
  readonly attempts: number;
  /** Before the second attempt (default 1,000); doubled for each further one, up to 30,000, and up to a quarter shorter. */
  readonly delayMs?: number;
  /** Which errors are worth it (default: all but invalid arguments). */
  readonly when?: (error: unknown) => boolean;
}

/** A piece of state that is declared once and used by handle. */
export interface StateHandle<T extends Json = Json> {
  readonly key: string;
  readonly scope: "run" | "branch" | "session";
  readonly version: number;
  /** What it is before anything is written. */
  readonly initial: T;
  /** Refuses what does not fit; returns the value to use. */
  readonly parse?: (value: Json) => T;
  /** Makes this version's value of an older one's. Without it, an older value is replaced by the initial one. */
  readonly migrate?: (value: Json, from: number) => T;
}

/** State as a hook or a tool sees it: changes are seen at once by whoever comes later, and kept when the turn closes. */
export interface StateAccess {
  get<T extends Json>(handle: StateHandle<T>): Promise<T>;
  set<T extends Json>(handle: StateHandle<T>, value: T): Promise<void>;
  /** From the value as it is now; nothing comes between. */
  update<T extends Json>(handle: StateHandle<T>, change: (value: T) => T): Promise<T>;
}

/** Who asked for a turn, and with what. The turn keeps all of it, so a resumed run sees the same. */
export interface AskedBy<Context = unknown> {
  /** The run's `context`, as the agent's schema gives it. */
  readonly context: Context;
  /** Tenant, user and scopes, as the server's `auth` or the calling program said. */
  readonly identity: RunIdentity;
  /** The person or program that asked. */
  readonly by?: string;
  /** The turn's own metadata. */
  readonly metadata: JsonObject;
}

/** Which run a hook or a tool works for. */
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

/** What a tool is given beside its input. */
export interface ToolContext<Context = unknown> extends RunScope<Context> {
  readonly callId: string;
  readonly toolName: string;
  /** 1, and more when the call is tried again. */
  readonly attempt: number;
  /** The conversation so far. */
  readonly messages: readonly Message[];
  readonly state: StateAccess;
  /** Shows something to whoever watches: the live event `custom-emit`. */
  emit(name: string, data: Json): void;
  /** Shows what the tool has so far: the live event `tool-progress`. */
  progress(output: Json): void;
  /** Asks a person and waits; the answer survives a restart. Throws `no_answer` when none comes. */
  ask(question: string, options?: { choices?: readonly string[] }): Promise<string>;
  /** Names this position of the branch; returns the checkpoint's id. */
  checkpoint(label?: string): Promise<string>;
  /** Goes on after the call has returned; beginning and end are facts (`task.started`, `task.ended`). Returns its id. */
  background(name: string, work: (signal: AbortSignal) => Promise<Json | undefined>): Promise<string>;
}

/** A tool, ready to run. */
export interface Tool {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of the input, as the model is told. */
  readonly inputSchema: JsonObject;
  /** `parse` has a validator behind it. */
  readonly isChecked: boolean;
  readonly effect: ToolEffect;
  readonly permission: PermissionRule;
  readonly timeoutMs?: number;
  readonly retry?: ToolRetry;
  /** A tool that the provider knows by this id, and runs itself unless it calls us. */
  readonly provider?: { readonly id: `${string}.${string}`; readonly args: JsonObject };
  /** The input as the tool takes it, or what is wrong with it in words a model can use. Never throws. */
  parse(input: Json): Promise<{ readonly value: unknown } | { readonly problem: string }>;
  /** Absent: the connected client runs it. */
  execute?(input: unknown, context: ToolContext): unknown;
  /** After a crash: what the call did, if that can be found out. */
  reconcile?(input: unknown, context: ToolContext): Promise<ToolOutput | "not-executed" | undefined>;
  /** What the model gets to read of a result. */
  toOutput(result: unknown, call: { callId: string; input: unknown }): ToolOutput | Promise<ToolOutput>;
}

/** Somewhere tools come from: an MCP server, a directory of them. Asked once for each agent. */
export interface ToolSource {
  /** What an error calls it. */
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
