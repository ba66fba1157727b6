// What the HTTP parser makes of a request before anything answers it: whether the connection is handed over to WebSocket,
// and whether all headers are there.
//   I1. The parser that read a request's head reads its body, too. Nothing is put back into a connection to be read again.
//   I2. A connection is handed over only for WebSocket, and only when all requests before are answered. Any other offer is
//       ignored, and the connection closes with the answer: Node's parser forgets what came in the same packet behind it.
//   I3. A request with more headers than are kept is refused, because what was dropped may have been the one that matters.

import { type Server as HttpServer, IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Refusal } from "./refusal.ts";

const maxHeaders = 100;

/** One more is kept than is allowed, so that a request with too many is recognised. */
export const keptHeaders = maxHeaders + 1;

/** How many requests of a connection have no answer yet. */
const unanswered = new WeakMap<Socket, number>();

/** A request whose `upgrade`, which Node sets by the head and asks right after, says whether the connection is handed over (I2). */
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

  /** Whether it makes an offer that is ignored. */
  get isPassedOver(): boolean {
    return this.isOffer && !this.upgrade;
  }
}

/** Refuses an ordinary request that asks for a WebSocket (I2), and one with too many headers (I3). */
export function checkOrdinary(incoming: IncomingMessage): void {
  if ((incoming as Incoming).asksForSocket) throw new Refusal("invalid_argument");
  checkHeaders(incoming);
}

/** I3. */
export function checkHeaders({ rawHeaders }: IncomingMessage): void {
  if (rawHeaders.length <= 2 * maxHeaders) return;
  throw new Refusal("headers_refused", `A request has at most ${maxHeaders} headers.`, { limit: maxHeaders });
}

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

/** Answers what comes in; of a connection that offered another protocol, nothing behind the offer (I2). */
export function onRequest(http: HttpServer, listener: Listener): void {
  const spent = new WeakSet<Socket>();
  http.on("request", (incoming, outgoing) => {
    const { socket } = incoming;
    // Closed with the answer to the request before it.
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
