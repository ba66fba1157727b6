// Pipeline: the hooks of all middleware, composed once for an agent. It keeps no state of a run.
//   Pipeline-1. Before-hooks run in the order of the list, after-hooks and onError in reverse, the first wrapper is outermost.
//   Pipeline-2. A hook that no middleware has is undefined, so that it costs one comparison.
//   Pipeline-3. What a hook throws goes to the run and fails the turn, with the names of the middleware and the hook (a wrapper's
//       error stays as it is: it may be of what it wraps); the hooks that would follow are not called.
//       Two exceptions: what onError throws is dropped, and afterTurn is called on all middleware (what one opened it
//       must be able to close) before the first error is thrown.
//   Pipeline-4. A beforeToolCall that blocks and a beforeIteration that answers are the last of their chain.
//   Pipeline-5. A hook is waited for until the run's signal aborts (afterTurn: until the turn's does); then it throws the signal's
//       reason, whatever it does or throws later.

import { AbortReason, isPromise, untilAborted } from "../base/abort.ts";
import { BoughError } from "../base/errors.ts";
import type { ToolOutput } from "../events/index.ts";
import type { ModelRequest, ModelStream } from "../models/index.ts";
import type { StateHandle, ToolSet } from "../tools/index.ts";
import type {
  ForkContext,
  HookContext,
  IterationContext,
  IterationSummary,
  Middleware,
  ToolBatchContext,
  ToolCallContext,
  TurnContext,
  TurnSummary,
} from "./port.ts";

type Hook<Args extends unknown[]> = (...args: Args) => Promise<void>;

/** The composed hooks of an agent; a hook that no middleware has is undefined. */
export interface Pipeline {
  readonly beforeTurn: Hook<[TurnContext]> | undefined;
  readonly afterTurn: Hook<[HookContext, TurnSummary]> | undefined;
  readonly beforeIteration: Hook<[IterationContext]> | undefined;
  readonly afterIteration: Hook<[HookContext, IterationSummary]> | undefined;
  readonly wrapModelCall: ModelWrapper | undefined;
  readonly beforeTools: Hook<[ToolBatchContext]> | undefined;
  readonly afterTools: Hook<[ToolBatchContext, readonly ToolOutput[]]> | undefined;
  readonly beforeToolCall: Hook<[ToolCallContext]> | undefined;
  readonly wrapToolCall: ToolWrapper | undefined;
  readonly afterToolCall: ((context: ToolCallContext, output: ToolOutput) => Promise<ToolOutput>) | undefined;
  readonly onError: Hook<[ToolCallContext, unknown]> | undefined;
  readonly beforeFork: Hook<[ForkContext]> | undefined;
  /** Whether hooks may change a request in place, before the iteration and around each attempt: they get their own. */
  readonly changesRequest: { readonly before: boolean; readonly around: boolean };
  /** Everything that is declared, each handle once. */
  readonly state: readonly StateHandle[];
  /** What each brings, in the order of the list. */
  readonly tools: readonly ToolSet[];
}

type ModelWrapper = (
  context: HookContext,
  request: ModelRequest,
  next: (request: ModelRequest) => ModelStream,
) => ModelStream;
type ToolWrapper = (context: ToolCallContext, next: () => Promise<ToolOutput>) => Promise<ToolOutput>;

/** Composes the hooks of a list of middleware; two different handles under one key are refused (`invalid_argument`). */
export function buildPipeline(list: readonly Middleware[]): Pipeline {
  return {
    beforeTurn: oneByOne(hooksOf(list, "beforeTurn")),
    afterTurn: allOfThem(hooksOf(list, "afterTurn").reverse()),
    beforeIteration: oneByOne(hooksOf(list, "beforeIteration"), (context) => context.isAnswered),
    afterIteration: oneByOne(hooksOf(list, "afterIteration").reverse()),
    wrapModelCall: nestModelCalls(hooksOf(list, "wrapModelCall")),
    beforeTools: oneByOne(hooksOf(list, "beforeTools")),
    afterTools: oneByOne(hooksOf(list, "afterTools").reverse()),
    beforeToolCall: oneByOne(hooksOf(list, "beforeToolCall"), (context) => context.isBlocked),
    wrapToolCall: nestToolCalls(hooksOf(list, "wrapToolCall")),
    afterToolCall: passOn(hooksOf(list, "afterToolCall").reverse()),
    onError: unheard(hooksOf(list, "onError").reverse()),
    beforeFork: oneByOne(hooksOf(list, "beforeFork")),
    changesRequest: {
      before: list.some((each) => each.beforeIteration && !readers.has(each)),
      around: list.some((each) => each.wrapModelCall && !readers.has(each)),
    },
    state: declaredState(list),
    tools: list.flatMap(({ tools }) => (tools ? [tools] : [])),
  };
}

