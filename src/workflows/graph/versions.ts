// Versions of a graph: when two definitions are the same, and whether an execution can go on with another one.

import type { Json } from "../../base/json.ts";
import { sha256Hex } from "../../base/sha256.ts";
import type { RecordedStep } from "../port.ts";
import { planToJson } from "./json.ts";
import { readKey } from "./keys.ts";
import type { GraphPlan, PlannedNode } from "./plan.ts";

/** The same for definitions that say the same, in whichever order their keys are. */
export function digestOf(plan: GraphPlan): string {
  return sha256Hex(canonical(planToJson(plan, false)));
}

/** The order of nodes and edges counts, that of keys does not. */
function canonical(value: Json, isOrdered = false): string {
  if (Array.isArray(value)) return `[${value.map((each) => canonical(each)).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const keys = isOrdered ? Object.keys(value) : Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key]!, key === "nodes")}`).join()}}`;
}

/** Why an execution with these records can't go on with this graph: a record names no node, or one that does something else. */
export function refusalOf(
  { name, nodes }: Pick<GraphPlan, "name" | "nodes">,
  recorded: readonly RecordedStep[],
): string | undefined {
  for (const { key, kind } of recorded) {
    const { id, fallback, rest, isInner } = readKey(key);
    const [first, then] = [nodes.get(id), fallback === undefined ? undefined : nodes.get(fallback)];
    const node = fallback === undefined ? first : then;
    if (!first || !node)
      return `The execution has a record of "${key}", but the graph "${name}" has no node "${first ? fallback : id}".`;
    const isOfNode = rest === "" && kind !== "skip";
    if (!isOfNode || matches(node, kind, isInner)) continue;
    return `The execution has a record of "${key}" (${kind}), but the node "${node.id}" of the graph "${name}" is now ${kindWords[node.kind]}.`;
  }
  return undefined;
}

const kindWords = { agent: "an agent", function: "a function", workflow: "a workflow" };

function matches(node: PlannedNode, kind: RecordedStep["kind"], isInner: boolean): boolean {
  if (node.kind === "workflow") return isInner || kind === "flow";
  return !isInner && kind === (node.kind === "agent" ? "agent" : "step");
}
