// What an error of the driver means for the store: told by SQLite's primary result code, the same in every driver.

import { BoughError } from "../../base/errors.ts";

type Fault = "busy" | "corrupt" | "failing" | "cannot_write" | "cannot_open" | "too_big";

const faults: Readonly<Record<number, { name: string; fault: Fault }>> = {
  5: { name: "SQLITE_BUSY", fault: "busy" },
  6: { name: "SQLITE_LOCKED", fault: "busy" },
  7: { name: "SQLITE_NOMEM", fault: "failing" },
  8: { name: "SQLITE_READONLY", fault: "cannot_write" },
  10: { name: "SQLITE_IOERR", fault: "failing" },
  11: { name: "SQLITE_CORRUPT", fault: "corrupt" },
  13: { name: "SQLITE_FULL", fault: "cannot_write" },
  14: { name: "SQLITE_CANTOPEN", fault: "cannot_open" },
  15: { name: "SQLITE_PROTOCOL", fault: "busy" },
  18: { name: "SQLITE_TOOBIG", fault: "too_big" },
  26: { name: "SQLITE_NOTADB", fault: "corrupt" },
};

const constraint = 19;

/** The package gives no code with an error in the middle of a result. */
const uncoded: Readonly<Record<string, number>> = { "database disk image is malformed": 11, "disk I/O error": 10 };

function lookUp(error: unknown) {
  const { errcode, message } = (error ?? {}) as { errcode?: unknown; message?: unknown };
  const code = typeof errcode === "number" ? errcode : uncoded[String(message)];
  return code === undefined ? undefined : faults[code & 0xff];
}

/** Another connection holds what is needed; trying again can succeed. */
export function isBusy(error: unknown): boolean {
  return lookUp(error)?.fault === "busy";
}

/** What was to be inserted is there already; the statement has written nothing. */
export function isTaken(error: unknown): boolean {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === "number" && (code & 0xff) === constraint;
}

export function isNoDatabase(error: unknown): boolean {
  return lookUp(error)?.name === "SQLITE_NOTADB";
}

/** After this the file can't be trusted to take another write from this handle. */
export function isFatal(error: unknown): boolean {
  const fault = lookUp(error)?.fault;
  return fault !== undefined && fault !== "busy" && fault !== "too_big";
}

/** Translates an error for the caller of a read, or of one write. Other errors pass unchanged. */
export function explain(error: unknown, path?: string): unknown {
  const found = lookUp(error);
  if (!found) return error;
  const options = { cause: error, data: { reason: found.name, ...(path !== undefined && { path }) } };
  const why = `(${found.name}: ${(error as Error).message})`;
  switch (found.fault) {
    case "busy":
      return new BoughError("store_busy", `The database is in use by another process ${why}.`, {
        ...options,
        retryable: true,
      });
    case "corrupt":
      return new BoughError("store_corrupt", `The file is damaged or not a database ${why}.`, options);
    case "failing":
      return new BoughError("store_read_only", `The disk under the database failed ${why}.`, options);
    case "cannot_write":
      return new BoughError("store_read_only", `The database can't be written to ${why}.`, options);
    case "cannot_open":
      return new BoughError("store_unsupported", `${path ?? "The database"} can't be opened ${why}.`, options);
    case "too_big":
      return new BoughError("limit_exceeded", `A value is larger than SQLite accepts ${why}.`, options);
  }
}

/** The error of every write after the failure. */
export function readOnly(error: unknown): BoughError {
  if (BoughError.is(error)) return error;
  const found = lookUp(error);
  if (found?.fault === "corrupt") return explain(error) as BoughError;
  const reason = found?.name ?? "unknown";
  return new BoughError(
    "store_read_only",
    `The database stopped accepting writes (${reason}: ${(error as Error).message}); fix the cause and reopen the store.`,
    { cause: error, data: { reason } },
  );
}

export function corrupt(detail: string, data: Record<string, unknown> = {}): BoughError {
  return new BoughError("store_corrupt", detail, { data });
}
