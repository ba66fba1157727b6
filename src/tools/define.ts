import type { ToolOutput } from "../events/index.ts";
import type { PermissionRule, ToolContext, ToolEffect, ToolRetry } from "./port.ts";
import type { InputOf, ToolInput } from "./schema.ts";

/** What a tool ends with: what it returns, or the last value of those it yields. */
type ResultOf<Returned> =
  Awaited<Returned> extends AsyncIterable<infer Yielded> ? Exclude<Yielded, void> : Awaited<Returned>;

/** A tool as passed to `defineTool`. Its name is its key in the tool set. */
export type ToolDefinition<Input extends ToolInput = ToolInput, Returned = unknown, Context = unknown> = {
  /** The description for the model. */
  readonly description?: string;
  /** The schema of the input. */
  readonly input: Input;
  /** Runs the call. If omitted, the connected client runs it. Values that an async generator yields are shown as progress. */
  readonly execute?: (input: InputOf<Input>, context: ToolContext<Context>) => Returned;
  /** Whether the call may run again after a crash (default "retry"). */
  readonly effect?: ToolEffect;
  /** Whether a person must allow a call (default false). */
  readonly permission?: PermissionRule<InputOf<Input>>;
  /** The timeout of one attempt (default: none). */
  readonly timeoutMs?: number;
  /** How a failed call is retried (default: not at all). */
  readonly retry?: ToolRetry;
  /** Whether its outputs are never cleared from the model's view to save room (default false). */
  readonly retain?: boolean;
  /** `"artifact"`: an output over 64 KB is stored as a file, and the model reads its beginning and its end (default: all of it). */
  readonly overflow?: "artifact";
  /** Determines after a crash what a call did. */
  readonly reconcile?: (
    input: InputOf<Input>,
    context: ToolContext<Context>,
  ) => ReconcileAnswer | Promise<ReconcileAnswer>;
  /** Converts the result to what the model reads (default: strings as text, everything else as JSON). */
  readonly toOutput?: (
    result: ResultOf<Returned>,
    call: { callId: string; input: InputOf<Input> },
  ) => ToolOutput | Promise<ToolOutput>;
};

type ReconcileAnswer = ToolOutput | "not-executed" | undefined;

/**
 * Defines a tool with inferred types: `execute` gets the output of the input schema. A tool that reads the run's `context`
 * declares its type: `execute(input, { context }: ToolContext<MyContext>)`.
 */
export function defineTool<Input extends ToolInput, Returned = unknown, Context = unknown>(
  definition: ToolDefinition<Input, Returned, Context>,
): ToolDefinition<Input, Returned, Context> {
  return definition;
}
