// Segments are derived, so they don't go through the redo log. The name of a segment's file has the checksum of its bytes;
// one that is not whole any more is as good as none.

import { crc32 } from "node:zlib";
import { type BranchRef, type Segment, splitLines } from "../../log/index.ts";
import type { Change } from "./change.ts";
import { inBranch } from "./layout.ts";
import { hex8 } from "./seal.ts";
import { parseSegmentName, segmentName, segmentsOf } from "./segment-names.ts";
import type { Sessions } from "./sessions.ts";
import type { BranchState } from "./state.ts";

export function saveSegment(sessions: Sessions, ref: BranchRef, { to, lines }: Segment, change: Change): void {
  const branch = sessions.getBranch(ref);
  const table = segmentsOf(sessions.disk, branch);
  const bytes = Buffer.from(lines.join("\n"));
  const crc = hex8(crc32(bytes));
  const before = table.get(to);
  table.set(to, crc);
  change.undo.push(() => {
    if (before === undefined) table.delete(to);
    else table.set(to, before);
  });
  change.local.push(() => {
    sessions.disk.write(pathOf(branch, to, crc), bytes);
    if (before !== undefined && before !== crc) sessions.disk.remove(pathOf(branch, to, before));
  });
  sessions.branchFiles.note(branch);
}

/** The newest with `to` at or before `at`, in a lineage. */
export function findSegment(sessions: Sessions, lineage: Iterable<BranchState>, at: number): Segment | undefined {
  let end = at;
  for (const branch of lineage) {
    const found = findOwnSegment(sessions, branch, end);
    if (found) return found;
    end = Math.min(end, branch.record.parent?.seq ?? 0);
  }
  return undefined;
}

function findOwnSegment(sessions: Sessions, branch: BranchState, at: number): Segment | undefined {
  const table = segmentsOf(sessions.disk, branch);
  const ends = [...table.keys()].filter((to) => to <= at).sort((a, b) => b - a);
  for (const to of ends) {
    const lines = readSegment(sessions, branch, to, table.get(to)!);
    if (lines) return { to, lines };
    table.delete(to);
  }
  return undefined;
}

/** Undefined when it is not whole. */
function readSegment({ disk }: Sessions, branch: BranchState, to: number, crc: string): string[] | undefined {
  const bytes = disk.readWhole(pathOf(branch, to, crc));
  return bytes && hex8(crc32(bytes)) === crc ? splitLines(bytes) : undefined;
}

/** Removes files that are no segment, or not the one that counts; returns their names. */
export function cleanSegments(sessions: Sessions, branch: BranchState): string[] {
  const table = segmentsOf(sessions.disk, branch);
  const stray: string[] = [];
  for (const name of sessions.disk.list(inBranch.segments(branch.path))) {
    const found = parseSegmentName(name);
    const counts = found !== undefined && table.get(found.to) === found.crc;
    if (counts && readSegment(sessions, branch, found.to, found.crc)) continue;
    if (counts) table.delete(found.to);
    sessions.disk.remove(`${inBranch.segments(branch.path)}/${name}`);
    stray.push(name);
  }
  return stray;
}

function pathOf(branch: BranchState, to: number, crc: string): string {
  return `${inBranch.segments(branch.path)}/${segmentName(to, crc)}`;
}
