// The transport: one connection of a subscription, by whatever means. What it gives may break off at any point and is never
// trusted to be whole: which events count is the subscription's to say.

import type { Frame } from "../wire/frames.ts";

/** A frame, or the server's wish about the next connection. */
export type Arrival = Frame | { readonly type: "retry"; readonly ms: number };

/** Which events a reader wants; by default also those of children. */
export type LiveQuery = { readonly events?: "own" | "tree" };

export interface Transport {
  /**
   * Resolves when the server answers with a stream after this cursor: batches of what arrives, an empty one being a sign of
   * life. The stream ends when it is cut. Rejects when it is refused, with the server's reason if there is one. The
   * caller aborts the signal to leave.
   */
  open(after: number, signal: AbortSignal): Promise<AsyncIterable<readonly Arrival[]>>;
}
