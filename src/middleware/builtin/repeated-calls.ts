// Repeated calls: a model that makes the same call over and over gets one warning, and is then stopped.

import type { Json, JsonObject } from "../../base/json.ts";
import type { Middleware } from "../port.ts";
import { defineState } from "../state.ts";
import { checkCount } from "./check-count.ts";

/** The limit of identical consecutive calls. */
export interface RepeatedCallOptions {
  /** The consecutive identical call that is blocked (default 3: the call runs twice). */
  readonly limit?: number;
}

const lastState = defineState({ key: "repeated-calls", scope: "run", initial: { call: "", times: 0 } });

/** Blocks a tool call repeated too often in a row with the same input; one more ends the turn (reason "repeated-call"). */
export function repeatedCalls({ limit = 3 }: RepeatedCallOptions = {}): Middleware {
  checkCount("limit", limit);
  return {
    name: "repeated-calls",
    state: [lastState],
    async beforeToolCall(context) {
      const { tool, input } = context;
      const call = `${tool.name} ${canonical(input)}`;
      const { times } = await context.state.update(lastState, (last) => ({
        call,
        times: last.call === call ? last.times + 1 : 1,
      }));
      if (times < limit) return;
      const value = `${tool.name} was called ${times} times in a row with the same input; this call was not run. Use the results you have, change the input, or answer without this call.`;
      context.block({ type: "error-text", value });
      if (times === limit) return;
      context.reachLimit("repeated-calls", limit);
      context.stop("repeated-call");
    },
  };
}

/** The same text for the same value: models write the keys of an object in any order. */
function canonical(value: Json): string {
  return JSON.stringify(inOrder(value));
}

function inOrder(value: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(inOrder);
  const sorted: JsonObject = {};
  for (const key of Object.keys(value).sort()) sorted[key] = inOrder(value[key]!);
  return sorted;
}
