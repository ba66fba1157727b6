// Serves on Node: HTTP with @hono/node-server, WebSocket with ws.

import { createServer as createHttpServer, type Server as HttpServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { BoughError } from "../base/errors.ts";
import { problem } from "../wire/index.ts";
import { containFaults } from "./faults.ts";
import { secured } from "./guard.ts";
import { checkOrdinary, Incoming, keptHeaders, onRequest } from "./incoming.ts";
import { serverFor } from "./prefix.ts";
import { problemResponse, Refusal } from "./refusal.ts";
import type { Server } from "./server.ts";
import type { ServeOptions, Serving } from "./serving.ts";
import { writeStream } from "./stream-writer.ts";
import { Upgrades } from "./upgrades.ts";

type FetchCallback = Parameters<typeof getRequestListener>[0];

/** How long a stopping server waits for clients to receive their last frame. */
const lastWordsMs = 1000;
const loopback = new Set(["127.0.0.1", "::1", "localhost"]);

/** `serve`, loaded on demand. */
export async function listen(server: Server | readonly Server[], options: ServeOptions): Promise<Serving> {
  const { port = 4600, host = "127.0.0.1" } = options;
  const servers = Array.isArray(server) ? (server as readonly Server[]) : [server as Server];
  const [first] = servers;
  if (!first || new Set(servers.map(({ prefix }) => prefix)).size < servers.length) {
    throw new BoughError("invalid_argument", "Servers that share a listener must each have a different prefix.");
  }
  if (!loopback.has(host) && !servers.every(({ isNamed }) => isNamed)) {
    throw new BoughError(
      "invalid_argument",
      "A server that listens beyond this machine needs its host names: set `hosts`.",
    );
  }
  const http = createHttpServer({
    headersTimeout: 10_000,
    requestTimeout: 60_000,
    maxHeaderSize: 16_384,
    IncomingMessage: Incoming,
  });
  http.maxHeadersCount = keptHeaders;
  http.maxConnections = servers.reduce((sum, { limits }) => sum + limits.connections, 0);
  onRequest(http, getRequestListener(answerer(servers) as FetchCallback, { errorHandler: unreadable }));
  const upgrades = new Map(servers.map((each) => [each, new Upgrades(each)]));
  http.on("upgrade", (request, connection, head) => {
    upgrades.get(serverFor(servers, request.url!))!.take(request, connection, head);
  });
  await new Promise<void>((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, host, resolve);
  });
  const stopContaining = containFaults((message, error) => first.warn(message, error));
  for (const each of servers) each.recover();
  const address = http.address() as AddressInfo;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${address.port}${first.prefix}`;
  return {
    port: address.port,
    url,
    startUrl: first.token === undefined ? url : `${url}/#token=${first.token}`,
    async close(closing) {
      const closed = new Promise<void>((resolve) => http.close(() => resolve()));
      await Promise.all(servers.map((each) => each.close(closing)));
      await lastWords(http, closed);
      for (const each of upgrades.values()) each.destroy();
      http.closeAllConnections();
      await closed;
      stopContaining();
    },
  };
}

/** Waits until streams and sockets have received the frame that tells them where to resume, for a limited time. */
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

function answerer(servers: readonly Server[]) {
  return async (request: Request, { incoming, outgoing }: HttpBindings): Promise<Response> => {
    checkOrdinary(incoming as Incoming);
    const server = serverFor(servers, incoming.url!);
    const { remoteAddress } = incoming.socket;
    const response = await server.answer(request, {
      target: incoming.url!,
      writesStreams: true,
      ...(remoteAddress !== undefined && { remoteAddress }),
    });
    const written = writeStream(response, outgoing as ServerResponse);
    if (!written) dropStalled(outgoing as ServerResponse, server.limits.stalledMs);
    return written ?? response;
  };
}

/** The response to malformed requests. */
function unreadable(error: unknown): Response {
  return secured(problemResponse(error instanceof Refusal ? error.problem : problem("invalid_argument")));
}

/** Drops the connection if the client reads nothing of the response for a while. Node counts bytes that the kernel accepts as activity. */
function dropStalled(outgoing: ServerResponse, stalledMs: number): void {
  outgoing.setTimeout(stalledMs);
  // Before Node's own listener, which sets the idle timeout of the connection.
  outgoing.prependOnceListener("finish", () => outgoing.socket?.setTimeout(0));
}
