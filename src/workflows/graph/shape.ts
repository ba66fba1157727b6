// The shape of a graph: which edges go back, what comes before what, and in which layer a node stands.
//   Shape-1. An edge with `max` goes back to a node that leads to it; without those edges, the graph has no cycle.
//   Shape-2. Loops whose nodes overlap are one group and go round together, so that what runs never depends on who was faster.

import type { PlannedEdge } from "./edge.ts";
import { edgePlace, nodePlace, type Place, refuse } from "./refuse.ts";

/** Loops that share nodes. */
export interface LoopGroup {
  readonly edges: readonly PlannedEdge[];
  /** Every node that a further round of any of them begins anew. */
  readonly nodes: ReadonlySet<string>;
}

export interface Shape {
  readonly nodeIds: readonly string[];
  /** Edges that go on, by the node that they come from ("start" is one) or lead to ("end" is one). */
  readonly out: ReadonlyMap<string, readonly PlannedEdge[]>;
  readonly into: ReadonlyMap<string, readonly PlannedEdge[]>;
  /** Edges that go back, by the node that they come from. */
  readonly back: ReadonlyMap<string, readonly PlannedEdge[]>;
  /** The same, by the node that they lead to. */
  readonly backInto: ReadonlyMap<string, readonly PlannedEdge[]>;
  /** What a node leads to by edges that go on, itself included. */
  readonly after: ReadonlyMap<string, ReadonlySet<string>>;
  readonly groups: readonly LoopGroup[];
  /** The longest way from the start, from 0 on. */
  readonly layers: ReadonlyMap<string, number>;
}

/** Refuses cycles without a bound, bounds without a loop, and nodes that nothing leads to. */
export function readShape(name: string, nodeIds: readonly string[], edges: readonly PlannedEdge[]): Shape {
  const place: Place = `the graph "${name}"`;
  const forward = edges.filter(({ max }) => max === undefined);
  const backward = edges.filter(({ max }) => max !== undefined);
  const out = byEnd(forward, "from");
  const order = orderOf(place, nodeIds, out);
  const after = reach(order, out);
  for (const edge of backward) {
    if (after.get(edge.to)!.has(edge.from)) continue;
    const why = `it has \`max\`, but "${edge.to}" does not lead to "${edge.from}", so it closes no loop`;
    throw refuse(edgePlace(name, edge), why);
  }
  const first = new Set((out.get("start") ?? []).flatMap(({ to }) => [...(after.get(to) ?? [])]));
  const lost = nodeIds.find((id) => !first.has(id));
  if (lost !== undefined) throw unreachable(name, lost, backward);
  return {
    nodeIds,
    out,
    into: byEnd(forward, "to"),
    back: byEnd(backward, "from"),
    backInto: byEnd(backward, "to"),
    after,
    groups: groupsOf(backward, after),
    layers: layersOf(order, out),
  };
}

function unreachable(name: string, id: string, backward: readonly PlannedEdge[]) {
  const isTarget = backward.some(({ to }) => to === id);
  const advice = isTarget ? "; an edge with `max` goes back, so it can't be the only way to a node" : "";
  return refuse(nodePlace(name, id), `no way leads here from "start"${advice}`);
}

function byEnd(edges: readonly PlannedEdge[], end: "from" | "to"): Map<string, PlannedEdge[]> {
  const found = new Map<string, PlannedEdge[]>();
  for (const edge of edges) {
    const list = found.get(edge[end]);
    if (list) list.push(edge);
    else found.set(edge[end], [edge]);
  }
  return found;
}

/** The nodes in an order in which edges only go on; a cycle is refused by name. */
function orderOf(place: Place, nodeIds: readonly string[], out: ReadonlyMap<string, readonly PlannedEdge[]>): string[] {
  const order: string[] = [];
  const done = new Set<string>(["end"]);
  // By hand, not by calls: a chain of nodes may be longer than a stack.
  for (const root of nodeIds) {
    const path: { readonly id: string; next: number }[] = done.has(root) ? [] : [{ id: root, next: 0 }];
    const onPath = new Set([root]);
    while (path.length > 0) {
      const top = path.at(-1)!;
      const edge = out.get(top.id)?.[top.next++];
      if (edge && onPath.has(edge.to)) throw cycle(place, path, edge.to);
      if (edge && !done.has(edge.to)) {
        path.push({ id: edge.to, next: 0 });
        onPath.add(edge.to);
      } else if (!edge) {
        path.pop();
        onPath.delete(top.id);
        done.add(top.id);
        order.push(top.id);
      }
    }
  }
  return order.reverse();
}

function cycle(place: Place, path: readonly { readonly id: string }[], to: string) {
  const ids = path.map(({ id }) => id);
  const names = [...ids.slice(ids.indexOf(to)), to].map((id) => `"${id}"`).join(" → ");
  return refuse(place, `${names} is a cycle without a bound; give the edge that goes back a \`max\``);
}

function reach(order: readonly string[], out: ReadonlyMap<string, readonly PlannedEdge[]>): Map<string, Set<string>> {
  const after = new Map<string, Set<string>>();
  for (const id of [...order].reverse()) {
    const reached = new Set([id]);
    for (const { to } of out.get(id) ?? []) for (const each of after.get(to) ?? []) reached.add(each);
    after.set(id, reached);
  }
  return after;
}

/** Shape-2. */
function groupsOf(backward: readonly PlannedEdge[], after: ReadonlyMap<string, ReadonlySet<string>>): LoopGroup[] {
  const groups: { edges: PlannedEdge[]; nodes: Set<string> }[] = [];
  for (const edge of backward) {
    const group = { edges: [edge], nodes: new Set(after.get(edge.to)) };
    for (const other of [...groups]) {
      if (![...other.nodes].some((id) => group.nodes.has(id))) continue;
      groups.splice(groups.indexOf(other), 1);
      group.edges.unshift(...other.edges);
      for (const id of other.nodes) group.nodes.add(id);
    }
    groups.push(group);
  }
  return groups;
}

function layersOf(order: readonly string[], out: ReadonlyMap<string, readonly PlannedEdge[]>): Map<string, number> {
  const layers = new Map(order.map((id) => [id, 0]));
  for (const id of order) {
    for (const { to } of out.get(id) ?? []) {
      if (to !== "end") layers.set(to, Math.max(layers.get(to)!, layers.get(id)! + 1));
    }
  }
  return layers;
}

/** The nodes that can have run before a node: those that lead to it, going on or going back. */
export function nodesBefore({ into, backInto }: Shape, id: string): Set<string> {
  const before = new Set<string>();
  const queue = [id];
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    for (const { from } of [...(into.get(at) ?? []), ...(backInto.get(at) ?? [])]) {
      if (from === "start" || before.has(from)) continue;
      before.add(from);
      queue.push(from);
    }
  }
  return before;
}

/** The nodes that lead to a node by edges that go on: all of them are decided when it starts, unless a join takes the first. */
export function nodesAbove({ nodeIds, after }: Shape, id: string): Set<string> {
  return new Set(nodeIds.filter((each) => each !== id && after.get(each)!.has(id)));
}
