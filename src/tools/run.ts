// One call of one tool: attempts, each with its own time, and an output at the end whatever the tool does.
//   ToolsRun-1. The only thing thrown is `aborted`, and only when the context's signal is aborted.
//   ToolsRun-2. Neither a timeout nor an abort waits for the tool. Later effects of an abandoned tool are ignored: it can start
//       nothing more in the name of its call.
//   ToolsRun-3. A tool that has returned is not run again, also when no output can be made of its result.

import { untilAborted } from "../base/abort.ts";
import { alarm, type Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { OwnEventDefinition, ToolOutput } from "../events/index.ts";
import { failedOutput, outputOf, progressOf, type StoreFiles } from "./output.ts";
import type { CallAttempt, EmitEvent, Spawn, Tool, ToolContext, ToolRetry } from "./port.ts";
import { nobodyRuns, timedOut } from "./problems.ts";

/** A failed attempt that will be retried. */
export interface ToolRetryNotice {
  /** The attempt that failed; 1 is the first. */
  readonly attempt: number;
  readonly attempts: number;
  readonly delayMs: number;
  readonly error: unknown;
}

export interface RunToolOptions {
  readonly clock: Clock;
  /** A number from 0 up to 1. */
  readonly random: () => number;
  /** Called once with the error of a failed call. Its own errors are ignored. */
  readonly onError?: (error: unknown) => void | Promise<void>;
  readonly onRetry?: (notice: ToolRetryNotice) => void;
  /** Stores the files of an output; default: their bytes stay in it. */
  readonly storeFiles?: StoreFiles;
  /** `spawn` for one attempt (default: the context's). */
  readonly spawnFor?: (attempt: CallAttempt) => Spawn;
  /** The input made anew for a further attempt: a tool may have changed the one it got. */
  readonly inputAgain?: () => Promise<unknown>;
}

type Attempt = { readonly result: unknown } | { readonly error: unknown };

const defaultDelayMs = 1000;
const longestDelayMs = 30_000;

/** Runs a call with the input that `tool.parse` returned; the output carries the result or the error (ToolsRun-1). */
export async function runTool(
  tool: Tool,
  first: unknown,
  context: ToolContext,
  options: RunToolOptions,
): Promise<ToolOutput> {
  const { random, clock, onError, onRetry, inputAgain, storeFiles } = options;
  if (!tool.execute) return nobodyRuns(tool.name);
  const attempts = tool.retry?.attempts ?? 1;
  let input = first;
  for (let attempt = 1; ; attempt++) {
    const tried = await tryOnce(tool, input, context, attempt, options);
    if ("result" in tried) {
      const output = outputOf(tool, tried.result, { callId: context.callId, input }, storeFiles);
      if (!(output instanceof Promise)) return output;
      return untilAborted(context.signal, output).catch(() => throwAborted(context));
    }
    const { error } = tried;
    if (attempt >= attempts || !isWorthRetrying(tool.retry, error)) {
      await tell(onError, error);
      return failedOutput(error);
    }
    const delayMs = backoffMs(tool.retry, attempt, random());
    onRetry?.({ attempt, attempts, delayMs, error });
    await clock.sleep(delayMs, context.signal);
    if (inputAgain) input = await inputAgain();
  }
}

async function tryOnce(
  tool: Tool,
  input: unknown,
  context: ToolContext,
  attempt: number,
  { clock, spawnFor }: RunToolOptions,
): Promise<Attempt> {
  const { signal } = context;
  if (signal.aborted) throwAborted(context);
  const stop = new AbortController();
  let forget = () => {};
  try {
    const result = await new Promise<unknown>((resolve, reject) => {
      // ToolsRun-2. Told first, so that no answer of the tool's to the abort comes before.
      const end = (reason: unknown) => {
        reject(reason);
        stop.abort(reason);
      };
      const passOn = () => end(signal.reason);
      signal.addEventListener("abort", passOn, { once: true });
      const cancel = limitTime(tool, clock, end);
      forget = () => {
        cancel?.();
        signal.removeEventListener("abort", passOn);
      };
      resultOf(tool, input, contextOf(context, { attempt, signal: stop.signal }, spawnFor)).then(resolve, reject);
    });
    return { result };
  } catch (error) {
    if (signal.aborted) throwAborted(context);
    return { error };
  } finally {
    forget();
  }
}

/** Ends the attempt at its timeout; the returned function cancels that. */
function limitTime({ name, timeoutMs }: Tool, clock: Clock, end: (reason: unknown) => void): (() => void) | undefined {
  if (timeoutMs === undefined) return undefined;
  return alarm(clock, timeoutMs, () => {
    const data = { tool: name, timeoutMs };
    end(new BoughError("limit_exceeded", timedOut(name, timeoutMs), { data, retryable: true }));
  });
}

async function resultOf(tool: Tool, input: unknown, context: ToolContext): Promise<unknown> {
  const returned = await tool.execute?.(input, context);
  return isAsyncIterable(returned) ? lastOf(returned, context) : returned;
}

/** What a generator returns, or else yields last; everything it yields is shown. */
async function lastOf(values: AsyncIterable<unknown>, { signal, progress }: ToolContext): Promise<unknown> {
  const iterator = values[Symbol.asyncIterator]();
  let last: unknown;
  for (;;) {
    const step = await iterator.next();
    if (step.done) return step.value === undefined ? last : step.value;
    if (signal.aborted) return iterator.return?.();
    last = step.value;
    progress(last as Json);
  }
}

/**
 * The context of one attempt. A new object, because tools take it apart and keep it; it also answers to the names that
 * AI SDK tools use.
 */
function contextOf(context: ToolContext, given: CallAttempt, spawnFor?: RunToolOptions["spawnFor"]) {
  const { attempt, signal } = given;
  const { sessionId, branchId, turnId, runId, callId, toolName, messages, state } = context;
  const { context: ofRun, identity, by, metadata, sessionMetadata } = context;
  const spawn = spawnFor?.(given) ?? context.spawn;
  return {
    ...{ sessionId, branchId, turnId, runId, callId, toolName, messages, state, signal },
    ...{ context: ofRun, identity, metadata, sessionMetadata, ...(by !== undefined && { by }) },
    ...{ toolCallId: callId, abortSignal: signal },
    attempt: context.attempt + attempt - 1,
    emit: emitUntil(signal, context.emit),
    progress: (output) => context.progress(progressOf(output)),
    ask: (question, options) => begin(signal, () => context.ask(question, options)),
    checkpoint: (label) => context.checkpoint(label),
    attach: (file) => begin(signal, () => context.attach(file)),
    content: context.content,
    background: (name, work) => begin(signal, () => context.background(name, work)),
    spawn: ((...child: Parameters<Spawn>) => begin(signal, () => spawn(...child))) as Spawn,
    tasks: context.tasks,
  } satisfies ToolContext & { toolCallId: string; abortSignal: AbortSignal };
}

/** ToolsRun-2, also for a tool that does not wait for its events. */
function emitUntil(signal: AbortSignal, emit: EmitEvent): EmitEvent {
  return ((event: string | OwnEventDefinition<string, Json>, data: Json) => {
    if (typeof event === "string") return emit(event, data);
    const emitting = begin(signal, () => emit(event, data));
    emitting.catch(() => {});
    return emitting;
  }) as EmitEvent;
}

/** ToolsRun-2. */
async function begin<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  if (signal.aborted) throw signal.reason;
  return work();
}

function isWorthRetrying(retry: ToolRetry | undefined, error: unknown): boolean {
  if (!retry?.when) return !BoughError.is(error, "invalid_argument");
  try {
    return retry.when(error);
  } catch {
    return false;
  }
}

/** Exponential, with up to 25 % jitter, so that calls that failed together are not retried together. */
function backoffMs(retry: ToolRetry | undefined, attempt: number, random: number): number {
  const first = retry?.delayMs ?? defaultDelayMs;
  const whole = Math.min(first * 2 ** (attempt - 1), Math.max(first, longestDelayMs));
  return Math.round(whole * (1 - random / 4));
}

async function tell(onError: RunToolOptions["onError"], error: unknown): Promise<void> {
  try {
    await onError?.(error);
  } catch {
    // A listener can't change the outcome of an error.
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

function throwAborted({ toolName, callId, signal }: ToolContext): never {
  const sentence = `The call of "${toolName}" was stopped.`;
  throw new BoughError("aborted", sentence, { data: { tool: toolName, callId }, cause: signal.reason });
}
