import type { ToolOutput } from "../events/index.ts";
import type { PermissionRule, ToolContext, ToolEffect, ToolRetry } from "./port.ts";
import type { InputOf, ToolInput } from "./schema.ts";

/** What a tool ends with: what it returns, or the last value of those it yields. */
type ResultOf<Returned> =
  Awaited<Returned> extends AsyncIterable<infer Yielded> ? Exclude<Yielded, void> : Awaited<Returned>;

/** A tool as `defineTool` takes it and gives it back; its name is its key in the tool set. */
export type ToolDefinition<Input extends ToolInput = ToolInput, Returned = unknown, Context = unknown> = {
  /** What the model is told about it. */
  readonly description?: string;
  /** What it takes. */
  readonly input: Input;
  /** Does the work. Absent: the connected client does. Values that an async generator yields are shown as progress. */
  readonly execute?: (input: InputOf<Input>, context: ToolContext<Context>) => Returned;
  /** What a second run after a crash would mean (default "retry"). */
  readonly effect?: ToolEffect;
  /** Whether somebody has to allow a call (default false). */
  readonly permission?: PermissionRule<InputOf<Input>>;
  /** How long one attempt may take (default: as long as it takes). */
  readonly timeoutMs?: number;
  /** Whether it is tried again when it fails (default: not). */
  readonly retry?: ToolRetry;
  /** Finds out after a crash what a call did. */
  readonly reconcile?: (
    input: InputOf<Input>,
    context: ToolContext<Context>,
  ) => ReconcileAnswer | Promise<ReconcileAnswer>;
  /** What the model gets to read (default: text as text, everything else as JSON). */
  readonly toOutput?: (
    result: ResultOf<Returned>,
    call: { callId: string; input: InputOf<Input> },
  ) => ToolOutput | Promise<ToolOutput>;
};

type ReconcileAnswer = ToolOutput | "not-executed" | undefined;

/**
 * Gives a tool its types: `execute` gets what the input schema makes of the model's arguments. A tool that reads the run's
 * `context` says its type: `execute(input, { context }: ToolContext<MyContext>)`.
 */
export function defineTool<Input extends ToolInput, Returned = unknown, Context = unknown>(
  definition: ToolDefinition<Input, Returned, Context>,
): ToolDefinition<Input, Returned, Context> {
  return definition;
}
