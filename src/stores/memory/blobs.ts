// Content of the memory store: bytes once per session, and a record on each branch that has them.

import { type Blobs, type ContentRecord, compareText, type NewBlob } from "../../log/index.ts";
import type { MemoryBranch, MemorySession } from "./tables.ts";

export function putBlob(session: MemorySession, branch: MemoryBranch, blob: NewBlob, now: number): ContentRecord {
  const { id, bytes, mediaType, name } = blob;
  const known = branch.contents.get(id);
  if (known) return { ...known };
  const record: ContentRecord = {
    id,
    size: bytes.length,
    mediaType,
    ...(name !== undefined && { name }),
    createdAt: now,
    branchId: branch.record.branchId,
  };
  // Not slice(): that of a Buffer shares its memory.
  session.bytes.set(id, new Uint8Array(bytes));
  branch.contents.set(id, record);
  return { ...record };
}

export function getBlob(
  session: MemorySession,
  from: MemoryBranch,
  contentId: string,
): Awaited<ReturnType<Blobs["get"]>> {
  for (let branch: MemoryBranch | undefined = from; branch; branch = branch.parent) {
    const record = branch.contents.get(contentId);
    const bytes = record && session.bytes.get(contentId);
    if (record && bytes) return { record: { ...record }, bytes: new Uint8Array(bytes) };
  }
  return undefined;
}

export function listBlobs(from: MemoryBranch): ContentRecord[] {
  const seen = new Map<string, ContentRecord>();
  for (let branch: MemoryBranch | undefined = from; branch; branch = branch.parent) {
    for (const record of branch.contents.values()) if (!seen.has(record.id)) seen.set(record.id, { ...record });
  }
  return [...seen.values()].sort((a, b) => a.createdAt - b.createdAt || compareText(a.id, b.id));
}
