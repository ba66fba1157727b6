// How a graph is refused: one sentence that names the place.

import { BoughError } from "../../base/errors.ts";

/** Where something stands in a graph, as a sentence names it: `the node "review"`. */
export type Place = string;

/** `why` continues the sentence after the place. */
export function refuse(place: Place, why: string): BoughError {
  return new BoughError("invalid_argument", `In ${place}: ${why}.`, { data: { place } });
}

export function nodePlace(graph: string, id: string): Place {
  return `the graph "${graph}", node "${id}"`;
}

export function edgePlace(graph: string, { from, to }: { readonly from: string; readonly to: string }): Place {
  return `the graph "${graph}", edge from "${from}" to "${to}"`;
}
