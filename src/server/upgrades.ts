// Upgrades: connections that Node handed over for a WebSocket, from the request to their end.
//   Upgrades-1. Every connection is tracked until it is closed, so that a stopping server can end it.
//   Upgrades-2. This side closes a refused handshake once the response was sent, or the client has read nothing for a while. Node's own
//       timeouts no longer apply to such a connection.
//   Upgrades-3. A client that leaves during the handshake ends its request: the request's signal aborts.

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { closeCodes, subprotocol } from "../wire/index.ts";
import { liftSocketToken } from "./auth.ts";
import { secured } from "./guard.ts";
import { checkHeaders } from "./incoming.ts";
import { problemOf, problemResponse, Refusal } from "./refusal.ts";
import type { Server } from "./server.ts";
import type { Socket, SocketEnd } from "./socket.ts";

/** How long a refused client may take to receive the response. */
const refusalMs = 2000;
/** How many bytes a client may send during the handshake; it has no reason to send any. */
const earlyBytes = 64 * 1024;

export class Upgrades {
  readonly #server: Server;
  readonly #library: WebSocketServer;
  /** Upgrades-1. */
  readonly #open = new Set<Duplex>();

  constructor(server: Server) {
    this.#server = server;
    this.#library = new WebSocketServer({
      noServer: true,
      maxPayload: server.limits.frameBytes,
      perMessageDeflate: false,
      handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
    });
  }

  /** Takes a connection over. */
  take(incoming: IncomingMessage, connection: Duplex, head: Buffer): void {
    this.#open.add(connection);
    connection.once("close", () => this.#open.delete(connection));
    connection.on("error", () => connection.destroy());
    this.#shakeHands(incoming, connection, head).catch((error: unknown) => {
      refuse(connection, secured(problemResponse(problemOf(error)))).catch(() => connection.destroy());
    });
  }

  /** Ends all connections. */
  destroy(): void {
    for (const connection of this.#open) connection.destroy();
  }

  async #shakeHands(incoming: IncomingMessage, connection: Duplex, head: Buffer): Promise<void> {
    checkHeaders(incoming);
    const { "content-length": length, "transfer-encoding": encoding } = incoming.headers;
    if (Number(length ?? 0) > 0 || encoding !== undefined) throw new Refusal("invalid_argument");
    const waiting = new Waiting(connection, head);
    const request = requestOf(incoming, waiting.signal);
    const { remoteAddress } = incoming.socket;
    const opened = await this.#server.connect(request, {
      target: incoming.url!,
      ...(remoteAddress !== undefined && { remoteAddress }),
    });
    const early = waiting.end();
    if (connection.destroyed) return;
    if (opened instanceof Response) return refuse(connection, opened);
    this.#library.handleUpgrade(incoming, connection, early, (ws) => attach(ws, opened));
  }
}

/** A connection during the handshake. It is read, so that its end is noticed (Upgrades-3). */
class Waiting {
  readonly #connection: Duplex;
  readonly #chunks: Buffer[];
  readonly #leaving = new AbortController();
  #size: number;

  constructor(connection: Duplex, head: Buffer) {
    this.#connection = connection;
    this.#chunks = [head];
    this.#size = head.length;
    connection.on("data", this.#keep);
    // A half-open connection is useless for a socket.
    connection.on("end", this.#drop);
    connection.once("close", () => this.#leaving.abort());
  }

  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  /** Stops reading the connection, and returns what was received. */
  end(): Buffer {
    this.#connection.off("data", this.#keep);
    this.#connection.off("end", this.#drop);
    return Buffer.concat(this.#chunks);
  }

  readonly #keep = (chunk: Buffer): void => {
    this.#size += chunk.length;
    this.#chunks.push(chunk);
    if (this.#size > earlyBytes) this.#drop();
  };

  readonly #drop = (): void => {
    this.#connection.destroy();
  };
}

function attach(ws: WebSocket, open: (connection: SocketEnd) => Socket): void {
  // The library closes a broken connection right after.
  ws.on("error", () => {});
  let session: Socket;
  try {
    session = open(endOf(ws));
  } catch {
    // The last place was taken during the handshake.
    ws.close(closeCodes.tryLater, "rate_limited");
    return;
  }
  ws.on("message", (data, isBinary) => {
    if (isBinary) ws.close(1003, "text only");
    else session.message(String(data));
  });
  ws.on("pong", () => session.pong());
  ws.on("close", () => session.closed());
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  liftSocketToken(headers);
  const target = incoming.url!;
  const url = target.startsWith("/") ? `http://${headers.get("host") ?? "unknown"}${target}` : target;
  try {
    return new Request(url, { method: incoming.method!, headers, signal });
  } catch {
    throw new Refusal("invalid_argument");
  }
}

function endOf(ws: WebSocket): SocketEnd {
  return {
    send: (text) => new Promise((resolve, reject) => ws.send(text, (error) => (error ? reject(error) : resolve()))),
    close: (code, reason) => ws.close(code, reason),
    destroy: () => ws.terminate(),
    ping: () => ws.ping(),
  };
}

/** Upgrades-2. The response is a problem document with a complete body. */
async function refuse(connection: Duplex, response: Response): Promise<void> {
  const timer = setTimeout(() => connection.destroy(), refusalMs);
  connection.once("close", () => clearTimeout(timer));
  connection.once("finish", () => connection.destroy());
  // Unread bytes would end the connection with a reset, which can overtake the response.
  connection.resume();
  const body = await response.text();
  const head = [
    `HTTP/1.1 ${response.status} Refused`,
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  for (const [name, value] of response.headers) head.push(`${name}: ${value}`);
  connection.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