const readers = new WeakSet<Middleware>();

/** Marks a middleware that never changes a request in place, so that requests are not copied for it. */
export function readsRequests(middleware: Middleware): Middleware {
  readers.add(middleware);
  return middleware;
}

type HookName = Exclude<keyof Middleware, "name" | "state" | "tools">;

/** Bound, because a middleware may be an object of a class. */
function hooksOf<Name extends HookName>(list: readonly Middleware[], name: Name): NonNullable<Middleware[Name]>[] {
  type Bound = NonNullable<Middleware[Name]>;
  return list.flatMap((middleware) => {
    const hook = middleware[name] as AnyHook | undefined;
    if (!hook) return [];
    const bound = hook.bind(middleware) as AnyHook;
    return [(name.startsWith("wrap") ? bound : signed(bound, middleware.name, name)) as Bound];
  });
}

type AnyHook = (...args: unknown[]) => unknown;

/** Wraps a hook so that its errors name the middleware and a hung hook cannot block the run (Pipeline-5). */
function signed(hook: AnyHook, middleware: string, name: string): AnyHook {
  return async (...args) => {
    try {
      const returned = hook(...args);
      const { signal } = args[name === "afterTurn" ? 1 : 0] as { signal?: AbortSignal };
      return await (signal && isPromise(returned) ? untilAborted(signal, returned) : returned);
    } catch (error) {
      // What a run throws to leave its work goes on as it is, and Bough's own errors say enough.
      if (error instanceof AbortReason || BoughError.is(error)) throw error;
      const said = error instanceof Error ? error.message : String(error);
      const sentence = `The middleware "${middleware}" failed in ${name}: ${said}`;
      throw new BoughError("run_failed", sentence, { data: { middleware, hook: name }, cause: error });
    }
  };
}

/** One after another, until one throws or the chain is done with early. */
function oneByOne<First, Rest extends unknown[]>(
  hooks: readonly ((first: First, ...rest: Rest) => void | Promise<void>)[],
  isDone?: (first: First) => boolean,
): Hook<[First, ...Rest]> | undefined {
  if (hooks.length === 0) return undefined;
  return async (first, ...rest) => {
    for (const hook of hooks) {
      await hook(first, ...rest);
      if (isDone?.(first)) return;
    }
  };
}

function allOfThem<Args extends unknown[]>(
  hooks: readonly ((...args: Args) => void | Promise<void>)[],
): Hook<Args> | undefined {
  if (hooks.length === 0) return undefined;
  return async (...args) => {
    const errors: unknown[] = [];
    for (const hook of hooks) {
      try {
        await hook(...args);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  };
}

function unheard<Args extends unknown[]>(
  hooks: readonly ((...args: Args) => void | Promise<void>)[],
): Hook<Args> | undefined {
  if (hooks.length === 0) return undefined;
  return async (...args) => {
    for (const hook of hooks) {
      try {
        await hook(...args);
      } catch {
        // Pipeline-3: there is an error to tell of already.
      }
    }
  };
}

function passOn(hooks: readonly NonNullable<Middleware["afterToolCall"]>[]): Pipeline["afterToolCall"] {
  if (hooks.length === 0) return undefined;
  return async (context, first) => {
    let output = first;
    for (const hook of hooks) output = (await hook(context, output)) ?? output;
    return output;
  };
}

function nestModelCalls(wrappers: readonly ModelWrapper[]): ModelWrapper | undefined {
  if (wrappers.length === 0) return undefined;
  return wrappers.reduce(
    (outer, inner) => (context, request, next) => outer(context, request, (changed) => inner(context, changed, next)),
  );
}

function nestToolCalls(wrappers: readonly ToolWrapper[]): ToolWrapper | undefined {
  if (wrappers.length === 0) return undefined;
  return wrappers.reduce((outer, inner) => (context, next) => outer(context, () => inner(context, next)));
}

function declaredState(list: readonly Middleware[]): readonly StateHandle[] {
  const handles = new Map<string, StateHandle>();
  for (const { name, state = [] } of list) {
    for (const handle of state) {
      const { key } = handle;
      if ((handles.get(key) ?? handle) !== handle) {
        const sentence = `Middleware "${name}" declares state "${key}", which another handle already declares.`;
        throw new BoughError("invalid_argument", sentence, { data: { key, middleware: name } });
      }
      handles.set(key, handle);
    }
  }
  return [...handles.values()];
}
