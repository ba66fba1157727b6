// What the client's suites share: a client of a running server, by SSE or WebSocket, over a line that may be bad.

import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { type Client, type ClientOptions, createClient } from "../../src/client/index.ts";
import type { Given } from "../server/kit.ts";

export type Transport = "sse" | "websocket";
export const transports: readonly Transport[] = ["sse", "websocket"];

/** Impatient, so that tests are not. */
export const quick = { backoff: { minMs: 4, maxMs: 40 }, WebSocket } satisfies Partial<ClientOptions>;

/** A client of the server, with its token. */
export async function clientOf(g: Given, options: Partial<ClientOptions> = {}): Promise<Client> {
  const url = options.url ?? g.serving.url;
  return createClient({ token: g.server.token!, ...quick, ...options, url });
}

/** The same numbers for the same seed; printed, so that a failure can be had again. */
export function seeded(name: string): () => number {
  const seed = Number(process.env.BOUGH_SEED ?? Date.now() % 1_000_000);
  console.log(`${name}: BOUGH_SEED=${seed}`);
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export interface Line {
  readonly url: string;
  /** How many connections it has carried. */
  readonly connections: number;
  /** Ends the connections there are. */
  cut(): void;
}

/** What becomes of a connection: after so many bytes of answers it is cut, or falls silent. */
export interface Fate {
  readonly bytes: number;
  readonly how: "cut" | "silent";
}

/** A way to a server that ends every connection as fate has it. */
export async function badLine(portOf: () => number, fate: () => Fate | undefined): Promise<Line> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const proxy = createServer((near) => {
    connections++;
    const far = connect(portOf(), "127.0.0.1");
    const ending = fate();
    let left = ending?.bytes ?? Number.POSITIVE_INFINITY;
    const end = () => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        if (ending?.how !== "silent" || left > 0) end();
      });
    }
    near.on("data", (data) => far.write(data));
    near.on("close", () => far.destroy());
    far.on("data", (data) => {
      if (left <= 0) return;
      const piece = data.subarray(0, left);
      left -= piece.length;
      near.write(piece);
      if (left <= 0 && ending?.how === "cut") near.end(() => end());
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  const { port } = proxy.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    get connections() {
      return connections;
    },
    cut() {
      for (const socket of sockets) socket.destroy();
    },
  };
}
