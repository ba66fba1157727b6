// When sessions were last active. They are found by it in steps of about a second: an index over the times themselves would
// be written with every append. Within a step, which has few, they are sorted when they are listed.

import type { Connection } from "./connection.ts";

/** The step of a time, which is a value in a statement. */
export const stepSql = (time: string): string => `${time} >> 10`;

function stepOf(time: number): number {
  return Math.floor(time / 1024);
}

const sameStepSql = "UPDATE sessions SET active_at = ?1 WHERE no = ?2";
const nextStepSql = `UPDATE sessions SET active_at = ?1, active_step = ${stepSql("?1")} WHERE no = ?2`;

/** The session is active now; `before` is when it was the last time, if that is known. */
export function touchSession(sql: Connection, no: number, now: number, before?: number): void {
  if (before === now) return;
  const isSameStep = before !== undefined && stepOf(before) === stepOf(now);
  sql.write(isSameStep ? sameStepSql : nextStepSql, now, no);
}

/** Lets listings of open branches look at it (open-branches.ts, SqliteOpenBranches-1). */
export function markOpen(sql: Connection, branchNo: number, sessionId: string): void {
  sql.write("UPDATE branches SET open_in = ? WHERE no = ?", sessionId, branchNo);
}
