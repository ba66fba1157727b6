import { BoughError } from "../base/errors.ts";
import { type Problem, type ProblemCode, problem } from "../wire/index.ts";

/** Thrown where a request can't go on; becomes the answer. */
export class Refusal extends Error {
  readonly problem: Problem;

  constructor(code: ProblemCode, detail?: string, data: Readonly<Record<string, unknown>> = {}) {
    super(detail ?? code);
    this.problem = problem(code, detail, data);
  }
}

/** Whatever was thrown, as it may be told. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Refusal) return error.problem;
  if (BoughError.is(error)) return problem(error.code, error.message, error.data);
  return problem("server_failed");
}

export function problemResponse(told: Problem): Response {
  const { status, code, data } = told;
  const headers: Record<string, string> = { "content-type": "application/problem+json" };
  if (code === "unauthorized") headers["www-authenticate"] = 'Bearer realm="bough"';
  if (status === 503) headers["retry-after"] = "1";
  if (typeof data.retryAfterMs === "number") headers["retry-after"] = String(Math.ceil(data.retryAfterMs / 1000));
  return new Response(JSON.stringify(told), { status, headers });
}
