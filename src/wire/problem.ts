// Problems: how refusals are reported to clients. One table maps every code to its HTTP status.

import type { ErrorCode } from "../base/errors.ts";

/** Codes that only a server uses: they concern the request, not stored data. */
export type ServerCode =
  | "unauthorized"
  | "forbidden"
  | "host_refused"
  | "origin_refused"
  | "route_not_found"
  | "media_type_refused"
  | "headers_refused"
  | "rate_limited"
  | "branch_hidden"
  | "agent_not_found"
  | "agent_exists"
  | "agent_unavailable"
  | "run_not_found"
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

/** Code → HTTP status and title. */
export const problemTable: Readonly<Record<ProblemCode, Answer>> = {
  invalid_argument: answer(400, "The request is not valid."),
  limit_exceeded: answer(413, "The request is too large."),
  session_not_found: answer(404, "There is no such session."),
  session_exists: answer(409, "The session already exists."),
  branch_not_found: answer(404, "There is no such branch."),
  branch_exists: answer(409, "The branch already exists."),
  branch_ambiguous: answer(409, "The session has several branches."),
  branch_protected: answer(409, "The branch is protected."),
  branch_has_children: answer(409, "The branch has forks."),
  message_not_on_branch: answer(404, "The branch has no such message."),
  position_not_on_branch: answer(410, "The branch has no such position."),
  turn_open: answer(409, "A turn is open."),
  nothing_to_resume: answer(409, "There is nothing to resume."),
  nothing_to_compact: answer(409, "There is nothing to compact."),
  compaction_not_found: answer(404, "There is no such compaction."),
  prompt_not_kept: answer(404, "The message has no record of a prompt."),
  request_incomplete: answer(409, "The turn's request has parts that must be passed again to resume it."),
  turn_foreign: answer(404, "There is no such turn."),
  run_active: answer(409, "A run is active on the branch."),
  epoch_stale: answer(409, "Another run has taken over the branch."),
  sequence_conflict: answer(409, "The branch has moved on."),
  version_conflict: answer(409, "The session has changed."),
  event_conflict: answer(409, "The event already exists."),
  event_unknown: answer(400, "There is no such event."),
  event_invalid: answer(400, "The event is not valid."),
  checkpoint_not_found: answer(404, "There is no such checkpoint."),
  checkpoint_exists: answer(409, "The checkpoint already exists."),
  checkpoint_stale: answer(409, "The branch has moved past the checkpoint."),
  content_not_found: answer(404, "There is no such content."),
  content_too_large: answer(413, "The content is too large."),
  interaction_not_found: answer(404, "There is no such interaction."),
  interaction_closed: answer(409, "The interaction is closed."),
  input_not_found: answer(404, "There is no such queued input."),
  input_closed: answer(409, "The input is not queued any more."),
  task_not_found: answer(404, "There is no such background task."),
  task_ended: answer(409, "The background task has ended."),
  queue_full: answer(429, "Too many inputs are queued."),
  no_answer: answer(409, "The question expired without an answer."),
  run_failed: answer(500, "The run failed."),
  workflow_changed: answer(409, "The execution began with other code."),
  model_failed: answer(502, "The model failed."),
  context_overflow: answer(422, "The conversation does not fit into the model's context window."),
  output_invalid: answer(502, "The model's answer does not fit the output schema."),
  store_closed: answer(503, "The store is closed."),
  store_locked: answer(503, "The store is locked."),
  store_busy: answer(503, "The store is busy."),
  store_unavailable: answer(503, "The store can't be reached."),
  store_read_only: answer(503, "The store can't be written to."),
  store_corrupt: answer(500, "Stored data is damaged."),
  store_too_new: answer(500, "The store was written by a newer version."),
  store_unsupported: answer(501, "The store does not support this."),
  dependency_missing: answer(500, "A package is missing on the server."),
  aborted: answer(409, "The operation was aborted."),
  unauthorized: answer(401, "The request needs a valid credential."),
  forbidden: answer(403, "The credential does not allow this."),
  branch_hidden: answer(403, "The branch is hidden, so clients can't write to it."),
  host_refused: answer(421, "This server does not answer to that host name."),
  origin_refused: answer(403, "Requests from that origin are not accepted."),
  route_not_found: answer(404, "There is no such route."),
  media_type_refused: answer(415, "This content type is not supported here."),
  headers_refused: answer(431, "The request has too many headers."),
  rate_limited: answer(429, "Too many requests."),
  agent_not_found: answer(404, "There is no such agent."),
  agent_exists: answer(409, "The agent already exists."),
  agent_unavailable: answer(503, "The agent could not be built."),
  run_not_found: answer(404, "There is no such run."),
  idempotency_conflict: answer(422, "The idempotency key was used for another request."),
  server_failed: answer(500, "The server failed."),
  server_busy: answer(503, "The server is overloaded."),
};

/** A problem document (RFC 9457). */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ProblemCode;
  readonly detail: string;
  /** Details of the code: ids, positions, the active run. Never a stack, a file path or a prompt. */
  readonly data: Readonly<Record<string, unknown>>;
  /** The id of the request, as in the header `x-request-id`, the server's log and the audit log. */
  readonly requestId?: string;
}

/** The format of a client's request id; any other is replaced. */
export const requestIdPattern = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/;

/** The fields of an error's data that clients may see. */
const tellable = new Set([
  "sessionId",
  "branchId",
  "branchIds",
  "children",
  "messageId",
  "messageIndex",
  "messages",
  "replacements",
  "compactionId",
  "replacedBy",
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
  "inputId",
  "why",
  "what",
  "limit",
  "at",
  "retryAfterMs",
]);

/** The problem document of a code. Internal details are not disclosed: for status 500 and above, only the title is sent. */
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
