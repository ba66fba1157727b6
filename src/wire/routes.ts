// The route table: all routes. The server's handlers, the OpenAPI document and the tests that cover all
// routes are derived from it, so a route that is not here does not exist.

import type * as v from "valibot";
import { type Scope, scopes } from "../base/identity.ts";
import { bodies, queries } from "./schemas.ts";

export { type Scope, scopes };

export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  /** The path, with `:name` for variable segments. */
  readonly path: string;
  readonly scope: Scope;
  /** An alternative scope; which of the two is needed depends on what the request is about. */
  readonly otherScope?: Scope;
  readonly summary: string;
  readonly status: number;
  readonly query: v.GenericSchema;
  /** Optional headers of the request. */
  readonly headers?: readonly string[];
  /** Whether it is allowed on a hidden branch: routes that read it, fork it or answer its questions are. */
  readonly takesHidden: boolean;
  /** A JSON body; absent when there is none. */
  readonly body?: v.GenericSchema;
  /** Whether an absent body counts as an empty object. */
  readonly bodyOptional?: boolean;
  /** What is accepted instead of JSON. */
  readonly takes?: "bytes";
  readonly gives: "json" | "nothing" | "bytes" | "stream" | "socket";
}

type Details = Partial<Route> & Pick<Route, "summary">;

function route<const D extends Details>(method: Route["method"], path: string, details: D) {
  const scope: Scope = method === "GET" ? "read" : "write";
  const gives = method === "DELETE" ? "nothing" : "json";
  const status = method === "DELETE" ? 204 : 200;
  const takesHidden = method === "GET" || !path.includes(branch);
  return { method, path, scope, status, gives, takesHidden, query: queries.none, ...details } as Route & D;
}

const session = "/sessions/:sessionId";
const branch = `${session}/branches/:branchId`;
const ofAgent = "/agents/:agentId";
const scope = `${ofAgent}${branch}`;

