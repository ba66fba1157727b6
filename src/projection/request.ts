// Requests of one turn, one after the other: what a later run says anew overrides what the turn has.

import type { Json, JsonObject } from "../base/json.ts";
import type { TurnRequest } from "../events/index.ts";

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
  const both = (key: string) => isObject(first[key]) && isObject(second[key]);
  return {
    ...without(first, "config.", unkept),
    ...second,
    ...(both("limits") && { limits: { ...(first.limits as JsonObject), ...(second.limits as JsonObject) } }),
    ...(both("tighten") && { tighten: tightest(first.tighten as JsonObject, second.tighten as JsonObject) }),
  };
}

/** From the loosest to the strictest. */
export const permissionModes = ["allow", "ask", "deny"] as const;

/** The stricter permission mode and the lower of all numbers: what only tightens is never loosened by who comes later. */
export function tightest(first: JsonObject, second: JsonObject): JsonObject {
  const bound: JsonObject = { ...first };
  for (const [key, value] of Object.entries(second)) {
    const other = first[key];
    if (isObject(value) && isObject(other)) bound[key] = tightest(other, value);
    else if (typeof value === "number" && typeof other === "number") bound[key] = Math.min(value, other);
    else if (other === undefined || strictness(value) > strictness(other)) bound[key] = value;
  }
  return bound;
}

function strictness(mode: Json): number {
  return permissionModes.indexOf(mode as (typeof permissionModes)[number]);
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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
