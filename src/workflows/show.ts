// How a graph shows what it does while it runs: a part of the flow that only graphs use.

import type { Flow } from "./port.ts";

/** What a graph shows besides its steps. */
export type GraphEvent =
  | {
      readonly type: "edge-take";
      readonly from: string;
      readonly to: string;
      readonly round: number;
      readonly condition?: string;
    }
  | { readonly type: "layer-start" | "layer-end"; readonly layer: number };

/** The engine's flows have a function under it, which shows a live event. */
export const showsLive: unique symbol = Symbol("bough.flow.show");

/** `after` is the key of the step that the event follows: it is not shown again when that was recorded before. */
export type ShowLive = (event: GraphEvent, after?: string) => void;

export function showLive(flow: Flow, event: GraphEvent, after?: string): void {
  (flow as Flow & { readonly [showsLive]?: ShowLive })[showsLive]?.(event, after);
}
