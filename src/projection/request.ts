// Requests of one turn, one after the other: what a later run says anew overrides what the turn has.

import type { JsonObject } from "../base/json.ts";
import type { TurnRequest } from "../events/index.ts";

/** Options of `config` that are merged by key; all others are replaced. */
const mergedKeys = ["limits", "tighten"] as const;

/** The request of a turn after another run said more. What either can't keep is named, unless the later one says it in JSON. */
export function mergeRequests(
  first: TurnRequest | undefined,
  second: TurnRequest | undefined,
): TurnRequest | undefined {
  if (!first || !second) return second ?? first;
  const unkept = new Set(second.missing);
  const config = mergeConfigs(first.config, second.config, unkept);
  const tools = { ...without(first.tools ?? {}, "config.tools.", unkept), ...second.tools };
  const missing = [...(first.missing ?? []).filter((name) => !isKept(second, name)), ...unkept];
  const { config: _config, tools: _tools, missing: _missing, ...rest } = { ...first, ...second };
  return {
    ...rest,
    ...(Object.keys(config).length > 0 && { config }),
    ...(Object.keys(tools).length > 0 && { tools }),
    ...(missing.length > 0 && { missing: [...new Set(missing)] }),
  };
}

function mergeConfigs(
  first: JsonObject = {},
  second: JsonObject = {},
  unkept: ReadonlySet<string> = new Set(),
): JsonObject {
  const merged: JsonObject = { ...without(first, "config.", unkept), ...second };
  for (const key of mergedKeys) {
    if (first[key] !== undefined && second[key] !== undefined) {
      merged[key] = { ...(first[key] as JsonObject), ...(second[key] as JsonObject) };
    }
  }
  return merged;
}

/** The entries that no unkept name replaces. */
function without<T>(entries: Readonly<Record<string, T>>, prefix: string, unkept: ReadonlySet<string>) {
  return Object.fromEntries(Object.entries(entries).filter(([key]) => !unkept.has(`${prefix}${key}`)));
}

/** Whether a request says in JSON what an earlier one could only name. */
function isKept({ config = {}, tools = {} }: TurnRequest, name: string): boolean {
  const [, kind, rest] = /^config\.(tools|headers)\.(.+)$/.exec(name) ?? [];
  if (kind === "tools") return Object.hasOwn(tools, rest!);
  if (kind === "headers") return Object.hasOwn(Object(config.headers), rest!);
  return Object.hasOwn(config, name.slice("config.".length));
}
