// branch.json: what a branch is, where its messages are, and an index of its log, so that loading it reads the lines behind
// the index only. Derived from the log, which is the truth: a lost or damaged one is written anew.

import type { BranchRecord } from "../../log/index.ts";
import type { IndexPoint, LogEnd } from "./branch-log.ts";
import type { Disk } from "./disk.ts";
import { inBranch, logFile, segmentsDirectory } from "./layout.ts";
import { nameOf } from "./names.ts";
import { seal, unseal } from "./seal.ts";
import { segmentName, segmentsOf } from "./segment-names.ts";
import type { BranchState } from "./state.ts";

/** Files are named relative to this one. Short, because every fork has one. */
interface BranchDocument extends BranchRecord {
  readonly order: number;
  /** The parent's log, of which this branch sees the facts up to `parent.seq`. */
  readonly inherits?: string;
  /** Its own facts, up to `seq`: the length of the log, where its last batch starts unless it is the first, the checksum of its last line. */
  readonly log: { readonly file: string; readonly bytes: number; readonly batchAt?: number; readonly crc: number };
  /** Messages of closed turns, ready to be loaded, oldest first: each file has those after the one before, up to `to`. */
  readonly segments?: readonly { readonly file: string; readonly to: number }[];
  /** Places in the log, if there are any but its start. */
  readonly index?: readonly IndexPoint[];
}

/** What loading takes from the document. */
export interface Snapshot {
  readonly record: BranchRecord;
  readonly order: number;
  readonly log: LogEnd;
  readonly points: readonly IndexPoint[];
}

export function encodeBranch(disk: Disk, branch: BranchState): Buffer {
  const { record, order, log } = branch;
  const { parent } = record;
  const { offset: bytes, batchAt, crc } = log.end;
  const segments = [...segmentsOf(disk, branch)].sort(([a], [b]) => a - b);
  return seal({
    ...record,
    order,
    ...(parent && { inherits: `../${nameOf(parent.branchId)}/${logFile}` }),
    log: { file: logFile, bytes, ...(batchAt > 0 && { batchAt }), crc },
    ...(segments.length > 0 && { segments: segments.map(([to, crc]) => ({ file: pathOf(to, crc), to })) }),
    ...(log.points.length > 1 && { index: log.points.slice(1) }),
  } satisfies BranchDocument);
}

function pathOf(to: number, crc: string): string {
  return `${segmentsDirectory}/${segmentName(to, crc)}`;
}

/** `isThere` without a snapshot: it is damaged. */
export function readBranch(disk: Disk, path: string): { snapshot: Snapshot | undefined; isThere: boolean } {
  const bytes = disk.readWhole(inBranch.document(path));
  const document = bytes && (unseal(bytes) as (BranchDocument & { crc32: string }) | undefined);
  if (!document) return { snapshot: undefined, isThere: bytes !== undefined && bytes.length > 0 };
  const { order, inherits: _inherits, log, segments: _segments, index = [], crc32: _crc, ...record } = document;
  const end = { seq: record.seq + 1, offset: log.bytes, batchAt: log.batchAt ?? 0, crc: log.crc };
  const start: IndexPoint = [record.parent?.seq ?? 0, 0, 0];
  return { snapshot: { record, order, log: end, points: [start, ...index] }, isThere: true };
}
