import { BoughError } from "../base/errors.ts";
import { randomIds } from "../base/ids.ts";
import { type Problem, type ProblemCode, problem } from "../wire/index.ts";

/** Thrown to refuse a request; becomes its response. */
export class Refusal extends Error {
  readonly problem: Problem;

  /** The cause is for the server's log; the response never shows it. */
  constructor(code: ProblemCode, detail?: string, data: Readonly<Record<string, unknown>> = {}, cause?: unknown) {
    super(detail ?? code, cause === undefined ? {} : { cause });
    this.problem = problem(code, detail, data);
  }
}

/** The problem for a thrown value, without internal details. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Refusal) return error.problem;
  if (BoughError.is(error)) return problem(error.code, error.message, error.data);
  return problem("server_failed");
}

/** Every refusal has the id of its request, even of one that could not be parsed. */
export function problemResponse(refused: Problem, requestId: string = randomIds.next()): Response {
  const told = { ...refused, requestId };
  const { status, code, data } = told;
  const headers: Record<string, string> = { "content-type": "application/problem+json", "x-request-id": requestId };
  if (code === "unauthorized") headers["www-authenticate"] = 'Bearer realm="bough"';
  if (status === 503) headers["retry-after"] = "1";
  if (typeof data.retryAfterMs === "number") headers["retry-after"] = String(Math.ceil(data.retryAfterMs / 1000));
  return new Response(JSON.stringify(told), { status, headers });
}
