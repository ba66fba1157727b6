// Graphs as JSON. What is no data stands there by its name: functions and patterns as `{ function: name }`, agents and workflows as
// texts. Reading it runs nothing of it.

import { checkedObject, factLimits, type Json, type JsonObject } from "../../base/json.ts";
import { isObject } from "../../base/options.ts";
import { conditionToJson, type ReadCondition } from "./condition.ts";
import { isNamedCode, type Judge, type PlannedEdge } from "./edge.ts";
import type { Named } from "./named.ts";
import type { GraphPlan, PlannedApproval, PlannedNode, Source } from "./plan.ts";
import { nodePlace, type Place, refuse } from "./refuse.ts";
import { choiceFromJson, choiceToJson, schemaFromJson, schemaToJson } from "./schemas.ts";

/** Definitions are kept as facts are, and copied into listings of none. */
const limits = { ...factLimits, bytes: 1024 * 1024, forbidden: new Set(["__proto__", "constructor", "prototype"]) };

/** `isStrict` refuses what has no form in JSON; without it, such a schema is left out. */
export function planToJson({ name, options, nodes, edges, output }: GraphPlan, isStrict: boolean): JsonObject {
  const { description, input, version, conversation, parallel } = options;
  const place: Place = `the graph "${name}"`;
  const { onChange } = options;
  return {
    name,
    ...given({ description, version, conversation, parallel }),
    ...(onChange !== undefined && onChange !== "pin" && { onChange }),
    ...(input !== undefined && schemaEntry("input", schemaToJson(input), place, isStrict)),
    nodes: Object.fromEntries([...nodes].map(([id, node]) => [id, nodeToJson(name, node, isStrict)])),
    edges: edges.map(edgeToJson),
    ...(output && { output: sourceToJson(output) }),
  };
}

/** What there is of it. */
function given(values: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([, each]) => each !== undefined)) as JsonObject;
}

function schemaEntry(key: string, json: JsonObject | undefined, place: Place, isStrict: boolean): JsonObject {
  if (json) return { [key]: json };
  if (isStrict) throw refuse(place, `the schema in \`${key}\` can't be converted to JSON Schema, so it has no JSON`);
  return {};
}

function nodeToJson(graph: string, node: PlannedNode, isStrict: boolean): JsonObject {
  const { approve, input, join, onError, retry, timeoutMs } = node;
  return {
    ...workToJson(graph, node, isStrict),
    ...(input && (isNamedCode(input) ? { input: nameOf(input) } : { prompt: input.text })),
    ...(join !== "all" && { join }),
    ...(onError !== "stop" && { onError: typeof onError === "string" ? onError : { ...onError } }),
    ...(retry && { retry: { ...given(retry), ...(retry.when && { when: nameOf(retry.when) }) } }),
    ...given({ timeoutMs }),
    ...(approve && { approve: approvalToJson(approve) }),
  };
}

function workToJson(graph: string, node: PlannedNode, isStrict: boolean): JsonObject {
  if (node.kind === "workflow") return { workflow: node.workflow.name };
  if (node.kind === "function") {
    const { run, output, effect, reconcile } = node;
    const schema = output && schemaEntry("output", schemaToJson(output), nodePlace(graph, node.id), isStrict);
    return { run: nameOf(run), ...schema, ...given({ effect }), ...(reconcile && { reconcile: nameOf(reconcile) }) };
  }
  const { agent, output, router, instructions, conversation } = node;
  return {
    agent: agent.name,
    ...given({ instructions, conversation }),
    ...(output && schemaEntry("output", choiceToJson(output), nodePlace(graph, node.id), isStrict)),
    ...(router && { router: { ...router, to: { ...router.to } } }),
  };
}

function approvalToJson({ when, ...rest }: PlannedApproval): JsonObject {
  return { ...given(rest), ...(when && { when: judgeToJson(when) }) };
}

function edgeToJson({ from, to, when, max }: PlannedEdge): JsonObject {
  return {
    from,
    to,
    ...(when !== undefined && { when: when === "otherwise" ? when : judgeToJson(when) }),
    ...given({ max }),
  };
}

function judgeToJson(judge: Judge): Json {
  return isNamedCode(judge) ? nameOf(judge) : conditionToJson(judge as ReadCondition);
}

function sourceToJson(source: Source): Json {
  return isNamedCode(source) ? nameOf(source) : source.text;
}

function nameOf({ name }: Pick<Named<unknown>, "name">): JsonObject {
  return { function: name };
}

/** A definition with its schemas made usable; refuses what no JSON of a graph can be. */
export function definitionFromJson(json: unknown): {
  readonly name: string;
  readonly definition: Record<string, unknown>;
} {
  const { name, ...definition } = checkedObject(json, "A graph", limits) as Record<string, unknown>;
  if (typeof name !== "string") throw refuse("the JSON of a graph", "it needs a `name`");
  if (isObject(definition.input)) definition.input = schemaFromJson(definition.input as JsonObject);
  if (isObject(definition.nodes)) {
    const nodes = Object.entries(definition.nodes).map(([id, node]) => [id, nodeFromJson(node)]);
    definition.nodes = Object.fromEntries(nodes);
  }
  return { name, definition };
}

function nodeFromJson(node: unknown): unknown {
  if (!isObject(node) || !isObject(node.output)) return node;
  const read = node.run === undefined ? choiceFromJson : schemaFromJson;
  return { ...node, output: read(node.output as JsonObject) };
}
