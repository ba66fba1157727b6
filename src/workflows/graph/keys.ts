// Keys: how what a graph records is called. The flow counts what has no key of its own (`review.approve#2`).

import { edgeName, type PlannedEdge } from "./edge.ts";

/** A node's key in an execution: its first round has the bare id. */
export function nodeKey(id: string, round: number): string {
  return round === 1 ? id : `${id}#${round}`;
}

/** The key of a condition that is code. */
export function edgeKey(edge: PlannedEdge, round: number): string {
  return round === 1 ? edgeName(edge) : `${nodeKey(edge.from, round)}->${edge.to}`;
}

/** What a key tells. */
export interface ReadKey {
  readonly id: string;
  /** The node that has run in its place. */
  readonly fallback?: string;
  /** What of the node it is: "" for its work, else `.approve`, `.skipped`, `->end` and the like. */
  readonly rest: string;
  /** Whether it is a step of the workflow that the node runs. */
  readonly isInner: boolean;
}

export function readKey(key: string): ReadKey {
  const [own, ...inner] = key.split("/") as [string];
  const isInner = inner.length > 0;
  const [, id = "", tail = ""] = /^(.*?)((?:\.|->).*)?$/u.exec(own.replaceAll(/#\d+/g, "")) ?? [];
  const names = tail.split(".").slice(1);
  if (tail.startsWith("->") || names[0] !== "fallback") return { id, rest: tail, isInner };
  const last = names.lastIndexOf("fallback");
  const rest = names.slice(last + 2).map((each) => `.${each}`);
  return { id, fallback: names[last + 1] ?? "", rest: rest.join(""), isInner };
}
