// Reads a file of the redo log back. Pure: bytes in, operations and findings out.

import { crc32 } from "node:zlib";
import type { FileOperation } from "./disk.ts";
import { hex8 } from "./seal.ts";
import type { OperationHead } from "./wal.ts";

export interface WalContents {
  /** The oldest file to replay with this one; undefined when its header can't be read. */
  readonly oldest: number | undefined;
  readonly records: readonly (readonly FileOperation[])[];
  /** Bytes at the end that belong to a group that was never acknowledged. */
  readonly torn: number;
  /** Offsets of groups that were acknowledged and are damaged. */
  readonly damaged: readonly number[];
}

interface Group {
  readonly body: number;
  readonly end: number;
  readonly records: number;
}

/** `followed`: a later file has groups, so nothing in this one can be the end of an unfinished write. */
export function readWal(file: Buffer, number: number, followed: boolean): WalContents {
  const bytes = withoutReserve(file);
  const header = readHeader(bytes);
  const records: FileOperation[][] = [];
  const damaged: number[] = [];
  let at = header?.end ?? 0;
  while (at < bytes.length) {
    const group = readGroupHead(bytes, at, number);
    const whole = group && readRecords(bytes, group);
    if (whole?.complete) {
      records.push(...whole.records);
      at = group!.end;
      continue;
    }
    const next = findGroup(bytes, at + 1, number);
    if (next === undefined && !followed) return { oldest: header?.oldest, records, torn: bytes.length - at, damaged };
    damaged.push(at);
    if (whole) records.push(...whole.records);
    at = next ?? bytes.length;
  }
  return { oldest: header?.oldest, records, torn: 0, damaged };
}

/** The file without the zeros behind its last group (wal.ts, Wal-5). */
function withoutReserve(file: Buffer): Buffer {
  let end = file.length;
  while (end > 0 && file[end - 1] === 0) end--;
  return file.subarray(0, end);
}

function readHeader(bytes: Buffer): { oldest: number; end: number } | undefined {
  const line = lineAt(bytes, 0);
  const match = line && /^(bough-wal\t\d+\t(\d+)\t)([0-9a-f]{8})$/.exec(line.text);
  if (!match || hex8(crc32(match[1]!)) !== match[3]) return undefined;
  return { oldest: Number(match[2]), end: line!.end };
}

function readGroupHead(bytes: Buffer, at: number, number: number): Group | undefined {
  const line = lineAt(bytes, at);
  const match = line && /^(group\t\d+\t(\d+)\t(\d+)\t)([0-9a-f]{8})$/.exec(line.text);
  if (!match || hex8(crc32(match[1]!, number >>> 0)) !== match[4]) return undefined;
  return { body: line!.end, end: line!.end + Number(match[3]), records: Number(match[2]) };
}

const groupStart = Buffer.from("\ngroup\t");

function findGroup(bytes: Buffer, from: number, number: number): number | undefined {
  for (let at = bytes.indexOf(groupStart, from - 1); at >= 0; at = bytes.indexOf(groupStart, at + 1)) {
    if (readGroupHead(bytes, at + 1, number)) return at + 1;
  }
  return undefined;
}

/** The good records of a group; complete when all of them are. */
function readRecords(bytes: Buffer, group: Group): { records: FileOperation[][]; complete: boolean } {
  const records: FileOperation[][] = [];
  let at = group.body;
  for (let i = 0; i < group.records; i++) {
    const line = lineAt(bytes, at);
    const match = line && /^(\d+)\t([0-9a-f]{8})$/.exec(line.text);
    if (!match) return { records, complete: false };
    const end = line!.end + Number(match[1]);
    const body = bytes.subarray(line!.end, end);
    if (end <= group.end && hex8(crc32(body)) === match[2]) records.push(readOperations(body));
    at = end;
  }
  return { records, complete: records.length === group.records };
}

function readOperations(body: Buffer): FileOperation[] {
  const line = lineAt(body, 0)!;
  let at = line.end;
  const take = (length: number) => {
    at += length;
    return body.subarray(at - length, at);
  };
  return (JSON.parse(line.text) as OperationHead[]).map((head): FileOperation => {
    switch (head[0]) {
      case "append":
        return { kind: "append", path: head[1], at: head[2], bytes: take(head[3]) };
      case "write":
        return { kind: "write", path: head[1], bytes: take(head[2]) };
      case "link":
        return { kind: "link", from: head[1], path: head[2] };
      case "active":
        return { kind: "active", path: head[1], at: head[2] };
      default:
        return { kind: head[0], path: head[1] };
    }
  });
}

function lineAt(bytes: Buffer, at: number): { text: string; end: number } | undefined {
  const feed = bytes.indexOf(10, at);
  return feed < 0 ? undefined : { text: bytes.toString("utf8", at, feed), end: feed + 1 };
}
