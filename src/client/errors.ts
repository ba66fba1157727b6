import { BoughError } from "../base/errors.ts";
import type { Problem, ProblemCode } from "../wire/problem.ts";

/** Every code of a problem document, and `unreachable`: there was no response. */
export type RemoteCode = ProblemCode | "unreachable";

/** A refusal by the server, with its code and data, or a missing response. `BoughError.is` recognises it. */
export class RemoteError extends BoughError<RemoteCode> {
  override readonly name = "RemoteError";
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /** How long to wait before a retry, as the server says. */
  readonly retryAfterMs: number | undefined;
  /** The id of the refused request in the server's log and audit log. */
  readonly requestId: string | undefined;

  constructor(
    code: RemoteCode,
    message: string,
    options: {
      status?: number;
      data?: Record<string, unknown>;
      retryAfterMs?: number;
      requestId?: string;
      cause?: unknown;
    } = {},
  ) {
    const { status = 0, data, retryAfterMs, requestId, cause } = options;
    // The server's refusals of what was asked are final; everything else may be different next time.
    const retryable = status === 0 || status === 408 || status === 429 || mayPass(status);
    super(code, message, { retryable, ...(data && { data }), ...(cause !== undefined && { cause }) });
    this.status = status;
    this.retryAfterMs = retryAfterMs;
    this.requestId = requestId;
  }
}

/** Recognises a `RemoteError` of any copy of the package, optionally of one code. */
export function isRemoteError(error: unknown, code?: RemoteCode): error is RemoteError {
  if (!BoughError.is(error) || error.name !== "RemoteError") return false;
  return code === undefined || (error.code as RemoteCode) === code;
}

/** The error behind an answer that is a refusal. */
export async function refusalOf(response: Response): Promise<RemoteError> {
  const { status } = response;
  const problem = (await response.json().catch(() => undefined)) as Partial<Problem> | undefined;
  const retryAfterMs = retryAfter(response, problem);
  if (!problem?.code) {
    const sentence = `The server answered ${status}, and not with a problem document.`;
    return new RemoteError(codeOf(status), sentence, { status, ...retryAfterMs });
  }
  return problemError(problem as Problem, retryAfterMs);
}

export function problemError(problem: Problem, more: { retryAfterMs?: number } = {}): RemoteError {
  const { code, status, detail, title, data, requestId } = problem;
  const named = requestId === undefined ? {} : { requestId };
  return new RemoteError(code, detail ?? title, { status, data: { ...data }, ...named, ...more });
}

function retryAfter(response: Response, problem: Partial<Problem> | undefined): { retryAfterMs?: number } {
  const told = problem?.data?.retryAfterMs;
  if (typeof told === "number") return { retryAfterMs: told };
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? { retryAfterMs: seconds * 1000 } : {};
}

/** What something between the server and us means by its status. */
function codeOf(status: number): RemoteCode {
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 404) return "route_not_found";
  if (status === 413) return "limit_exceeded";
  if (status === 429) return "rate_limited";
  return mayPass(status) ? "unreachable" : "server_failed";
}

/** Whether it may be different next time: a server that can't do something at all says 501. */
function mayPass(status: number): boolean {
  return status >= 500 && status !== 501;
}
