// The client: the same handles from far away. Small, without dependencies, safe in a browser.

import { Client, type ClientOptions } from "./client.ts";

export type { AuditPage, AuditRecord } from "../wire/types.ts";
export type { BranchHandle } from "./branch.ts";
export type { Client, ClientOptions } from "./client.ts";
export type { Backoff, Connection, ConnectionState } from "./connection.ts";
export type { Draft } from "./drafts.ts";
export { isRemoteError, type RemoteCode, RemoteError } from "./errors.ts";
export type { BranchPicture, BranchStatus, LiveBranch, WatchOptions } from "./live-branch.ts";
export type { EventPage } from "./pages.ts";
export type {
  AuditRequest,
  BranchDetails,
  BranchPatch,
  BranchScope,
  ForkRequest,
  Input,
  RevertRequest,
  SubmitOptions,
} from "./requests.ts";
export type { SubscribeOptions, Subscription } from "./subscription.ts";
export type { ClientTool, ClientToolContext, ClientTools } from "./tools.ts";
export type { WebSocketConstructor, WebSocketLike } from "./websocket.ts";

/**
 * A client of a Bough server.
 *
 * @example
 * const client = createClient({ url: "http://127.0.0.1:4600", token });
 * await client.createSession("user-123");
 * const branch = client.open({ agentId: "helper", sessionId: "user-123" });
 * await branch.submit("Hello");
 * for await (const event of branch.listen()) if (event.type === "text-delta") process.stdout.write(event.text);
 */
export function createClient(options: ClientOptions): Client {
  return new Client(options);
}