export const routes = {
  health: route("GET", "/health", { summary: "Whether the process responds." }),
  ready: route("GET", "/ready", { summary: "Whether the store responds." }),
  openapi: route("GET", "/openapi.json", { summary: "This table as an OpenAPI document." }),

  createSession: route("POST", "/sessions", {
    summary: "Creates a session with a branch main.",
    status: 201,
    body: bodies.createSession,
    bodyOptional: true,
  }),
  listSessions: route("GET", "/sessions", { summary: "Sessions, newest activity first.", query: queries.sessions }),
  searchSessions: route("POST", "/sessions/search", {
    summary: "Sessions with certain metadata, or with certain words in their title.",
    scope: "read",
    body: bodies.searchSessions,
    bodyOptional: true,
  }),
  getSession: route("GET", session, { summary: "One session.", query: queries.session }),
  ensureSession: route("PUT", session, {
    summary: "One session; creates it with the metadata if it does not exist.",
    body: bodies.ensureSession,
    bodyOptional: true,
  }),
  updateSession: route("PATCH", session, {
    summary: "Merges metadata; null removes a key.",
    body: bodies.updateSession,
  }),
  deleteSession: route("DELETE", session, { summary: "Deletes a session with everything in it." }),
  listInteractions: route("GET", "/interactions", {
    summary: "Open questions of all sessions.",
    query: queries.interactions,
  }),
  tenantChanges: route("GET", "/events/live", {
    summary: "Server-sent events: changes of all sessions, as hints.",
    query: queries.changes,
    headers: ["last-event-id"],
    gives: "stream",
  }),
  sessionChanges: route("GET", `${session}/events/live`, {
    summary: "Server-sent events: changes of one session, as hints.",
    query: queries.changes,
    headers: ["last-event-id"],
    gives: "stream",
  }),
  tree: route("GET", `${session}/tree`, {
    summary: "The branches as a tree; with visibility=all, hidden ones too.",
    query: queries.tree,
  }),
  listPermissions: route("GET", `${session}/permissions`, { summary: 'Permissions remembered by "always".' }),
  revokePermission: route("DELETE", `${session}/permissions/:tool`, {
    summary: "Revokes remembered permissions of a tool, for one agent or for all.",
    status: 200,
    gives: "json",
    query: queries.revokePermission,
  }),

  listBranches: route("GET", `${session}/branches`, {
    summary: "Branches, oldest first, a page at a time; with visibility=all, hidden ones too.",
    query: queries.listBranches,
  }),
  getBranch: route("GET", branch, { summary: "One branch with its place in the tree." }),
  createBranch: route("POST", `${ofAgent}${session}/branches`, {
    summary: "Creates a root branch.",
    status: 201,
    body: bodies.createBranch,
    bodyOptional: true,
  }),
  forkBranch: route("POST", `${scope}/fork`, {
    summary: "Forks the branch, by message, index or position; at its latest message by default.",
    status: 201,
    takesHidden: true,
    body: bodies.fork,
    bodyOptional: true,
  }),
  updateBranch: route("PATCH", branch, {
    summary: "Changes name, description, tags; merges metadata.",
    body: bodies.updateBranch,
  }),
  deleteBranch: route("DELETE", branch, {
    summary: "Deletes a branch; with recursive, its forks too, where the server allows it.",
    query: queries.deleteBranch,
  }),
  revertBranch: route("POST", `${branch}/revert`, {
    summary: "Reverts the branch to a message, index or position.",
    body: bodies.revert,
  }),
  events: route("GET", `${branch}/events`, {
    summary: "Kept events, oldest first, optionally of one turn, run or type.",
    query: queries.events,
  }),
  messages: route("GET", `${branch}/messages`, {
    summary: "Messages before a given one, newest page first; without one, the newest.",
    query: queries.messages,
  }),
  siblings: route("GET", `${branch}/siblings`, {
    summary: "Branches forked at the same point, the source first, a page at a time.",
    query: queries.page,
  }),

  listCheckpoints: route("GET", `${branch}/checkpoints`, {
    summary: "Checkpoints, newest first, a page at a time.",
    query: queries.page,
  }),
  saveCheckpoint: route("POST", `${branch}/checkpoints`, {
    summary: "Creates a checkpoint at the branch's newest position.",
    status: 201,
    body: bodies.saveCheckpoint,
    bodyOptional: true,
  }),
  loadCheckpoint: route("GET", `${branch}/checkpoints/:checkpointId`, {
    summary: "The branch at the checkpoint; with before, only messages before that one.",
    query: queries.messages,
  }),
  forkCheckpoint: route("POST", `${scope}/checkpoints/:checkpointId/fork`, {
    summary: "Forks a new branch from the checkpoint.",
    status: 201,
    takesHidden: true,
    body: bodies.forkCheckpoint,
    bodyOptional: true,
  }),
  revertCheckpoint: route("POST", `${branch}/checkpoints/:checkpointId/revert`, {
    summary: "Reverts the branch to the checkpoint.",
    body: bodies.empty,
    bodyOptional: true,
  }),

  compact: route("POST", `${scope}/compact`, {
    summary: "Replaces older messages with something shorter, by the agent's strategy.",
    scope: "run",
    status: 201,
    body: bodies.compact,
    bodyOptional: true,
  }),
  uncompact: route("POST", `${branch}/uncompact`, {
    summary: "Takes a compaction or a clearing back: the newest, or the one named.",
    scope: "run",
    body: bodies.uncompact,
    bodyOptional: true,
  }),
  listCompactions: route("GET", `${branch}/compactions`, {
    summary: "Compactions in force and those they replaced, newest first, a page at a time.",
    query: queries.page,
  }),
  checkCompaction: route("POST", `${scope}/check-compaction`, {
    summary: "Asks questions with a compaction and without it, and compares the answers.",
    scope: "run",
    body: bodies.checkCompaction,
    bodyOptional: true,
  }),
  promptOf: route("GET", `${branch}/messages/:messageId/prompt`, {
    summary: "What the model was sent for a reply, rebuilt and verified: instructions and tools too.",
    scope: "admin",
  }),
  diffPrompts: route("GET", `${branch}/messages/:messageId/prompt/diff/:toMessageId`, {
    summary: "The first part in which the prompt of a later reply differs, and what made it.",
    scope: "admin",
  }),
  listPins: route("GET", `${branch}/pins`, { summary: "The ids of pinned messages." }),
  pin: route("PUT", `${branch}/pins/:messageId`, {
    summary: "Keeps a message verbatim in every compaction.",
    scope: "run",
    status: 204,
    gives: "nothing",
  }),
  unpin: route("DELETE", `${branch}/pins/:messageId`, { summary: "Removes a pin.", scope: "run" }),

  listQueue: route("GET", `${branch}/queue`, { summary: "Inputs that wait for a turn, oldest first." }),
  editInput: route("PATCH", `${branch}/queue/:inputId`, {
    summary: "Changes what a queued input says, or when it is taken.",
    scope: "run",
    body: bodies.editInput,
  }),
  withdrawInput: route("DELETE", `${branch}/queue/:inputId`, { summary: "Withdraws a queued input.", scope: "run" }),

  listTasks: route("GET", `${branch}/tasks`, { summary: "Background tasks that have not ended, oldest first." }),
  cancelTask: route("DELETE", `${scope}/tasks/:taskId`, { summary: "Ends a background task.", scope: "run" }),

  listContent: route("GET", `${branch}/content`, {
    summary: "Content that is visible on the branch, a page at a time.",
    query: queries.page,
  }),
  uploadContent: route("POST", `${branch}/content`, {
    summary: "Stores a file: the multipart field `file`, or the raw body.",
    status: 201,
    takes: "bytes",
    headers: ["x-filename"],
  }),
  downloadContent: route("GET", `${branch}/content/:contentId`, {
    summary: "The bytes, as an attachment.",
    gives: "bytes",
  }),
  deleteContent: route("DELETE", `${branch}/content/:contentId`, { summary: "Removes the branch's own reference." }),

  listRuns: route("GET", `${scope}/runs`, {
    summary: "Runs of the agent on the branch, oldest first, a page at a time.",
    query: queries.runs,
  }),
  activeRun: route("GET", `${scope}/runs/active`, { summary: "The active run of the branch, or null." }),
  getRun: route("GET", `${scope}/runs/:runId`, { summary: "One run." }),
  submitInput: route("POST", `${scope}/inputs`, {
    summary: "Starts a run, detached from the request; without input, resumes.",
    headers: ["idempotency-key"],
    scope: "run",
    status: 202,
    body: bodies.input,
    bodyOptional: true,
  }),
  interrupt: route("POST", `${scope}/interrupt`, {
    summary: "Interrupts the active run, if it is the expected one.",
    scope: "run",
    status: 202,
    body: bodies.interrupt,
    bodyOptional: true,
  }),
  respond: route("POST", `${scope}/responses`, {
    summary: "Answers an open interaction: scope approve, or run for the result of a client's tool.",
    scope: "approve",
    otherScope: "run",
    takesHidden: true,
    body: bodies.respond,
  }),
  signal: route("POST", `${scope}/signals`, {
    summary: "Tells an execution of a workflow something by name; a step waits for it, or will.",
    scope: "run",
    status: 202,
    body: bodies.signal,
  }),
  state: route("GET", `${scope}/state`, {
    summary: "A consistent view of messages, cursor, interactions and active run.",
    query: queries.state,
  }),
  liveEvents: route("GET", `${scope}/events/live`, {
    summary: "Server-sent events: the log after a cursor, then new events.",
    query: queries.live,
    headers: ["last-event-id"],
    gives: "stream",
  }),
  socket: route("GET", `${scope}/ws`, {
    summary: "The same frames over a WebSocket; clients send inputs, interrupts and responses.",
    status: 101,
    query: queries.live,
    gives: "socket",
  }),
  contextUsage: route("GET", `${scope}/context-usage`, {
    summary: "How full the model's context is, and when it is compacted.",
  }),

  listAgents: route("GET", "/agents", {
    summary: "Agents, without their configuration, a page at a time.",
    query: queries.page,
  }),
  createAgent: route("POST", "/agents", {
    summary: "Stores the definition of an agent or a graph.",
    scope: "admin",
    status: 201,
    body: bodies.createAgent,
  }),
  getAgent: route("GET", ofAgent, { summary: "One agent." }),
  getGraph: route("GET", `${ofAgent}/graph`, {
    summary: "A workflow's graph, as JSON or as a Mermaid flowchart; of an execution, with the states of its nodes.",
    query: queries.graph,
  }),
  updateAgent: route("PUT", ofAgent, {
    summary: "Replaces the definition of a stored agent or graph.",
    scope: "admin",
    body: bodies.updateAgent,
  }),
  deleteAgent: route("DELETE", ofAgent, { summary: "Deletes a stored agent.", scope: "admin" }),

  audit: route("GET", "/audit", {
    summary: "The audit log: who did what, and with what outcome, newest first.",
    scope: "admin",
    query: queries.audit,
  }),
};

export type RouteName = keyof typeof routes;
