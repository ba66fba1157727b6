import { BoughError } from "../../base/errors.ts";

/** Throws `invalid_argument` unless the option is an integer ≥ 1. */
export function checkCount(option: string, value: number): void {
  if (Number.isInteger(value) && value >= 1) return;
  throw new BoughError("invalid_argument", `"${option}" must be an integer ≥ 1.`, {
    data: { option, value },
  });
}
