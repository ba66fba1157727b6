// Serving on Node: HTTP by @hono/node-server, WebSocket by ws.

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
import { writeStream } from "./stream-writer.ts";
import { Upgrades } from "./upgrades.ts";

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

/**
 * Listens on Node, on this machine only unless told otherwise. Several servers share the listener when each has a prefix of its
 * own; the addresses returned are then those of the first.
 */
export async function serve(server: Server | readonly Server[], options: ServeOptions = {}): Promise<Serving> {
  const { port = 4600, host = "127.0.0.1" } = options;
  const servers = Array.isArray(server) ? (server as readonly Server[]) : [server as Server];
  const [first] = servers;
  if (!first || new Set(servers.map(({ prefix }) => prefix)).size < servers.length) {
    throw new BoughError("invalid_argument", "Servers that share a listener need a prefix each, no two the same.");
  }
  if (!loopback.has(host) && !servers.every(({ isNamed }) => isNamed)) {
    throw new BoughError(
      "invalid_argument",
      "To be reached from outside, a server must be told its host names (`hosts`).",
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

/** For what is no request that anybody could look at. */
function unreadable(error: unknown): Response {
  return secured(problemResponse(error instanceof Refusal ? error.problem : problem("invalid_argument")));
}

/** Drops the connection when nothing of the answer is taken for a while. Node counts what the kernel takes as a sign of life. */
function dropStalled(outgoing: ServerResponse, stalledMs: number): void {
  outgoing.setTimeout(stalledMs);
  // Before Node's own listener, which sets the time that the connection may be idle.
  outgoing.prependOnceListener("finish", () => outgoing.socket?.setTimeout(0));
}
