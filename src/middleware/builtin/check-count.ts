import { BoughError } from "../../base/errors.ts";

/** Refuses an option that is not 1, 2, 3 … */
export function checkCount(option: string, value: number): void {
  if (Number.isInteger(value) && value >= 1) return;
  throw new BoughError("invalid_argument", `"${option}" must be a whole number from 1 on.`, {
    data: { option, value },
  });
}
