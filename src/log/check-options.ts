// Checks the options of store reads in one place, because each backend would treat an invalid number or string differently.

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
    throw invalid("activeBefore", "must be a time in milliseconds");
  }
  if (metadata === null || (metadata !== undefined && typeof metadata !== "object")) {
    throw invalid("metadata", "must be an object");
  }
  for (const [key, text] of Object.entries(metadata ?? {})) {
    if (typeof text !== "string") throw invalid("metadata", `is compared as strings, so "${key}" must be a string`);
  }
}

function checkLimit(limit: unknown): void {
  checkWhole("limit", limit);
  if (Number(limit) < 0) throw invalid("limit", "must not be negative");
}

function checkWhole(name: string, value: unknown): void {
  if (value === undefined || Number.isInteger(value) || value === Number.POSITIVE_INFINITY) return;
  throw invalid(name, "must be an integer");
}

function invalid(name: string, why: string): BoughError {
  return new BoughError("invalid_argument", `${name} ${why}.`, { data: { name } });
}
