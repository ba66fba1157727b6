// Frames of a live stream, the same over SSE and WebSocket. Only a kept event moves the cursor.

import type { BoughEvent } from "../events/index.ts";
import type { Problem } from "./problem.ts";

/** A message in progress, with its text so far; it replaces what a reader has received of it. */
export interface MessageSnapshot {
  readonly sessionId: string;
  readonly branchId: string;
  readonly runId?: string;
  readonly turnId?: string;
  readonly messageId: string;
  readonly text: string;
  readonly reasoning: string;
  readonly toolInputs: readonly { readonly callId: string; readonly toolName: string; readonly text: string }[];
}

/** One message of a live stream. */
export type Frame =
  /** A kept event of the branch (it has `seq`), or a live one (it has none). */
  | { readonly type: "event"; readonly event: BoughEvent }
  /** An event of a child branch, a subagent's; its `seq` is no cursor here. */
  | { readonly type: "child"; readonly event: BoughEvent }
  | { readonly type: "snapshot"; readonly message: MessageSnapshot }
  /** All past events were sent; what follows is live. */
  | { readonly type: "ready"; readonly seq: number }
  /** The cursor can't be resumed from: read the state again. */
  | { readonly type: "reset"; readonly problem: Problem }
  /** The server ends the stream; resume after `after`. */
  | { readonly type: "end"; readonly reason: "slow" | "closing" | "unauthorized"; readonly after: number };

/** Only on a WebSocket: the reply to a client's frame, the same as the route's response. */
export interface ReplyFrame {
  readonly type: "reply";
  readonly id?: string;
  /** The frame's request id: that of the handshake and a number. */
  readonly requestId?: string;
  readonly status: number;
  readonly body: unknown;
}

/** Only on a WebSocket: a heartbeat, since a page can't see pings. */
export const heartbeatFrame = '{"type":"heartbeat"}';

/** WebSocket close codes. */
export const closeCodes = {
  normal: 1000,
  goingAway: 1001,
  badFrame: 1007,
  refused: 1008,
  tooBig: 1009,
  tryLater: 1013,
};

/** The subprotocol of the WebSocket, and the prefix of the one that carries the token. */
export const subprotocol = "bough";
export const tokenSubprotocol = "bough-token.";

/** Encodes one server-sent event. JSON text has no line breaks. */
export function sseText(json: string, id?: number | string): string {
  return id === undefined ? `data: ${json}\n\n` : `id: ${id}\ndata: ${json}\n\n`;
}

export const sseHeartbeat = ": \n\n";
