// What an error of the driver means for the store: told by PostgreSQL's SQLSTATE, or by how a connection ended.

import { BoughError } from "../../base/errors.ts";

/** What is known of a failed statement: it had no effect, or its effect is unknown. */
export type Aftermath = "nothing" | "unknown";

/** SQLSTATEs after which the same statement can succeed: it lost against another one, or the server is not ready. */
const passing = new Set(["40001", "40P01", "55P03", "57014", "57P03", "53300", "26000", "42P05"]);
/** A prepared statement is gone or there twice: a pooler hands out other connections than it was prepared on. */
const unprepared = new Set(["26000", "42P05"]);
/** How a connection ends: class 08, a server that shuts down, a socket. */
const broken =
  /^(08...|57P0[125]|ECONNRESET|ECONNREFUSED|ECONNABORTED|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN)$/;
const brokenMessage = /connection (terminated|ended|closed|error)|not queryable|timeout exceeded|timeout expired/i;

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

/** The connection was never there, or ended before the answer came. */
export function isConnectionLost(error: unknown): boolean {
  const code = codeOf(error);
  if (error instanceof Unanswered || broken.test(code)) return true;
  return code === "" && error instanceof Error && brokenMessage.test(error.message);
}

/** Trying again can help; how much of the first try is known is another question (aftermathOf). */
export function isPassing(error: unknown): boolean {
  return passing.has(codeOf(error)) || isConnectionLost(error);
}

/** A server that answered with an error has undone the statement; a connection that ended says nothing. */
export function aftermathOf(error: unknown): Aftermath {
  return isConnectionLost(error) && !(error instanceof Unsent) ? "unknown" : "nothing";
}

/** The server ended the statement: it took too long, or was cancelled. */
export function isGivenUp(error: unknown): boolean {
  return codeOf(error) === "57014";
}

export function isUnprepared(error: unknown): boolean {
  return unprepared.has(codeOf(error));
}

/** What was to be inserted is there already. */
export function isTaken(error: unknown): boolean {
  return codeOf(error) === "23505";
}

/** What was read has changed since: what the row points to is gone, or something points to what was to go. */
export function isOutdated(error: unknown): boolean {
  return codeOf(error) === "23503" || isTaken(error);
}

/** Whether of several in one statement one alone may be to blame; what concerns the connection or the server does all. */
export function isOfOne(error: unknown): boolean {
  return !BoughError.is(error) || error.code === "limit_exceeded";
}

/** No connection could be had, so nothing was asked. */
export class Unsent extends Error {
  readonly code: string;

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.code = codeOf(cause) || "08001";
  }
}

/** The statement timed out. */
export class Unanswered extends Error {
  readonly code = "08006";

  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`);
  }
}

/** Translates an error for the caller. Other errors pass unchanged. */
export function explain(error: unknown): unknown {
  if (BoughError.is(error)) return error;
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  const why = `(${code || "no code"}: ${message})`;
  const options = { cause: error, data: { reason: code || message } };
  if (aftermathOf(error) === "unknown") {
    const data = { ...options.data, outcome: "unknown" };
    return new BoughError(
      "store_unavailable",
      `The connection was lost, so it is not known whether the statement took effect ${why}.`,
      {
        ...options,
        data,
      },
    );
  }
  if (isConnectionLost(error) || code === "57P03") {
    return new BoughError("store_unavailable", `The database can't be reached ${why}.`, {
      ...options,
      retryable: true,
    });
  }
  if (isGivenUp(error)) {
    const said = `The database cancelled the statement, so nothing was written ${why}.`;
    return new BoughError("store_busy", said, { ...options, retryable: true });
  }
  if (isPassing(error)) {
    return new BoughError("store_busy", `The database is busy ${why}.`, { ...options, retryable: true });
  }
  if (/^(25006|53100|53200|53400|58030)$/.test(code)) {
    return new BoughError("store_read_only", `The database can't be written to ${why}.`, options);
  }
  if (/^XX00[12]$/.test(code)) return new BoughError("store_corrupt", `The database is damaged ${why}.`, options);
  if (/^54...$/.test(code))
    return new BoughError("limit_exceeded", `A value is larger than PostgreSQL accepts ${why}.`, options);
  // The last three: the schema has tables that are not ours.
  if (error instanceof Unsent || /^(28...|3D000|3F000|42501|0A000|42P01|42703|42P07)$/.test(code)) {
    return new BoughError("store_unsupported", `The database can't be used ${why}.`, options);
  }
  return error;
}

export function corrupt(detail: string, data: Record<string, unknown> = {}): BoughError {
  return new BoughError("store_corrupt", detail, { data });
}
