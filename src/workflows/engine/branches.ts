// Several things at the same time: all, any, race and map. Each branch and each item is a scope of its own.

import { allowListeners } from "../../base/abort.ts";
import { BoughError } from "../../base/errors.ts";
import { Interrupted } from "../../runs/endings.ts";
import type { FlowBranches, MapOptions } from "../port.ts";
import type { Execution } from "./execution.ts";
import { escapeItem, FlowScope, within } from "./scope.ts";
import { askFor } from "./steps.ts";

/** Settles when all have; rejects with the error of the first branch that failed, in the order of their names. */
export async function all(execution: Execution, name: string, branches: FlowBranches): Promise<unknown> {
  const entries = checkBranches(name, branches);
  const { scope } = execution;
  const key = scope.keyFor(name);
  const ends = await Promise.allSettled(
    entries.map(([branch, code]) => run(execution, new FlowScope(pathOf(key, branch), scope.signal), code)),
  );
  execution.stir();
  const failed = ends.find((end) => end.status === "rejected");
  if (failed) throw failed.reason;
  return Object.fromEntries(entries.map(([branch], i) => [branch, (ends[i] as PromiseFulfilledResult<unknown>).value]));
}

/** The first that settles, or succeeds; what it came to is recorded, and the others are stopped (Execution-6). */
export function first(
  execution: Execution,
  { name, mode }: { name: string; mode: "any" | "race" },
  branches: FlowBranches,
): Promise<unknown> {
  const entries = checkBranches(name, branches);
  const { scope } = execution;
  const key = scope.keyFor(name);
  execution.cover(`${key}[`);
  return askFor({
    execution,
    key,
    kind: "flow",
    isWhole: true,
    retry: undefined,
    timeoutMs: undefined,
    run: async () => {
      const running = entries.map(([branch, code]) => {
        const stop = new AbortController();
        const signal = AbortSignal.any([scope.signal, stop.signal]);
        allowListeners(signal);
        const path = new FlowScope(pathOf(key, branch), signal);
        const value = run(execution, path, code).then((made) => ({ name: branch, value: made }));
        value.catch(() => {});
        return { value, stop };
      });
      const values = running.map(({ value }) => value);
      try {
        return { value: await (mode === "race" ? Promise.race(values) : Promise.any(values)) };
      } catch (error) {
        throw error instanceof AggregateError ? allFailed(key, error) : error;
      } finally {
        for (const { stop } of running) stop.abort(new Interrupted("another branch was first"));
      }
    },
  });
}

/** The results in the order of the items. At most `parallel` are worked on at the same time. */
export async function map<Item>(
  execution: Execution,
  name: string,
  items: Iterable<Item>,
  {
    code,
    key: keyOf = (_item: Item, index: number) => String(index),
    parallel,
  }: MapOptions<Item> & { parallel: number; code: (item: Item, index: number) => unknown },
): Promise<unknown[]> {
  const { scope } = execution;
  const key = scope.keyFor(name);
  const list = [...items];
  const keys = list.map((item, index) => itemKey(keyOf(item, index), { name, index }));
  refuseTwice(keys, name);
  const results: unknown[] = new Array(list.length);
  let next = 0;
  let failure: { readonly error: unknown } | undefined;
  const work = async () => {
    while (next < list.length && !failure) {
      const at = next++;
      const item = new FlowScope(pathOf(key, keys[at]!), scope.signal);
      try {
        results[at] = await run(execution, item, () => code(list[at]!, at));
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallel, list.length) }, work));
  execution.stir();
  if (failure) throw failure.error;
  return results;
}

async function run(execution: Execution, scope: FlowScope, code: () => unknown): Promise<unknown> {
  return within(execution, scope, async () => code());
}

function pathOf(key: string, branch: string): string {
  return `${key}[${escapeItem(branch)}]/`;
}

function checkBranches(name: string, branches: FlowBranches): [string, () => unknown][] {
  const entries = typeof branches === "object" && branches !== null ? Object.entries(branches) : [];
  if (entries.length > 0 && entries.every(([, code]) => typeof code === "function")) return entries;
  const sentence = `"${name}" needs an object of functions: { a: () => flow.step(…), b: () => flow.agent(…) }.`;
  throw new BoughError("invalid_argument", sentence);
}

function itemKey(key: unknown, { name, index }: { name: string; index: number }): string {
  if (typeof key === "string" && key !== "") return key;
  if (typeof key === "number") return String(key);
  const sentence = `The key of item ${index} of the map "${name}" must be a non-empty string.`;
  throw new BoughError("invalid_argument", sentence, { data: { map: name, index } });
}

function refuseTwice(keys: readonly string[], name: string): void {
  const seen = new Set<string>();
  for (const key of keys) {
    if (!seen.has(key)) seen.add(key);
    else {
      const sentence = `Two items of the map "${name}" have the key "${key}"; a key identifies one item.`;
      throw new BoughError("invalid_argument", sentence, { data: { map: name, key } });
    }
  }
}

function allFailed(key: string, { errors }: AggregateError): BoughError {
  const words = errors.map((error) => (error instanceof Error ? error.message : String(error)));
  return new BoughError("run_failed", `Every branch of "${key}" failed: ${words.join(" ")}`, { data: { key } });
}
