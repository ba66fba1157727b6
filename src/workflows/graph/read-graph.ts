// A whole definition, read and checked: what comes out can run.

import { anything, checkOptions, isObject, optionTable, text } from "../../base/options.ts";
import { checkWorkflow } from "../workflow.ts";
import { Bindings } from "./bindings.ts";
import { checkPlan } from "./check.ts";
import type { GraphBindings, GraphDefinition } from "./definition.ts";
import type { GraphPlan, PlannedNode, Source } from "./plan.ts";
import { isFallback, readEdges } from "./read-edges.ts";
import { readNode } from "./read-nodes.ts";
import { type Place, refuse } from "./refuse.ts";
import { readShape } from "./shape.ts";
import { readTemplate } from "./template.ts";

const table = optionTable<GraphDefinition & GraphBindings>({
  description: text,
  input: anything,
  version: anything,
  conversation: anything,
  parallel: anything,
  onChange: anything,
  versions: anything,
  nodes: anything,
  edges: anything,
  output: anything,
  agents: anything,
  functions: anything,
  workflows: anything,
});

const limits = { nodes: 500, edges: 5_000 };

export interface ReadGraph {
  readonly plan: GraphPlan;
  readonly bindings: Bindings;
}

export function readGraph(name: string, given: unknown): ReadGraph {
  const place: Place = `the graph "${String(name).slice(0, 64)}"`;
  if (!isObject(given)) throw refuse(place, "it must be an object with `nodes` and `edges`");
  checkOptions(`The graph "${String(name).slice(0, 64)}"`, given, table);
  const {
    nodes: _nodes,
    edges: _edges,
    output,
    agents,
    functions,
    workflows,
    ...options
  } = given as unknown as GraphDefinition & GraphBindings;
  checkWorkflow(name, options);
  const tables = { agents, functions, workflows };
  for (const [key, each] of Object.entries(tables)) {
    if (each !== undefined && !isObject(each)) throw refuse(place, `\`${key}\` must be an object`);
  }
  const bindings = new Bindings(tables as GraphBindings);
  const nodes = readNodes(name, place, given.nodes, bindings);
  const edges = readEdges(name, given.edges, nodes, bindings);
  if (edges.length > limits.edges) throw refuse(place, `a graph has at most ${limits.edges} edges`);
  const placed = [...nodes.keys()].filter((id) => !isFallback(nodes, id, edges));
  const source = output === undefined ? undefined : readOutput(output, `${place}, \`output\``, bindings);
  const shape = readShape(name, placed, edges);
  const plan = { name, options, nodes, edges, shape, ...(source && { output: source }) };
  checkPlan(plan);
  return { plan, bindings };
}

function readNodes(graph: string, place: Place, given: unknown, bindings: Bindings): Map<string, PlannedNode> {
  if (!isObject(given)) throw refuse(place, "`nodes` must be an object of nodes by their ids");
  const ids = Object.keys(given);
  if (ids.length === 0) throw refuse(place, "it has no nodes");
  if (ids.length > limits.nodes) throw refuse(place, `a graph has at most ${limits.nodes} nodes`);
  return new Map(ids.map((id) => [id, readNode(graph, id, given[id], bindings)]));
}

function readOutput(given: unknown, place: Place, bindings: Bindings): Source {
  return typeof given === "string" ? readTemplate(given, place) : bindings.code(given, "output", place);
}
