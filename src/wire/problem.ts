// Problems: how a refusal looks from outside. One table says the HTTP status of every code there is.

import type { ErrorCode } from "../base/errors.ts";

/** Codes that only a server has: they are about the request, not about what is stored. */
export type ServerCode =
  | "unauthorized"
  | "forbidden"
  | "host_refused"
  | "origin_refused"
  | "route_not_found"
  | "media_type_refused"
  | "headers_refused"
  | "rate_limited"
  | "agent_not_found"
  | "agent_exists"
  | "run_not_found"
  | "queue_full"
  | "idempotency_conflict"
  | "server_busy"
  | "server_failed";

/** Every code a problem can carry. */
export type ProblemCode = ErrorCode | ServerCode;

interface Answer {
  readonly status: number;
  readonly title: string;
}

const answer = (status: number, title: string): Answer => ({ status, title });

/** Code → HTTP status and what it means in words. */
export const problemTable: Readonly<Record<ProblemCode, Answer>> = {
  invalid_argument: answer(400, "The request is not valid."),
  limit_exceeded: answer(413, "The request is too large."),
  session_not_found: answer(404, "There is no such session."),
  session_exists: answer(409, "The session exists already."),
  branch_not_found: answer(404, "There is no such branch."),
  branch_exists: answer(409, "The branch exists already."),
  branch_ambiguous: answer(409, "The session has several branches."),
  branch_protected: answer(409, "The branch is protected."),
  branch_has_children: answer(409, "The branch has forks."),
  message_not_on_branch: answer(404, "The branch has no such message."),
  position_not_on_branch: answer(410, "The branch has no such position."),
  turn_not_open: answer(409, "The turn is not open."),
  turn_open: answer(409, "A turn is open."),
  nothing_to_save: answer(409, "There is nothing to save."),
  nothing_to_resume: answer(409, "There is nothing to resume."),
  request_incomplete: answer(409, "The turn was asked with something that has to be passed again."),
  turn_foreign: answer(404, "There is no such turn."),
  run_active: answer(409, "A run is active on the branch."),
  epoch_stale: answer(409, "Another run has the branch."),
  sequence_conflict: answer(409, "The branch has moved on."),
  version_conflict: answer(409, "The session has changed."),
  event_conflict: answer(409, "The event is there already."),
  event_unknown: answer(400, "There is no such event."),
  event_invalid: answer(400, "The event is not valid."),
  checkpoint_not_found: answer(404, "There is no such checkpoint."),
  checkpoint_exists: answer(409, "The checkpoint exists already."),
  checkpoint_stale: answer(409, "The branch has moved past the checkpoint."),
  content_not_found: answer(404, "There is no such content."),
  interaction_not_found: answer(404, "There is no such interaction."),
  interaction_closed: answer(409, "The interaction is closed."),
  no_answer: answer(409, "Nobody answered."),
  run_failed: answer(500, "The run failed."),
  model_failed: answer(502, "The model failed."),
  output_invalid: answer(502, "The model's answer does not fit."),
  store_closed: answer(503, "The store is closed."),
  store_locked: answer(503, "The store is locked."),
  store_busy: answer(503, "The store is busy."),
  store_unavailable: answer(503, "The store can't be reached."),
  store_read_only: answer(503, "The store can't be written."),
  store_corrupt: answer(500, "Stored data is damaged."),
  store_too_new: answer(500, "The store is of a newer version."),
  store_unsupported: answer(500, "The store can't do that."),
  dependency_missing: answer(500, "A package is missing on the server."),
  aborted: answer(409, "It was called off."),
  unauthorized: answer(401, "A valid token is needed."),
  forbidden: answer(403, "The token does not allow that."),
  host_refused: answer(421, "This server does not answer to that host name."),
  origin_refused: answer(403, "Requests from that origin are not accepted."),
  route_not_found: answer(404, "There is no such route."),
  media_type_refused: answer(415, "The body is not of a type that is taken here."),
  headers_refused: answer(431, "The request has too many headers."),
  rate_limited: answer(429, "Too many requests."),
  agent_not_found: answer(404, "There is no such agent."),
  agent_exists: answer(409, "The agent exists already."),
  run_not_found: answer(404, "There is no such run."),
  queue_full: answer(429, "Too many inputs wait."),
  idempotency_conflict: answer(422, "The idempotency key was used for another request."),
  server_failed: answer(500, "The server failed."),
  server_busy: answer(503, "The server has too much to do."),
};

/** A problem document (RFC 9457). */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ProblemCode;
  readonly detail: string;
  /** What the code is about: ids, positions, the active run. Never a stack, a path or a prompt. */
  readonly data: Readonly<Record<string, unknown>>;
  /** The request that it answers, as in the header `x-request-id`, the server's log and the audit log. */
  readonly requestId?: string;
}

/** What a request id of a client may be; any other is replaced. */
export const requestIdPattern = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/;

/** What of an error's data may be told to whoever asked. */
const tellable = new Set([
  "sessionId",
  "branchId",
  "branchIds",
  "children",
  "messageId",
  "messageIndex",
  "messages",
  "replacements",
  "runId",
  "agentId",
  "turnId",
  "seq",
  "newest",
  "expected",
  "actual",
  "checkpointId",
  "contentId",
  "interactionId",
  "interactionIds",
  "why",
  "what",
  "limit",
  "at",
  "retryAfterMs",
]);

/** The document for a code. What went wrong inside the server stays there: from 500 on, only the title is told. */
export function problem(code: ProblemCode, detail?: string, data: Readonly<Record<string, unknown>> = {}): Problem {
  const { status, title } = problemTable[code];
  const isOurs = status >= 500;
  const told = isOurs ? {} : Object.fromEntries(Object.entries(data).filter(([key]) => tellable.has(key)));
  return {
    type: `urn:bough:problem:${code}`,
    title,
    status,
    code,
    detail: isOurs ? title : (detail ?? title),
    data: told,
  };
}
