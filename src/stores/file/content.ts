// Content: bytes stored once a session, and the references of branches to them. New bytes are written and synced outside
// the session first; the record that refers to them also links them to their place.

import { crc32 } from "node:zlib";
import { type BranchRef, type ContentRecord, compareText } from "../../log/index.ts";
import type { Change } from "./change.ts";
import type { Disk } from "./disk.ts";
import { breathe } from "./files.ts";
import { inSession } from "./layout.ts";
import { applyContent } from "./load-session.ts";
import { nameOf } from "./names.ts";
import type { Sessions } from "./sessions.ts";
import { type BranchState, type ContentEntry, corruptFile, type SessionState, type StoredContent } from "./state.ts";

interface NewContent {
  readonly id: string;
  readonly size: number;
  /** The checksum of the bytes. */
  readonly crc: number;
  readonly mediaType: string;
  readonly name?: string;
}

/** The bytes have to be brought in before the reference can be stored. */
export class BytesWanted extends Error {}

export function putContent(
  sessions: Sessions,
  ref: BranchRef,
  content: NewContent,
  incoming: string | undefined,
  change: Change,
): ContentRecord {
  const { session } = sessions.getBranch(ref);
  if (session.content.damage) throw session.content.damage;
  const known = session.content.byBranch.get(ref.branchId)?.get(content.id);
  if (known) return known.record;
  const { id, size, crc, mediaType, name } = content;
  if (!isStored(session, id, size, crc)) {
    if (incoming === undefined) throw new BytesWanted();
    const path = assetPath(session.path, id);
    change.needs(path);
    change.operations.push({ kind: "link", from: incoming, path });
  }
  const record: ContentRecord = {
    id,
    size,
    mediaType,
    ...(name !== undefined && { name }),
    createdAt: sessions.clock.now(),
    branchId: ref.branchId,
  };
  addEntry(session, { put: { record, crc } }, change);
  return record;
}

export function deleteContent(sessions: Sessions, ref: BranchRef, contentId: string, change: Change): boolean {
  const { session } = sessions.getBranch(ref);
  if (session.content.damage) throw session.content.damage;
  if (!session.content.byBranch.get(ref.branchId)?.has(contentId)) return false;
  addEntry(session, { drop: { branchId: ref.branchId, id: contentId } }, change);
  removeUnused(session, [contentId], change);
  return true;
}

/** The references of branches that are removed; the bytes go with the last one. */
export function releaseContentOf(session: SessionState, branchIds: readonly string[], change: Change): void {
  const { content } = session;
  const ids = branchIds.flatMap((branchId) => [...(content.byBranch.get(branchId)?.keys() ?? [])]);
  if (ids.length === 0 || content.damage) return;
  addEntry(session, { dropBranches: branchIds }, change);
  removeUnused(session, new Set(ids), change);
}

/** The nearest record of the content in a lineage. */
export function findContent(lineage: Iterable<BranchState>, contentId: string): StoredContent | undefined {
  for (const branch of lineage) {
    const found = ownContent(branch).get(contentId);
    if (found) return found;
  }
  return undefined;
}

/** What a lineage sees, oldest first, ties by id. */
export function listContent(lineage: Iterable<BranchState>): ContentRecord[] {
  const seen = new Map<string, ContentRecord>();
  for (const branch of lineage) {
    for (const { record } of ownContent(branch).values()) if (!seen.has(record.id)) seen.set(record.id, { ...record });
  }
  return [...seen.values()].sort((a, b) => a.createdAt - b.createdAt || compareText(a.id, b.id));
}

function ownContent({ session, record }: BranchState): ReadonlyMap<string, StoredContent> {
  if (session.content.damage) throw session.content.damage;
  return session.content.byBranch.get(record.branchId) ?? new Map();
}

const readAtOnce = 1024 * 1024;

/** The bytes of content of the session at `path`. Throws `store_corrupt` when they are not those that were put. */
export async function readAsset(disk: Disk, path: string, { record, crc }: StoredContent): Promise<Uint8Array> {
  const asset = assetPath(path, record.id);
  const bytes = new Uint8Array(record.size);
  let computed = 0;
  for (let at = 0; at < record.size; at += readAtOnce) {
    if (at > 0) await breathe();
    const piece = disk.read(asset, at, Math.min(readAtOnce, record.size - at));
    bytes.set(piece, at);
    computed = crc32(piece, computed);
  }
  if (computed === crc && disk.size(asset) === record.size) return bytes;
  throw corruptFile(disk.absolute(asset), "is damaged or missing", { contentId: record.id });
}

/** Every content id that a branch of the session refers to. */
export function referredContent({ content }: SessionState): Map<string, StoredContent> {
  const all = new Map<string, StoredContent>();
  for (const own of content.byBranch.values()) for (const [id, stored] of own) all.set(id, stored);
  return all;
}

function assetPath(session: string, contentId: string): string {
  return `${inSession.assets(session)}/${nameOf(contentId)}`;
}

function isStored({ content }: SessionState, id: string, size: number, crc: number): boolean {
  for (const own of content.byBranch.values()) {
    const stored = own.get(id);
    if (stored && stored.crc === crc && stored.record.size === size) return true;
  }
  return false;
}

function addEntry(session: SessionState, entry: ContentEntry, change: Change): void {
  const { content } = session;
  const before = new Map([...content.byBranch].map(([branchId, own]) => [branchId, new Map(own)]));
  change.undo.push(() => {
    content.byBranch.clear();
    for (const [branchId, own] of before) content.byBranch.set(branchId, own);
  });
  applyContent(content, entry);
  const live = "put" in entry ? undefined : [...content.byBranch.values()].flatMap((own) => [...own.values()]);
  const operation = content.log.add(
    entry,
    live?.map((put) => ({ put })),
    { erase: true },
  );
  change.operations.push(operation);
}

function removeUnused(session: SessionState, ids: Iterable<string>, change: Change): void {
  const used = referredContent(session);
  for (const id of ids) {
    if (!used.has(id)) change.operations.push({ kind: "remove", path: assetPath(session.path, id) });
  }
}
