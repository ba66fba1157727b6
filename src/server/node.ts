// Serving on Node: HTTP by @hono/node-server, WebSocket by ws.

import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { type WebSocket, WebSocketServer } from "ws";
import { BoughError } from "../base/errors.ts";
import { closeCodes, problem, subprotocol } from "../wire/index.ts";
import { liftSocketToken } from "./auth.ts";
import { containFaults } from "./faults.ts";
import { secured } from "./guard.ts";
import { problemResponse } from "./refusal.ts";
import type { Server } from "./server.ts";
import type { Socket, SocketEnd } from "./socket.ts";
import { writeStream } from "./stream-writer.ts";

export interface ServeOptions {
  /** Default 4600; 0 for any that is free. */
  readonly port?: number;
  /** Default "127.0.0.1": nobody but this machine. */
  readonly host?: string;
}

/** A server that listens. */
export interface Serving {
  readonly port: number;
  /** Where it is reached. */
  readonly url: string;
  /** The same with the token behind the `#`, which browsers keep to themselves. */
  readonly startUrl: string;
  /** Stops listening, ends streams, lets runs end for `drainMs` and hands the rest over, closes the store. */
  close(options?: { drainMs?: number }): Promise<void>;
}

type FetchCallback = Parameters<typeof getRequestListener>[0];

/** How long a server that stops waits for its clients to hear of it. */
const lastWordsMs = 1000;
const loopback = new Set(["127.0.0.1", "::1", "localhost"]);

/** Listens on Node, on this machine only unless told otherwise. */
export async function serve(server: Server, options: ServeOptions = {}): Promise<Serving> {
  const { port = 4600, host = "127.0.0.1" } = options;
  if (!loopback.has(host) && !server.isNamed) {
    throw new BoughError(
      "invalid_argument",
      "To be reached from outside, a server must be told its host names (`hosts`).",
    );
  }
  const serverOptions = { headersTimeout: 10_000, requestTimeout: 60_000, maxHeaderSize: 16_384 };
  const answer = async (request: Request, { incoming, outgoing }: HttpBindings) => {
    const response = await server.answer(request, { target: incoming.url!, writesStreams: true });
    return writeStream(response, outgoing as ServerResponse) ?? response;
  };
  const http = createHttpServer(
    serverOptions,
    getRequestListener(answer as FetchCallback, { errorHandler: unreadable }),
  );
  http.maxHeadersCount = 100;
  http.maxConnections = server.limits.connections;
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: server.limits.frameBytes,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
  });
  http.on("upgrade", (request, socket, head) => {
    socket.on("error", () => socket.destroy());
    if (request.headers.upgrade?.toLowerCase() !== "websocket") return withoutUpgrade(http, request, socket, head);
    upgrade(server, sockets, request, socket, head).catch(() => socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, host, resolve);
  });
  const stopContaining = containFaults((message, error) => server.warn(message, error));
  server.recover();
  const address = http.address() as AddressInfo;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
  return {
    port: address.port,
    url,
    startUrl: server.token === undefined ? url : `${url}/#token=${server.token}`,
    async close(closing) {
      const closed = new Promise<void>((resolve) => http.close(() => resolve()));
      await server.close(closing);
      await lastWords(http, closed);
      for (const ws of sockets.clients) ws.terminate();
      http.closeAllConnections();
      await closed;
      stopContaining();
    },
  };
}

/** Lets streams and sockets take the frame that tells them where to go on, as long as that makes sense. */
async function lastWords(http: HttpServer, closed: Promise<void>): Promise<void> {
  let isOver = false;
  void closed.then(() => {
    isOver = true;
  });
  for (let waitedMs = 0; waitedMs < lastWordsMs && !isOver; waitedMs += 10) {
    http.closeIdleConnections();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function upgrade(
  server: Server,
  sockets: WebSocketServer,
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const opened = await server.connect(requestOf(incoming), { target: incoming.url! });
  if (opened instanceof Response) return refuse(socket, opened);
  sockets.handleUpgrade(incoming, socket, head, (ws) => {
    // A broken connection is closed by the library right after.
    ws.on("error", () => {});
    let session: Socket;
    try {
      session = opened(endOf(ws));
    } catch {
      // Others took the last place while hands were shaken.
      return ws.close(closeCodes.tryLater, "rate_limited");
    }
    ws.on("message", (data, isBinary) => {
      if (isBinary) ws.close(1003, "text only");
      else session.message(String(data));
    });
    ws.on("pong", () => session.pong());
    ws.on("close", () => session.closed());
  });
}

function requestOf(incoming: IncomingMessage): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  liftSocketToken(headers);
  const target = incoming.url!;
  const url = target.startsWith("/") ? `http://${headers.get("host") ?? "unknown"}${target}` : target;
  return new Request(url, { headers });
}

/**
 * A client that offers another protocol than WebSocket, as some do with every request, is answered over the one it speaks:
 * the request goes back to where it came from, without the offer.
 */
function withoutUpgrade(http: HttpServer, incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = incoming;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (!/^(upgrade|connection|http2-settings)$/i.test(rawHeaders[i]!))
      lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  http.emit("connection", socket);
}

/** For what is no request that anybody could look at. */
function unreadable(): Response {
  return secured(problemResponse(problem("invalid_argument")));
}

function endOf(ws: WebSocket): SocketEnd {
  return {
    send: (text) => new Promise((resolve, reject) => ws.send(text, (error) => (error ? reject(error) : resolve()))),
    close: (code, reason) => ws.close(code, reason),
    destroy: () => ws.terminate(),
    ping: () => ws.ping(),
  };
}

async function refuse(socket: Duplex, response: Response): Promise<void> {
  const body = await response.text();
  const head = [
    `HTTP/1.1 ${response.status} Refused`,
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  for (const [name, value] of response.headers) head.push(`${name}: ${value}`);
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
