// The client: the handles of an agent, over HTTP. Small, without dependencies, safe in a browser.

import type { BoughEvent, EventFrom, OwnEventDefinition } from "../events/index.ts";
import { Client, type ClientOptions } from "./client.ts";

export type { Change } from "../wire/changes.ts";
export type {
  CheckedAnswer,
  CompactionCheck,
  CompactionCheckRequest,
  CompactionInfo,
  CompactRequest,
  Keep,
  MessageRange,
} from "../wire/compaction.ts";
export type {
  BranchDetails,
  BranchEvents,
  BranchHandle,
  BranchPatch,
  BranchRun,
  BranchRunOptions,
  CheckpointHandle,
  ContentHandle,
  DownloadOptions,
  ForkedRun,
  ForkRequest,
  Input,
  RedoRequest,
  RevertPoint,
  RunOutcome,
  SessionHandle,
  SubmittedRun,
  UndoneTurn,
  Upload,
  UploadOptions,
} from "../wire/handle.ts";
export type { DifferingPart, PromptChange, PromptDiff, PromptSource, SentMessage, SentPrompt } from "../wire/prompt.ts";
export type { AuditPage, AuditRecord } from "../wire/types.ts";
export type { RemoteBranch } from "./branch.ts";
export type { ChangeSubscription, ChangesOptions } from "./changes.ts";
export type { Client, ClientOptions } from "./client.ts";
export type { Backoff, ClientConnection, ConnectionState } from "./connection.ts";
export type { StreamingMessage } from "./drafts.ts";
export { isRemoteError, type RemoteCode, RemoteError } from "./errors.ts";
export type { BranchPicture, BranchStatus, LiveBranch, LiveOptions } from "./live-branch.ts";
export type { AuditRequest, BranchScope, BranchScopeObject, SessionsRequest, SubmitOptions } from "./requests.ts";
export type { SubscribeOptions, Subscription } from "./subscription.ts";
export type { ClientTool, ClientToolContext, ClientTools } from "./tools.ts";
export type { WebSocketConstructor, WebSocketLike } from "./websocket.ts";

/**
 * A client of a Bough server.
 *
 * @example
 * const client = createClient({ url: "http://127.0.0.1:4600", token, agentId: "helper" });
 * await client.ensureSession("user-123");
 * for await (const text of client.branch("user-123").run("Hello").textStream) process.stdout.write(text);
 */
export function createClient<const Events extends readonly OwnEventDefinition[] = readonly []>(
  options: ClientOptions<Events>,
): Client<BoughEvent | EventFrom<Events[number]>> {
  return new Client(options);
}
