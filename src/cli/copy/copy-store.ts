// Copies many sessions and then verifies them.
//
//   CopyStore-1. A copy counts as done only when every session was read again on both sides and found equal.
//   CopyStore-2. A session with an active run is not copied: its log would be cut in the middle of a turn.
//   CopyStore-3. If sessions were created during the copy, it is reported as incomplete.

import { BoughError } from "../../base/errors.ts";
import { everySession } from "../../log/every-session.ts";
import type { Store } from "../../log/store.ts";
import { asleepOwner } from "../../sessions/claims.ts";
import { count } from "../terminal.ts";
import { copySession, type Target } from "./copy-session.ts";
import { addCounts, type Counts, digestSession, firstDifference, noCounts, type SessionDigest } from "./digest.ts";
import { needSession, type Source } from "./source.ts";

export interface CopyReport extends Counts {
  readonly sessions: number;
  /** How many of them were written; the others already existed and are equal. */
  readonly copied: number;
  /** How many have a different time of last activity than the original. */
  readonly otherTimes: number;
}

export interface CopyOptions {
  /** Called between steps; throws after Ctrl-C. */
  readonly pause: () => void;
  readonly onProgress: (step: "copied" | "verified", done: number, of: number) => void;
}

export async function copyStore(
  source: Store,
  target: Target,
  { sessionIds, ...options }: CopyOptions & { sessionIds: readonly string[] | undefined },
): Promise<CopyReport> {
  const ids = sessionIds ?? (await allSessionIds(source, options.pause));
  await refuseRunning(source, new Set(ids));
  const report = await copySessions(source, target, ids, options);
  if (sessionIds) return report;
  const known = new Set(ids);
  const late = (await allSessionIds(source, options.pause)).filter((id) => !known.has(id));
  if (late.length > 0) {
    const message = `${count(late.length, "new session")} appeared in the source during the copy. Run the same command again to copy the rest.`;
    throw new BoughError("version_conflict", message, { data: { sessionIds: late.slice(0, 20) } });
  }
  return report;
}

/** Copies, then verifies. */
export async function copySessions(
  source: Source,
  target: Target,
  ids: readonly string[],
  { pause, onProgress }: CopyOptions,
): Promise<CopyReport> {
  let copied = 0;
  for (const [i, id] of ids.entries()) {
    pause();
    if (!(await isThere(source, target.store, id))) {
      await copySession(source, target, id, pause);
      copied += 1;
    }
    onProgress("copied", i + 1, ids.length);
  }
  const sum = noCounts();
  let otherTimes = 0;
  for (const [i, id] of ids.entries()) {
    pause();
    addCounts(sum, await verifySession(source, target.store, id));
    if (!(await hasSameTimes(source, target.store, id))) otherTimes += 1;
    onProgress("verified", i + 1, ids.length);
  }
  return { sessions: ids.length, copied, ...sum, otherTimes };
}

async function isThere(source: Source, target: Source, id: string): Promise<boolean> {
  const there = await target.getSession(id);
  if (!there) return false;
  const same = (await digestSession(source, id)).sha256 === (await digestSession(target, id)).sha256;
  return same && (await hasSameTimes(source, target, id));
}

async function verifySession(source: Source, target: Source, id: string): Promise<SessionDigest> {
  const digest = await digestSession(source, id);
  const difference = firstDifference(digest, await digestSession(target, id));
  if (difference === undefined) return digest;
  const message = `Session "${id}" differs between source and target (${difference}). If the source was in use, run the same command again.`;
  throw new BoughError("version_conflict", message, { data: { sessionId: id } });
}

async function hasSameTimes(source: Source, target: Source, id: string): Promise<boolean> {
  const times = async (side: Source) => {
    const branches = await side.listBranches(id);
    return JSON.stringify([(await needSession(side, id)).activeAt, ...branches.map(({ activeAt }) => activeAt)]);
  };
  return (await times(source)) === (await times(target));
}

/** CopyStore-2. A claim left by a crash no longer counts once its lease has expired. */
async function refuseRunning(source: Store, ids: ReadonlySet<string>): Promise<void> {
  const running = (await source.listRuns()).find(
    (run) => ids.has(run.sessionId) && run.owner !== asleepOwner && run.expiresAt > Date.now(),
  );
  if (!running) return;
  const { sessionId, branchId, expiresAt } = running;
  const seconds = Math.ceil((expiresAt - Date.now()) / 1000);
  const message = `Session "${sessionId}" has an active run on branch "${branchId}". Stop it first; if its process is dead, its lease expires in ${seconds} s.`;
  throw new BoughError("run_active", message, { data: { sessionId, branchId, expiresAt } });
}

async function allSessionIds(store: Store, pause: () => void): Promise<string[]> {
  const ids = new Set<string>();
  for await (const { id } of everySession(store)) {
    pause();
    ids.add(id);
  }
  return [...ids];
}
