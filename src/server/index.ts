// The server: agents and a store behind HTTP, server-sent events and WebSocket. The contract is PROTOCOL.md.

import type { ServerOptions } from "./options.ts";
import { Server } from "./server.ts";

export type { AuditOptions } from "./audit/log.ts";
export { type Authenticate, apiKeys, createApiKey, hashApiKey, type Identity } from "./auth.ts";
export { type BoughConfig, type ConfiguredAgent, defineConfig } from "./config.ts";
export { type ServeOptions, type Serving, serve } from "./node.ts";
export type { ServerLimits, ServerOptions } from "./options.ts";
export type { ActionScope, Authorize } from "./policy.ts";
export type { Connection, OpenSocket, Server } from "./server.ts";
export type { SocketEnd } from "./socket.ts";

/**
 * Agents and a store behind a fetch handler. Safe as it is: without `auth`, whoever asks needs the server's token.
 *
 * @example
 * const server = createServer({ agents: { helper: { model: "anthropic/claude-sonnet-4-5" } }, store: "sqlite:./bough.db" });
 * const { startUrl } = await serve(server, { port: 4600 });
 */
export function createServer(options: ServerOptions = {}): Server {
  return new Server(options);
}
