import { BoughError } from "../base/errors.ts";

interface Dated {
  readonly id: string;
  readonly createdAt: number;
}

/** Decides which checkpoints of a branch to delete. */
export interface Retention {
  readonly name: "latestOnly" | "lastN" | "fullHistory" | "timeBased";
  /** Whether checkpoints inside a turn survive its close, for time travel. */
  readonly keepsHistory: boolean;
  /** The ids to delete, from checkpoints given newest first. */
  surplus(newestFirst: readonly Dated[], now: number): string[];
}

/** Keeps the newest checkpoint. */
export function latestOnly(): Retention {
  return { name: "latestOnly", keepsHistory: false, surplus: (all) => idsOf(all.slice(1)) };
}

/** Keeps the newest n checkpoints. */
export function lastN(n: number): Retention {
  if (!Number.isInteger(n) || n < 1) throw new BoughError("invalid_argument", "lastN needs an integer ≥ 1.");
  return { name: "lastN", keepsHistory: false, surplus: (all) => idsOf(all.slice(n)) };
}

/** Keeps all checkpoints. */
export function fullHistory(): Retention {
  return { name: "fullHistory", keepsHistory: true, surplus: () => [] };
}

/** Keeps checkpoints that are at most `ms` milliseconds old. */
export function timeBased(ms: number): Retention {
  if (!(ms > 0)) throw new BoughError("invalid_argument", "timeBased needs a duration in milliseconds, > 0.");
  return {
    name: "timeBased",
    keepsHistory: true,
    surplus: (all, now) => idsOf(all.filter(({ createdAt }) => createdAt < now - ms)),
  };
}

function idsOf(checkpoints: readonly Dated[]): string[] {
  return checkpoints.map(({ id }) => id);
}
