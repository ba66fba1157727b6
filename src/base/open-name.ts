// The names of open files, where the system tells them (Linux).
//
//   OpenName-1. The name changes when the file is removed, replaced or moved, or a directory above it is. A stat by path tells the
//       same, but since Linux 6.13 it makes the next write give the file a new time, which nearly doubles the cost of its fsync.

import { nodeModule } from "./node.ts";

const openFiles = "/proc/self/fd";

/** The path of an open file, with a note if it was removed; undefined where the system does not tell. */
export function openName(handle: number | string): string | undefined {
  try {
    return nodeModule<typeof import("node:fs")>("node:fs")?.readlinkSync(`${openFiles}/${handle}`);
  } catch {
    return undefined;
  }
}

/** The handle of this process for the file at the path; undefined if there are several, or the system does not tell. */
export function onlyHandle(path: string): number | undefined {
  const handles = listHandles().filter((handle) => openName(handle) === path);
  return handles.length === 1 ? Number(handles[0]) : undefined;
}

function listHandles(): string[] {
  try {
    return nodeModule<typeof import("node:fs")>("node:fs")?.readdirSync(openFiles) ?? [];
  } catch {
    return [];
  }
}
