// Brings a branch into memory: from branch.json and the lines behind it, or, when that is missing or damaged, from the
// whole log, which is the truth. Only a log whose first line can't be read is beyond help.

import { type JsonObject, mergePatch } from "../../base/json.ts";
import type { BranchRecord, StoreProblem } from "../../log/index.ts";
import { readBranch, type Snapshot } from "./branch-document.ts";
import { BranchLog } from "./branch-log.ts";
import type { Disk } from "./disk.ts";
import { type Beginning, type FactLines, Flaw, forkPointIn } from "./facts.ts";
import { inBranch, inSession } from "./layout.ts";
import { anythingWholeAfter } from "./lines.ts";
import { type BranchState, corruptFile, type Damage, damageOf, type SessionState } from "./state.ts";

interface Draft {
  readonly record: BranchRecord;
  readonly order: number;
}

/** Throws `store_corrupt` when nothing is known of the branch. */
export function loadBranch(disk: Disk, session: SessionState, name: string, problems: StoreProblem[]): BranchState {
  const path = `${inSession.branches(session.path)}/${name}`;
  const found = readBranch(disk, path);
  const { snapshot } = found;
  if (!snapshot || !endsAt(disk, inBranch.log(path), snapshot.log.offset)) {
    return loadGrown(disk, session, name, path, found, problems);
  }
  const branch = newBranch(session, name, path, logOf(disk, inBranch.log(path), snapshot), snapshot);
  branch.shownTo = snapshot.log.offset;
  return branch;
}

/** Whether the log is as it was when the snapshot was made. Two bytes show it, which costs less than to ask for its size. */
function endsAt(disk: Disk, path: string, offset: number): boolean {
  return disk.read(path, offset - 1, 2).length === 1;
}

/** A branch whose log goes on behind its snapshot, ends before it, or has none. */
function loadGrown(
  disk: Disk,
  session: SessionState,
  name: string,
  path: string,
  { snapshot, isThere }: ReturnType<typeof readBranch>,
  problems: StoreProblem[],
): BranchState {
  const logPath = inBranch.log(path);
  const size = disk.size(logPath);
  const isShort = snapshot !== undefined && (size ?? 0) < snapshot.log.offset;
  const log = snapshot && !isShort ? logOf(disk, logPath, snapshot) : newLog(disk, logPath, size);
  if (!log) return lost(disk, session, name, path, snapshot);
  const { draft, flaw } = follow(log, snapshot ?? { record: unknownBranch(session), order: 0 }, size!);
  if (log.end.offset === 0) return lost(disk, session, name, path, snapshot);
  const branch = newBranch(session, name, path, log, draft);
  if (snapshot && !isShort) branch.shownTo = snapshot.log.offset;
  branch.damage = judge(disk, branch, flaw, size!, isShort ? snapshot : undefined, problems);
  if (isThere && !snapshot) {
    report(problems, branch, "repaired", `${disk.absolute(inBranch.document(path))} was rebuilt from the log.`);
  }
  return branch;
}

export function newBranch(
  session: SessionState,
  name: string,
  path: string,
  log: BranchLog,
  { record, order }: Draft,
): BranchState {
  return {
    session,
    name,
    path,
    order,
    record,
    log,
    ids: undefined,
    fresh: [],
    checkpoints: undefined,
    segments: undefined,
    damage: undefined,
    shownTo: 0,
  };
}

function logOf(disk: Disk, path: string, { log, points }: Snapshot): BranchLog {
  return new BranchLog(disk, path, log, points);
}

/** A log to be read from its start; undefined when its first line can't be read. */
function newLog(disk: Disk, path: string, size: number | undefined): BranchLog | undefined {
  if (size === undefined) return undefined;
  const base = forkPointIn(disk, path, size);
  return base === undefined ? undefined : BranchLog.empty(disk, path, base);
}

/** Takes in the lines after the log's end, batch by batch: what is known then, and the flaw that stopped it. */
function follow(log: BranchLog, known: Draft, size: number): { draft: Draft; flaw: Flaw | undefined } {
  const lines = log.lines(size, log.end);
  let whole = { draft: known, end: log.end };
  let draft = known;
  let flaw: Flaw | undefined;
  try {
    while (lines.step()) {
      draft = nextDraft(draft, lines);
      log.admit(lines, whole.end.offset);
      if (lines.more === 0) whole = { draft, end: log.end };
    }
    if (draft !== whole.draft) flaw = new Flaw("the batch is cut off", lines.next);
  } catch (error) {
    if (!(error instanceof Flaw)) throw error;
    flaw = error;
  }
  log.reset(whole.end);
  return { draft: whole.draft, flaw };
}

function nextDraft({ record, order }: Draft, fact: FactLines): Draft {
  const { seq, time: activeAt = record.activeAt } = fact;
  if (fact.beginning) {
    const { sessionId, branchId, parent, header, order } = JSON.parse(fact.data) as Beginning;
    return {
      order,
      record: { sessionId, branchId, createdAt: activeAt, activeAt, seq, ...(parent && { parent }), header },
    };
  }
  const patch = fact.header === undefined ? {} : (JSON.parse(fact.header) as JsonObject);
  return { order, record: { ...record, seq, activeAt, header: mergePatch(record.header, patch) } };
}

/** Cuts the torn end of a write; what was whole once and is not any more is damage. */
function judge(
  disk: Disk,
  branch: BranchState,
  flaw: Flaw | undefined,
  size: number,
  longer: Snapshot | undefined,
  problems: StoreProblem[],
): Damage | undefined {
  const { end, path } = branch.log;
  const where = disk.absolute(path);
  if (flaw && anythingWholeAfter(disk, path, flaw.offset, size)) return damageOf(branch.record, where, flaw);
  // A torn write can miss the last batch only; a snapshot knows where that began.
  if (longer && size < longer.log.batchAt) return damageOf(branch.record, where, new Flaw("facts are lost", end));
  if (!flaw && !longer) return undefined;
  if (size > end.offset) disk.truncate(path, end.offset);
  report(problems, branch, "torn_tail", `${where}: ${size - end.offset} bytes after position ${end.seq - 1} were cut.`);
  return undefined;
}

/** The log is gone or can't be started: a snapshot still says what the branch was. */
function lost(
  disk: Disk,
  session: SessionState,
  name: string,
  path: string,
  snapshot: Snapshot | undefined,
): BranchState {
  const where = disk.absolute(inBranch.log(path));
  if (!snapshot) throw corruptFile(where, "can't be read", { sessionId: session.record.id });
  const branch = newBranch(session, name, path, logOf(disk, inBranch.log(path), snapshot), snapshot);
  const first = (snapshot.record.parent?.seq ?? 0) + 1;
  branch.damage = damageOf(snapshot.record, where, { message: "the log can't be read", seq: first });
  return branch;
}

function unknownBranch(session: SessionState): BranchRecord {
  return { sessionId: session.record.id, branchId: "", createdAt: 0, activeAt: 0, seq: 0, header: {} };
}

function report(problems: StoreProblem[], { record }: BranchState, code: StoreProblem["code"], detail: string): void {
  problems.push({ code, detail, sessionId: record.sessionId, branchId: record.branchId });
}
