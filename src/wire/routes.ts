// The route table: everything that can be asked. The server's handlers, the OpenAPI document and the tests that go over all
// routes are made from it, so a route that is not here does not exist.

import type * as v from "valibot";
import { type Scope, scopes } from "../base/identity.ts";
import { bodies, queries } from "./schemas.ts";

export { type Scope, scopes };

export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  /** With `:name` for what varies. */
  readonly path: string;
  readonly scope: Scope;
  /** A scope that lets in as well; what is asked about then decides which of the two is needed. */
  readonly otherScope?: Scope;
  readonly summary: string;
  readonly status: number;
  readonly query: v.GenericSchema;
  /** Headers that say more about the request; none is required. */
  readonly headers?: readonly string[];
  /** A JSON body; absent when there is none. */
  readonly body?: v.GenericSchema;
  /** Whether an absent body is as good as an empty object. */
  readonly bodyOptional?: boolean;
  /** What is taken instead of JSON. */
  readonly takes?: "bytes";
  readonly gives: "json" | "nothing" | "bytes" | "stream" | "socket";
}

type Details = Partial<Route> & Pick<Route, "summary">;

function route<const D extends Details>(method: Route["method"], path: string, details: D) {
  const scope: Scope = method === "GET" ? "read" : "write";
  const gives = method === "DELETE" ? "nothing" : "json";
  const status = method === "DELETE" ? 204 : 200;
  return { method, path, scope, status, gives, query: queries.none, ...details } as Route & D;
}

const session = "/sessions/:sessionId";
const branch = `${session}/branches/:branchId`;
const ofAgent = "/agents/:agentId";
const scope = `${ofAgent}${branch}`;

export const routes = {
  health: route("GET", "/health", { summary: "Whether the process answers." }),
  ready: route("GET", "/ready", { summary: "Whether the store answers." }),
  openapi: route("GET", "/openapi.json", { summary: "This table as an OpenAPI document." }),

  createSession: route("POST", "/sessions", {
    summary: "Creates a session and its branch main.",
    status: 201,
    body: bodies.createSession,
    bodyOptional: true,
  }),
  listSessions: route("GET", "/sessions", { summary: "Sessions, newest activity first.", query: queries.listSessions }),
  searchSessions: route("POST", "/sessions/search", {
    summary: "Sessions with certain metadata.",
    scope: "read",
    body: bodies.searchSessions,
    bodyOptional: true,
  }),
  getSession: route("GET", session, { summary: "One session." }),
  updateSession: route("PATCH", session, { summary: "Merges metadata; null removes.", body: bodies.updateSession }),
  deleteSession: route("DELETE", session, { summary: "Deletes a session and all that belongs to it." }),
  listInteractions: route("GET", "/interactions", {
    summary: "Questions that wait for an answer, of all sessions.",
    query: queries.interactions,
  }),
  tree: route("GET", `${session}/tree`, { summary: "The branches as a tree." }),
  listPermissions: route("GET", `${session}/permissions`, { summary: 'Permissions remembered by "always".' }),
  revokePermission: route("DELETE", `${session}/permissions/:tool`, {
    summary: "Revokes what is remembered for a tool, of one agent or of all.",
    status: 200,
    gives: "json",
    query: queries.revokePermission,
  }),

  listBranches: route("GET", `${session}/branches`, {
    summary: "Branches, oldest first, a page at a time.",
    query: queries.listBranches,
  }),
  getBranch: route("GET", branch, { summary: "One branch with its place in the tree." }),
  createBranch: route("POST", `${ofAgent}${session}/branches`, {
    summary: "Creates an empty branch.",
    status: 201,
    body: bodies.createBranch,
    bodyOptional: true,
  }),
  forkBranch: route("POST", `${scope}/fork`, {
    summary: "Forks the branch, by message, index or position; at its latest message by default.",
    status: 201,
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
    summary: "Takes the branch back to a message, index or position.",
    body: bodies.revert,
  }),
  events: route("GET", `${branch}/events`, {
    summary: "Kept events, oldest first; of a turn, a run or a type, only those.",
    query: queries.events,
  }),
  messages: route("GET", `${branch}/messages`, {
    summary: "Messages before one of them, newest page first; the newest without one.",
    query: queries.messages,
  }),
  siblings: route("GET", `${branch}/siblings`, {
    summary: "Branches forked at the same point, the source first, a page at a time.",
    query: queries.listBranches,
  }),

  listCheckpoints: route("GET", `${branch}/checkpoints`, { summary: "Checkpoints, newest first." }),
  saveCheckpoint: route("POST", `${branch}/checkpoints`, {
    summary: "Names the branch's newest position.",
    status: 201,
    body: bodies.saveCheckpoint,
    bodyOptional: true,
  }),
  loadCheckpoint: route("GET", `${branch}/checkpoints/:checkpointId`, {
    summary: "The branch as it was there; with before, only messages before that one.",
    query: queries.messages,
  }),
  forkCheckpoint: route("POST", `${scope}/checkpoints/:checkpointId/fork`, {
    summary: "A new branch from the checkpoint.",
    status: 201,
    body: bodies.forkCheckpoint,
    bodyOptional: true,
  }),
  revertCheckpoint: route("POST", `${branch}/checkpoints/:checkpointId/revert`, {
    summary: "Takes the branch back to the checkpoint.",
    body: bodies.empty,
    bodyOptional: true,
  }),

  listContent: route("GET", `${branch}/content`, { summary: "Content the branch sees." }),
  uploadContent: route("POST", `${branch}/content`, {
    summary: "Stores bytes: multipart field `file`, or the body as it is.",
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
    summary: "Runs of the agent on the branch, oldest first.",
    query: queries.runs,
  }),
  activeRun: route("GET", `${scope}/runs/active`, { summary: "The run that is active on the branch, or null." }),
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
    body: bodies.respond,
  }),
  state: route("GET", `${scope}/state`, {
    summary: "Messages, cursor, interactions and active run of one moment.",
    query: queries.state,
  }),
  liveEvents: route("GET", `${scope}/events/live`, {
    summary: "Server-sent events: the log after a cursor, then what happens.",
    query: queries.live,
    headers: ["last-event-id"],
    gives: "stream",
  }),
  socket: route("GET", `${scope}/ws`, {
    summary: "The same frames over a WebSocket, with inputs, interrupts and responses the other way.",
    status: 101,
    query: queries.live,
    gives: "socket",
  }),
  contextUsage: route("GET", `${scope}/context-usage`, { summary: "How much a model would be sent now." }),

  listAgents: route("GET", "/agents", { summary: "Agents, without their configuration." }),
  createAgent: route("POST", "/agents", {
    summary: "Stores an agent's definition.",
    scope: "admin",
    status: 201,
    body: bodies.createAgent,
  }),
  getAgent: route("GET", ofAgent, { summary: "One agent." }),
  updateAgent: route("PUT", ofAgent, {
    summary: "Replaces a stored agent's configuration.",
    scope: "admin",
    body: bodies.updateAgent,
  }),
  deleteAgent: route("DELETE", ofAgent, { summary: "Deletes a stored agent.", scope: "admin" }),

  audit: route("GET", "/audit", {
    summary: "Who did what and with what outcome, newest first.",
    scope: "admin",
    query: queries.audit,
  }),
};

export type RouteName = keyof typeof routes;
