// Brings the files up to what the redo log says, at opening. Everything is applied again in order, made durable, and only
// then is the redo log dropped; dying anywhere in between means starting again with the same result.

import { BoughError } from "../../base/errors.ts";
import type { StoreProblem } from "../../log/index.ts";
import { encodeBranch } from "./branch-document.ts";
import type { Disk, FileOperation } from "./disk.ts";
import { breathe } from "./files.ts";
import { inBranch, inSession, logFile, paths } from "./layout.ts";
import { loadBranch } from "./load-branch.ts";
import { newSession, readSessionDocument } from "./load-session.ts";
import { seal, unseal } from "./seal.ts";
import { syncAll } from "./sync.ts";
import { walPath } from "./wal.ts";
import { readWal, type WalContents } from "./wal-reader.ts";

export async function replay(disk: Disk, problems: StoreProblem[]): Promise<void> {
  const numbers = disk
    .list(paths.wal)
    .filter((name) => /^\d{16}\.log$/.test(name))
    .map((name) => Number.parseInt(name, 10))
    .sort((a, b) => a - b);
  if (numbers.length === 0) return;
  const contents = readAll(disk, numbers, problems);
  const gone = removedTrees(contents);
  const rewrites = countRewrites(contents);
  const active = new Map<string, number>();
  const logs = new Set<string>();
  for (const { records } of contents) {
    for (const record of records) {
      // A removed tree is not made again in the same redo log (commit.ts, FileCommit-5), so what was done below it is not needed.
      const needed = record.filter((operation) => isTreeRemoval(operation) || !isBelow(operation.path, gone));
      checkGaps(disk, needed, rewrites, problems);
      disk.apply(needed);
      for (const operation of needed) {
        noteActivity(operation, active);
        if (operation.kind === "append" && operation.path.endsWith(`/${logFile}`)) logs.add(operation.path);
      }
    }
    await breathe();
  }
  for (const [session, at] of active) await writeActivity(disk, session, at);
  let written = 0;
  for (const log of logs) {
    writeBranch(disk, log.slice(0, -`/${logFile}`.length), problems);
    if (++written % 64 === 0) await breathe();
  }
  await syncAll(disk, disk.takeDirty());
  for (const number of numbers) disk.remove(walPath(number));
  await syncAll(disk, disk.takeDirty());
}

/** What is to be replayed, oldest first. */
function readAll(disk: Disk, numbers: readonly number[], problems: StoreProblem[]): WalContents[] {
  const contents: WalContents[] = [];
  let oldest = 0;
  for (const number of [...numbers].reverse()) {
    if (number < oldest) break;
    const followed = contents.some((each) => each.records.length > 0);
    const read = readWal(disk.readWhole(walPath(number))!, number, followed);
    report(disk, number, read, problems);
    if (read.oldest !== undefined) oldest = Math.max(oldest, read.oldest);
    contents.unshift(read);
  }
  return contents;
}

function removedTrees(contents: readonly WalContents[]): Set<string> {
  const operations = contents.flatMap(({ records }) => records.flat());
  return new Set(operations.filter(isTreeRemoval).map((operation) => operation.path));
}

/** How often each file is still to be written whole. */
function countRewrites(contents: readonly WalContents[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { kind, path } of contents.flatMap(({ records }) => records.flat())) {
    if (kind === "write") counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  return counts;
}

function isTreeRemoval({ kind }: FileOperation): boolean {
  return kind === "remove-tree";
}

function isBelow(path: string, gone: ReadonlySet<string>): boolean {
  for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
    if (gone.has(path.slice(0, end))) return true;
  }
  return false;
}

function report(disk: Disk, number: number, { torn, damaged }: WalContents, problems: StoreProblem[]): void {
  const path = disk.absolute(walPath(number));
  if (torn > 0)
    problems.push({ code: "torn_tail", detail: `${path}: the last ${torn} bytes were never acknowledged.` });
  for (const at of damaged) problems.push({ code: "corrupt", detail: `${path}: the group at byte ${at} is damaged.` });
}

/**
 * An append behind the end of its file means that what came before it is lost; its branch is found damaged when read. A file
 * that is written whole later on may be shorter already, because the process that died had done so.
 */
function checkGaps(
  disk: Disk,
  record: readonly FileOperation[],
  rewrites: Map<string, number>,
  problems: StoreProblem[],
): void {
  for (const operation of record) {
    const ahead = rewrites.get(operation.path) ?? 0;
    if (operation.kind === "write") rewrites.set(operation.path, ahead - 1);
    if (operation.kind !== "append" || ahead > 0 || operation.at <= (disk.size(operation.path) ?? 0)) continue;
    const path = disk.absolute(operation.path);
    problems.push({ code: "corrupt", detail: `${path}: bytes before ${operation.at} are lost.` });
  }
}

/** The last of: an activity, or a document that has its own. */
function noteActivity(operation: FileOperation, active: Map<string, number>): void {
  if (operation.kind === "active") active.set(operation.path, operation.at);
  else if (operation.kind === "remove-tree") active.delete(operation.path);
  else if (operation.kind === "write" && operation.path.endsWith("/session.json")) {
    active.delete(operation.path.slice(0, -"/session.json".length));
  }
}

async function writeActivity(disk: Disk, session: string, activeAt: number): Promise<void> {
  const path = inSession.document(session);
  const document = readSealed(disk, path);
  // A damaged document is found when the session is loaded.
  if (!document || document.activeAt === activeAt) return;
  const { crc32: _, ...rest } = document;
  await disk.replace(path, seal({ ...rest, activeAt }));
}

/** Brings branch.json up to its log (branch-files.ts, BranchFiles-3). One that can't be read is found when the branch is loaded. */
function writeBranch(disk: Disk, path: string, problems: StoreProblem[]): void {
  const [session, name] = path.split("/branches/") as [string, string];
  const found: StoreProblem[] = [];
  try {
    const { record, order } = readSessionDocument(disk, session);
    const branch = loadBranch(disk, newSession(session, order, record), name, found);
    if (!branch.damage) disk.write(inBranch.document(path), encodeBranch(disk, branch));
  } catch (error) {
    if (!BoughError.is(error, "store_corrupt")) throw error;
    return;
  }
  // A document whose writing was cut off is not worth telling: it is written here in any case.
  problems.push(...found.filter(({ code }) => code !== "repaired"));
}

function readSealed(disk: Disk, path: string): Record<string, unknown> | undefined {
  const bytes = disk.readWhole(path);
  return bytes && (unseal(bytes) as Record<string, unknown> | undefined);
}

export function openingFailed(base: string, cause: unknown): BoughError {
  return new BoughError("store_read_only", `The store in ${base} could not be opened: ${(cause as Error).message}`, {
    data: { path: base, reason: (cause as { code?: string }).code ?? "unknown" },
    cause,
  });
}
