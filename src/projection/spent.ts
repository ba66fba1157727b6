// What a branch's own turns used.

import type { JsonObject } from "../base/json.ts";
import type { BranchView, OpenTurn } from "./view.ts";

/** What a turn used is spent, whatever becomes of its messages: the turn's own total, or else what its replies say. */
export function spend(view: BranchView, { used = {} }: OpenTurn, total?: object): void {
  const usage = (total as JsonObject | undefined) ?? used;
  if (Object.keys(usage).length > 0) view.usage = sumUsage(view.usage, usage);
}

export function sumUsage(a: JsonObject, b: object): JsonObject {
  const sum = { ...a };
  for (const [key, value] of Object.entries(b)) if (typeof value === "number") sum[key] = value + Number(sum[key] ?? 0);
  return sum;
}
