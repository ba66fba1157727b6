// What the HTTP parser decides about a request before it is handled: whether the connection becomes a WebSocket,
// and whether all headers were kept.
//   Incoming-1. The parser that read a request's head also reads its body. Nothing is put back into a connection to be read again.
//   Incoming-2. A connection is upgraded only for WebSocket, and only when all earlier requests were answered. Any other offer is
//       ignored, and the connection closes with the response: Node's parser drops what followed in the same packet.
//   Incoming-3. A request with more headers than the parser keeps is refused, because a dropped header may have been an essential one.

import { type Server as HttpServer, IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Refusal } from "./refusal.ts";

const maxHeaders = 100;

/** The parser keeps one more header than allowed, so that excess is noticed. */
export const keptHeaders = maxHeaders + 1;

/** How many requests of a connection have no response yet. */
const unanswered = new WeakMap<Socket, number>();

/** A request whose `upgrade`, which Node sets by the head and asks right after, says whether the connection is handed over (Incoming-2). */
export class Incoming extends IncomingMessage {
  /** Without an initial value: Node's constructor sets `upgrade` before one would be. */
  declare private isOffer: boolean;

  get upgrade(): boolean {
    if (!this.isOffer) return false;
    return this.method === "CONNECT" || (this.asksForSocket && !unanswered.get(this.socket));
  }

  set upgrade(isOffer: boolean) {
    this.isOffer = isOffer;
  }

  get asksForSocket(): boolean {
    return this.isOffer && this.headers.upgrade?.toLowerCase() === "websocket";
  }

  /** Whether it offers an upgrade that is ignored. */
  get isPassedOver(): boolean {
    return this.isOffer && !this.upgrade;
  }
}

/** Refuses a request for a WebSocket that can't be upgraded (Incoming-2), and one with too many headers (Incoming-3). */
export function checkOrdinary(incoming: IncomingMessage): void {
  if ((incoming as Incoming).asksForSocket) throw new Refusal("invalid_argument");
  checkHeaders(incoming);
}

/** Incoming-3. */
export function checkHeaders({ rawHeaders }: IncomingMessage): void {
  if (rawHeaders.length <= 2 * maxHeaders) return;
  throw new Refusal("headers_refused", `A request can have at most ${maxHeaders} headers.`, { limit: maxHeaders });
}

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** Handles requests; after an ignored upgrade offer, no further ones of that connection (Incoming-2). */
export function onRequest(http: HttpServer, listener: Listener): void {
  const spent = new WeakSet<Socket>();
  http.on("request", (incoming, outgoing) => {
    const { socket } = incoming;
    // Closed with the response to the previous request.
    if (spent.has(socket)) return;
    if ((incoming as Incoming).isPassedOver) {
      spent.add(socket);
      outgoing.shouldKeepAlive = false;
    }
    const add = (count: number) => unanswered.set(socket, (unanswered.get(socket) ?? 0) + count);
    add(1);
    outgoing.once("close", () => add(-1));
    listener(incoming, outgoing);
  });
}
