// Serving on Node: HTTP by @hono/node-server, WebSocket by ws.

import type { Server as HttpServer, IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { createAdaptorServer } from "@hono/node-server";
import { type WebSocket, WebSocketServer } from "ws";
import { BoughError } from "../base/errors.ts";
import { subprotocol } from "../wire/index.ts";
import { liftSocketToken } from "./auth.ts";
import type { Server } from "./server.ts";
import type { SocketEnd } from "./socket.ts";

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
  const http = createAdaptorServer({ fetch: server.fetch, serverOptions }) as HttpServer;
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
    upgrade(server, sockets, request, socket, head).catch(() => socket.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, host, resolve);
  });
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
      sockets.close();
      await flushed(http, closed);
      http.closeAllConnections();
      await closed;
    },
  };
}

/** How long readers may take to get the last of what they were sent. */
const flushMs = 1000;

/** Resolves when no answer is under way any more, or has been for too long. */
async function flushed(http: HttpServer, closed: Promise<void>): Promise<void> {
  const sweep = setInterval(() => http.closeIdleConnections(), 20);
  let late: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<void>((resolve) => {
    late = setTimeout(resolve, flushMs);
  });
  await Promise.race([closed, over]);
  clearInterval(sweep);
  clearTimeout(late);
}

async function upgrade(
  server: Server,
  sockets: WebSocketServer,
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const opened = await server.connect(requestOf(incoming));
  if (opened instanceof Response) return refuse(socket, opened);
  sockets.handleUpgrade(incoming, socket, head, (ws) => {
    const session = opened(endOf(ws));
    ws.on("message", (data, isBinary) => {
      if (isBinary) ws.close(1003, "text only");
      else session.message(String(data));
    });
    ws.on("pong", () => session.pong());
    ws.on("close", () => session.closed());
    // A broken connection is closed by the library right after.
    ws.on("error", () => {});
  });
}

function requestOf(incoming: IncomingMessage): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  liftSocketToken(headers);
  return new Request(new URL(incoming.url ?? "/", `http://${headers.get("host") ?? "unknown"}`), { headers });
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
    `content-type: ${response.headers.get("content-type") ?? "text/plain"}`,
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
