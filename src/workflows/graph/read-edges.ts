// Edges as their author wrote them: one at a time or several at once, as lists or objects. Each comes out as one pair of nodes.

import { anything, checkOptions, isObject, optionTable } from "../../base/options.ts";
import type { Bindings } from "./bindings.ts";
import type { EdgeOptions } from "./definition.ts";
import { edgeName, type PlannedEdge } from "./edge.ts";
import type { PlannedNode } from "./plan.ts";
import { readJudge } from "./read-nodes.ts";
import { edgePlace, type Place, refuse } from "./refuse.ts";

type Nodes = ReadonlyMap<string, PlannedNode>;

const edgeTable = optionTable<Record<"from" | "to" | "when" | "max", unknown>>({
  from: anything,
  to: anything,
  when: anything,
  max: anything,
});
const optionsTable = optionTable<EdgeOptions>({ max: anything });

/** The edges of a graph, with those that its routers imply and those at its ends. */
export function readEdges(graph: string, given: unknown, nodes: Nodes, bindings: Bindings): PlannedEdge[] {
  if (!Array.isArray(given)) throw refuse(`the graph "${graph}"`, "`edges` must be a list");
  const edges = given.flatMap((each, i) => readEdge(graph, each, i, nodes, bindings));
  const implied = [...edges, ...handoffsOf(nodes, edges)];
  const all = withEnds(nodes, implied);
  checkPairs(graph, all);
  return all;
}

function readEdge(graph: string, given: unknown, i: number, nodes: Nodes, bindings: Bindings): PlannedEdge[] {
  const unnamed: Place = `the graph "${graph}", edge ${i + 1} of the list`;
  const { from, to, when, max } = fieldsOf(given, unnamed);
  const edges: PlannedEdge[] = [];
  for (const source of namesOf(from, "from", unnamed)) {
    for (const target of namesOf(to, "to", unnamed)) {
      const edge = { from: source, to: target };
      const place = edgePlace(graph, edge);
      checkEnds(edge, place, nodes);
      edges.push({
        ...edge,
        ...(when !== undefined && {
          when: when === "otherwise" ? when : readJudge(when, edgeName(edge), place, bindings),
        }),
        ...(max !== undefined && { max: readMax(max, edge, place) }),
      });
    }
  }
  return edges;
}

function fieldsOf(given: unknown, place: Place): Record<"from" | "to" | "when" | "max", unknown> {
  if (isObject(given)) {
    checkOptions(`In ${place}, it`, given, edgeTable);
    return { from: given.from, to: given.to, when: given.when, max: given.max };
  }
  if (!Array.isArray(given) || given.length < 2 || given.length > 4) {
    throw refuse(place, "an edge is [from, to], [from, to, when] or [from, to, when, { max }]");
  }
  const [from, to, third, fourth] = given as unknown[];
  const isBound = fourth === undefined && isObject(third) && Object.keys(third).join() === "max";
  const [when, options] = isBound ? [undefined, third] : [third, fourth];
  if (options !== undefined) checkOptions(`In ${place}, its last part`, options, optionsTable);
  return { from, to, when, max: (options as EdgeOptions | undefined)?.max };
}

function namesOf(given: unknown, end: "from" | "to", place: Place): string[] {
  const names = Array.isArray(given) ? given : [given];
  if (names.length === 0 || !names.every((each) => typeof each === "string")) {
    throw refuse(place, `\`${end}\` must be the id of a node, or a list of ids`);
  }
  return names;
}

function checkEnds({ from, to }: Pick<PlannedEdge, "from" | "to">, place: Place, nodes: Nodes): void {
  if (from === "end") throw refuse(place, 'no edge comes from "end"');
  if (to === "start") throw refuse(place, 'no edge leads to "start"');
  const unknown = [from, to].find((id) => id !== "start" && id !== "end" && !nodes.has(id));
  if (unknown !== undefined) throw refuse(place, `there is no node "${unknown.slice(0, 64)}"`);
}

function readMax(max: unknown, { from, to }: Pick<PlannedEdge, "from" | "to">, place: Place): number {
  if (!Number.isSafeInteger(max) || (max as number) < 1 || (max as number) > 10_000) {
    throw refuse(place, "`max` must be an integer from 1 to 10000: how often the edge can be taken");
  }
  if (from === "start" || to === "end") throw refuse(place, "it closes no loop, so it can't have `max`");
  return max as number;
}

/** A router leads to what it can choose, unless an edge says more. */
function handoffsOf(nodes: Nodes, edges: readonly PlannedEdge[]): PlannedEdge[] {
  const known = new Set(edges.map(edgeName));
  return [...nodes.values()].flatMap((node) => {
    const { to = {}, otherwise } = (node.kind === "agent" && node.router) || {};
    const targets = new Set([...Object.keys(to), ...(otherwise === undefined ? [] : [otherwise])]);
    return [...targets]
      .map((target) => ({ from: node.id, to: target, when: { handoff: target } }))
      .filter((edge) => !known.has(edgeName(edge)));
  });
}

/** Where nothing is said of the start or the end, nodes that nothing leads to come first, and those that lead nowhere last. */
function withEnds(nodes: Nodes, edges: readonly PlannedEdge[]): PlannedEdge[] {
  const ids = [...nodes.keys()].filter((id) => !isFallback(nodes, id, edges));
  const hasStart = edges.some(({ from }) => from === "start");
  const hasEnd = edges.some(({ to }) => to === "end");
  const onward = edges.filter(({ max }) => max === undefined);
  const entered = new Set(onward.map(({ to }) => to));
  const left = new Set(onward.map(({ from }) => from));
  const first = hasStart ? [] : ids.filter((id) => !entered.has(id)).map((to) => ({ from: "start", to }));
  const last = hasEnd ? [] : ids.filter((id) => !left.has(id)).map((from) => ({ from, to: "end" }));
  return [...first, ...edges, ...last];
}

/** Whether a node only takes the places of others. */
export function isFallback(nodes: Nodes, id: string, edges: readonly PlannedEdge[]): boolean {
  const stands = [...nodes.values()].some(({ onError }) => typeof onError === "object" && onError.fallback === id);
  return stands && !edges.some(({ from, to }) => from === id || to === id);
}

function checkPairs(graph: string, edges: readonly PlannedEdge[]): void {
  const seen = new Set<string>();
  const otherwise = new Set<string>();
  for (const edge of edges) {
    const place = edgePlace(graph, edge);
    const name = edgeName(edge);
    if (seen.has(name)) throw refuse(place, "it is there twice; combine the conditions with { any: [...] }");
    seen.add(name);
    if (edge.from === "start" && edge.when !== undefined) {
      throw refuse(place, 'an edge from "start" has no output to judge, so it can\'t have a condition');
    }
    if (edge.when !== "otherwise") continue;
    if (otherwise.has(edge.from)) throw refuse(place, `"${edge.from}" has two edges with "otherwise"`);
    otherwise.add(edge.from);
  }
}
