// The server: agents and a store over HTTP, server-sent events and WebSocket. The contract is PROTOCOL.md.

import type { ServerOptions } from "./options.ts";
import { Server } from "./server.ts";

export type { Frame } from "../wire/index.ts";
export type { AssetsOptions } from "./assets.ts";
export type { AuditOptions } from "./audit/log.ts";
export { type Authenticate, apiKeys, createApiKey, hashApiKey, type Identity } from "./auth.ts";
export { type AgentSetting, type BoughConfig, type ConfiguredAgent, defineConfig } from "./config.ts";
export type {
  Mount,
  MountAnswer,
  MountCall,
  MountPlace,
  MountRoute,
  MountTenant,
  SseAnswer,
  SseEvent,
} from "./mounts/mount.ts";
export type { ResolveAgent, ResolveContext, ServerLimits, ServerOptions } from "./options.ts";
export type { Action, ActionScope, Authorize, MountAction } from "./policy.ts";
export { serve } from "./serve.ts";
export type { Connection, OpenSocket, Server } from "./server.ts";
export type { ServeOptions, Serving } from "./serving.ts";
export type { SocketEnd } from "./socket.ts";
export type { StudioOptions } from "./studio.ts";

/**
 * Serves agents and a store with a fetch handler. It is secure by default: without `auth`, every request needs the server's token.
 *
 * @example
 * const server = createServer({ agents: { helper: { model: "anthropic/claude-sonnet-4-5" } }, store: "sqlite:./bough.db" });
 * const { startUrl } = await serve(server, { port: 4600 });
 */
export function createServer(options: ServerOptions = {}): Server {
  return new Server(options);
}
