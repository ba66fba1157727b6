// Edges as they are judged: from a node to another one, always or when something holds.

import { describeCondition, type ReadCondition } from "./condition.ts";
import type { GraphValues } from "./definition.ts";
import type { Named } from "./named.ts";

/** When something holds: a condition of an output, or a function. */
export type Judge = ReadCondition | Named<(values: GraphValues) => unknown>;

export interface PlannedEdge {
  readonly from: string;
  readonly to: string;
  /** Always, if absent. */
  readonly when?: Judge | "otherwise";
  /** How often it is taken; only edges back have a bound. */
  readonly max?: number;
}

export function isNamedCode(value: unknown): value is Named<(values: GraphValues) => unknown> {
  return typeof value === "object" && value !== null && "code" in value;
}

/** How an edge is called in keys and tables: there is one for each pair of nodes. */
export function edgeName({ from, to }: Pick<PlannedEdge, "from" | "to">): string {
  return `${from}->${to}`;
}

/** When an edge is taken, in a few words. */
export function describeWhen(when: Judge | "otherwise"): string {
  if (when === "otherwise") return when;
  return isNamedCode(when) ? `${when.name}()` : describeCondition(when as ReadCondition);
}
