import { BoughError } from "../base/errors.ts";
import type { DownloadOptions } from "./handle.ts";

/** The bytes that a download asks for, checked. */
export function rangeOf({ from = 0, to }: DownloadOptions): { readonly from: number; readonly to?: number } {
  if (isPosition(from) && (to === undefined || (isPosition(to) && to > from))) {
    return { from, ...(to !== undefined && { to }) };
  }
  throw new BoughError("invalid_argument", "from and to must be integers, 0 ≤ from < to.");
}

function isPosition(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
