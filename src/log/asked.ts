// What may be asked of a store. Each would take a number that is none, or a value that is no text, in a way of its own.

import { BoughError } from "../base/errors.ts";
import type { ReadOptions, SessionQuery } from "./store.ts";

export function checkRead({ after, before, limit }: ReadOptions): void {
  checkWhole("after", after);
  checkWhole("before", before);
  checkLimit(limit);
}

export function checkQuery({ metadata, activeBefore, limit }: SessionQuery): void {
  checkLimit(limit);
  if (activeBefore !== undefined && (typeof activeBefore !== "number" || Number.isNaN(activeBefore))) {
    throw invalid("activeBefore", "is a time in milliseconds");
  }
  if (metadata === null || (metadata !== undefined && typeof metadata !== "object")) {
    throw invalid("metadata", "is an object");
  }
  for (const [key, text] of Object.entries(metadata ?? {})) {
    if (typeof text !== "string") throw invalid("metadata", `is compared as text, so "${key}" must be one`);
  }
}

export function checkLimit(limit: unknown): void {
  checkWhole("limit", limit);
  if (Number(limit) < 0) throw invalid("limit", "can't be negative");
}

function checkWhole(name: string, value: unknown): void {
  if (value === undefined || Number.isInteger(value) || value === Number.POSITIVE_INFINITY) return;
  throw invalid(name, "is a whole number");
}

function invalid(name: string, why: string): BoughError {
  return new BoughError("invalid_argument", `${name} ${why}.`, { data: { name } });
}
