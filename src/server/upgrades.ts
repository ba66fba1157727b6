// Upgrades: connections that Node has handed over for a WebSocket, from the request to their end.
//   U1. Every one is known until it is closed, so that a server that stops can end it.
//   U2. A refused handshake is closed by this side, once the answer is out or nothing of it was taken for a while. Node's own
//       timeouts don't watch such a connection any more.
//   U3. A client that leaves during the handshake ends its request: the request's signal aborts.

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

/** How long a refused client may take to receive its answer. */
const refusalMs = 2000;
/** What a client may send before the handshake is done; it has no reason to send anything. */
const earlyBytes = 64 * 1024;

export class Upgrades {
  readonly #server: Server;
  readonly #library: WebSocketServer;
  /** U1. */
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

  /** Ends them all, whoever holds them. */
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

/** A connection during the handshake: read, so that its end is noticed (U3). */
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
    // Half of a connection is no use for a socket.
    connection.on("end", this.#drop);
    connection.once("close", () => this.#leaving.abort());
  }

  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  /** Leaves the connection to others, and returns what came meanwhile. */
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
  // A broken connection is closed by the library right after.
  ws.on("error", () => {});
  let session: Socket;
  try {
    session = open(endOf(ws));
  } catch {
    // Others took the last place while hands were shaken.
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

/** U2. The response is a problem document: its body is there. */
async function refuse(connection: Duplex, response: Response): Promise<void> {
  const timer = setTimeout(() => connection.destroy(), refusalMs);
  connection.once("close", () => clearTimeout(timer));
  connection.once("finish", () => connection.destroy());
  // Unread bytes would make the end of the connection a reset, which can overtake the answer.
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
