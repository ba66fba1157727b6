import { BoughError } from "../base/errors.ts";

interface Dated {
  readonly id: string;
  readonly createdAt: number;
}

/** Which checkpoints of a branch may go. */
export interface Retention {
  readonly name: "latestOnly" | "lastN" | "fullHistory" | "timeBased";
  /** Kept for time travel: the close of a turn does not clear the checkpoints taken inside it. */
  readonly keepsHistory: boolean;
  /** The ids that may go, of checkpoints given newest first. */
  surplus(newestFirst: readonly Dated[], now: number): string[];
}

/** Keeps the newest checkpoint. */
export function latestOnly(): Retention {
  return { name: "latestOnly", keepsHistory: false, surplus: (all) => idsOf(all.slice(1)) };
}

/** Keeps the newest n. */
export function lastN(n: number): Retention {
  if (!Number.isInteger(n) || n < 1) throw new BoughError("invalid_argument", "lastN keeps at least one checkpoint.");
  return { name: "lastN", keepsHistory: false, surplus: (all) => idsOf(all.slice(n)) };
}

/** Keeps all. */
export function fullHistory(): Retention {
  return { name: "fullHistory", keepsHistory: true, surplus: () => [] };
}

/** Keeps those not older than this. */
export function timeBased(ms: number): Retention {
  if (!(ms > 0)) throw new BoughError("invalid_argument", "timeBased needs a duration in milliseconds.");
  return {
    name: "timeBased",
    keepsHistory: true,
    surplus: (all, now) => idsOf(all.filter(({ createdAt }) => createdAt < now - ms)),
  };
}

function idsOf(checkpoints: readonly Dated[]): string[] {
  return checkpoints.map(({ id }) => id);
}
