// Any value as JSON: something the log takes and a model can read. It is a copy, so that what a tool does to its result
// afterwards changes nothing. Only size and depth are refused; what JSON has no word for is described.

import { encodeJson, type Json, type JsonObject, outputLimits } from "../base/json.ts";

/** How large an output may be, and how deep. */
export const { bytes: outputBytes } = outputLimits;
const { depth: outputDepth } = outputLimits;

/** What `readable` throws, and nothing else. */
export class Oversize extends Error {
  readonly limit: "bytes" | "depth";

  constructor(limit: "bytes" | "depth") {
    super(limit);
    this.limit = limit;
  }
}

interface Walk {
  /** No more than the JSON text will have. */
  size: number;
  /** The objects around the value. */
  readonly path: object[];
}

export function readable(value: unknown): Json {
  const walk: Walk = { size: 0, path: [] };
  const copy = copyOf(value, walk, outputDepth);
  // A character of JSON text is at most six bytes per counted one, so only what comes near the limit is measured.
  if (walk.size * 6 > outputBytes) measure(copy);
  return copy;
}

function measure(value: Json): void {
  try {
    encodeJson(value, "The output", outputLimits);
  } catch {
    throw new Oversize("bytes");
  }
}

function copyOf(value: unknown, walk: Walk, depthLeft: number): Json {
  switch (typeof value) {
    case "string":
      return counted(value, walk, value.length + 2);
    case "boolean":
      return counted(value, walk, 4);
    case "number": {
      const text = String(value);
      // Zero is added because JSON has no negative one.
      return counted(Number.isFinite(value) ? value + 0 : text, walk, text.length);
    }
    case "undefined":
      return counted(null, walk, 4);
    case "object":
      return value === null ? counted(null, walk, 4) : copyOfObject(value, walk, depthLeft);
    default:
      return described(value, walk);
  }
}

function copyOfObject(value: object, walk: Walk, depthLeft: number): Json {
  if (walk.path.includes(value)) return described("[circular]", walk);
  if (depthLeft === 0) throw new Oversize("depth");
  count(walk, 2);
  walk.path.push(value);
  try {
    return copyOfKind(value, walk, depthLeft - 1);
  } catch (error) {
    if (error instanceof Oversize) throw error;
    return described("[unreadable]", walk);
  } finally {
    walk.path.pop();
  }
}

function copyOfKind(value: object, walk: Walk, depthLeft: number): Json {
  if (Array.isArray(value)) return copyOfItems(value, walk, depthLeft);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return described(`[${value.byteLength} bytes]`, walk);
  if (value instanceof Error) return described(`${value.name}: ${value.message}`, walk);
  if (value instanceof RegExp) return described(String(value), walk);
  if (value instanceof Set) return copyOfItems(value, walk, depthLeft);
  if (value instanceof Map) return copyOfMap(value, walk, depthLeft);
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === "function") return copyOf(toJSON.call(value, ""), walk, depthLeft);
  return copyOfProperties(value, walk, depthLeft);
}

function copyOfItems(items: Iterable<unknown>, walk: Walk, depthLeft: number): Json[] {
  const copy: Json[] = [];
  for (const item of items) copy.push(copyOf(item, walk, depthLeft));
  return copy;
}

function copyOfMap(map: ReadonlyMap<unknown, unknown>, walk: Walk, depthLeft: number): Json {
  const entries = [...map];
  if (!entries.every(([key]) => typeof key === "string")) return copyOfItems(entries, walk, depthLeft);
  return copyOfProperties(Object.fromEntries(entries), walk, depthLeft);
}

function copyOfProperties(value: object, walk: Walk, depthLeft: number): JsonObject {
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) {
    // No fact may have this key.
    if (key === "__proto__") continue;
    const item = propertyOf(value, key);
    if (item === undefined) continue;
    count(walk, key.length + 3);
    copy[key] = copyOf(item, walk, depthLeft);
  }
  return copy;
}

function propertyOf(value: object, key: string): unknown {
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    return "[unreadable]";
  }
}

function described(value: unknown, walk: Walk): string {
  const text = typeof value === "function" ? `[function ${nameOf(value)}]` : String(value);
  return counted(text, walk, text.length + 2);
}

function nameOf(value: { readonly name?: unknown }): string {
  const name = propertyOf(value, "name");
  return typeof name === "string" && name !== "" ? name : "without a name";
}

function counted<T extends Json>(value: T, walk: Walk, size: number): T {
  count(walk, size);
  return value;
}

/** Stops on the way, because a small graph of shared objects can be a tree without end. */
function count(walk: Walk, size: number): void {
  walk.size += size;
  if (walk.size > outputBytes) throw new Oversize("bytes");
}
