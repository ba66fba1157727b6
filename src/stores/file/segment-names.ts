// The names of a branch's segment files: each has the segment's end and the checksum of its bytes.

import type { Disk } from "./disk.ts";
import { inBranch } from "./layout.ts";
import type { BranchState } from "./state.ts";

const fileName = /^(\d+)-([0-9a-f]{8})\.jsonl$/;

export function segmentName(to: number, crc: string): string {
  return `${to}-${crc}.jsonl`;
}

/** The end and the checksum that a file's name has; undefined when it is not the name of a segment. */
export function parseSegmentName(name: string): { to: number; crc: string } | undefined {
  const [, to, crc] = fileName.exec(name) ?? [];
  return to === undefined || crc === undefined ? undefined : { to: Number(to), crc };
}

/** The checksum of each segment by its end; the directory is listed once. */
export function segmentsOf(disk: Disk, branch: BranchState): Map<number, string> {
  if (branch.segments) return branch.segments;
  const found = new Map<number, string>();
  for (const name of disk.list(inBranch.segments(branch.path))) {
    const segment = parseSegmentName(name);
    if (segment) found.set(segment.to, segment.crc);
  }
  branch.segments = found;
  return found;
}
