// What an error of the client means for the store. Answers of the server begin with a word in capitals; everything else
// comes from the client or the socket, whichever copy or version of the package it is.

import { BoughError } from "../../base/errors.ts";

/** The server's own word for what is wrong; undefined when the error is not its answer. */
export function wordOf(error: unknown): string | undefined {
  return /^([A-Z][A-Z0-9_]+)(?: |$)/.exec(messageOf(error))?.[1];
}

/** The command never left this process. */
export function isUnsent(error: unknown): boolean {
  return /^The client is (offline|closed)/.test(messageOf(error));
}

/** The server refused for now, before it did anything. */
export function isPassing(error: unknown): boolean {
  const word = wordOf(error);
  return word === "LOADING" || word === "BUSY" || word === "TRYAGAIN" || word === "MASTERDOWN";
}

/** The connection broke; whether the command ran is not known. */
export function isLost(error: unknown): boolean {
  return wordOf(error) === undefined && !isUnsent(error) && !BoughError.is(error);
}

const cannotWrite = new Set(["READONLY", "OOM", "MISCONF", "NOREPLICAS"]);
const notAllowed = new Set(["DENIED", "NOAUTH", "WRONGPASS", "NOPERM", "MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN"]);

/**
 * The caller's error; `isConnecting` when no command can have been sent. After a command that may have been carried out,
 * it is not retryable: to do the same again could do it twice.
 */
export function explain(error: unknown, { isConnecting = false } = {}): unknown {
  if (BoughError.is(error)) return error;
  const word = wordOf(error);
  const why = messageOf(error).replace(/\.$/, "");
  const options = { cause: error, data: { reason: word ?? "connection" } };
  if (word === undefined) {
    const isUnknown = isLost(error) && !isConnecting;
    const unknown = isUnknown ? "; it is not known whether the last command took effect" : "";
    return new BoughError("store_unavailable", `The Redis server can't be reached (${why})${unknown}.`, {
      cause: error,
      data: { ...options.data, ...(isUnknown && { outcome: "unknown" }) },
      retryable: !isUnknown,
    });
  }
  if (isPassing(error))
    return new BoughError("store_busy", `The Redis server is busy (${why}).`, { ...options, retryable: true });
  if (cannotWrite.has(word)) {
    return new BoughError("store_read_only", `The Redis server accepts no writes (${why}).`, options);
  }
  if (isConnecting || notAllowed.has(word)) {
    return new BoughError("store_unsupported", `The Redis server refuses the store's commands (${why}).`, options);
  }
  if (word === "WRONGTYPE") return corrupt(`A key of the store has an unexpected type (${why}).`);
  return error;
}

export function corrupt(detail: string, data: Record<string, unknown> = {}): BoughError {
  return new BoughError("store_corrupt", detail, { data });
}

/** Failures to reach any of several addresses come without a message. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || `failed: ${(error as { code?: unknown }).code ?? error.name}`;
}
