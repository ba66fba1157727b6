// Content: bytes stored once a session, and the references of branches to them. New bytes are written and synced outside
// the session first; the record that refers to them also links them to their place.

import { crc32 } from "node:zlib";
import { type JsonObject, mergePatch } from "../../base/json.ts";
import { type BranchRef, type ContentRecord, inContentOrder, largestPiece, seenRows } from "../../log/index.ts";
import type { Change } from "./change.ts";
import type { Disk } from "./disk.ts";
import { breathe } from "./files.ts";
import type { BroughtBytes } from "./incoming.ts";
import { inSession } from "./layout.ts";
import { applyContent } from "./load-session.ts";
import { nameOf } from "./names.ts";
import type { Sessions } from "./sessions.ts";
import { type BranchState, type ContentEntry, corruptFile, type SessionState, type StoredContent } from "./state.ts";

interface NewContent extends BroughtBytes {
  readonly mediaType: string;
  readonly name: string | undefined;
  readonly info: JsonObject;
  readonly seq: number | undefined;
}

export function putContent(sessions: Sessions, ref: BranchRef, content: NewContent, change: Change): ContentRecord {
  const branch = sessions.getBranch(ref);
  const { session } = branch;
  if (session.content.damage) throw session.content.damage;
  const known = session.content.byBranch.get(ref.branchId)?.get(content.id);
  if (known) return known.record;
  const { id, size, crc, mediaType, name, info, seq = branch.record.seq } = content;
  if (!isStored(session, id, size, crc)) {
    const path = assetPath(session.path, id);
    change.needs(path);
    change.operations.push({ kind: "link", from: content.path, path });
  }
  const record: ContentRecord = {
    id,
    size,
    mediaType,
    ...(name !== undefined && { name }),
    createdAt: sessions.clock.now(),
    branchId: ref.branchId,
    seq,
    info,
  };
  addEntry(session, { put: { record, crc } }, change);
  return record;
}

/** Merges into what is noted about the branch's own content. */
export function updateContent(
  sessions: Sessions,
  ref: BranchRef,
  contentId: string,
  patch: JsonObject,
  change: Change,
): ContentRecord | undefined {
  const { session } = sessions.getBranch(ref);
  if (session.content.damage) throw session.content.damage;
  const known = session.content.byBranch.get(ref.branchId)?.get(contentId);
  if (!known) return undefined;
  const record = { ...known.record, info: mergePatch(known.record.info, patch) };
  addEntry(session, { put: { ...known, record } }, change);
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

/** The nearest record of the content that the first branch of a lineage sees. */
export function findContent(lineage: Iterable<BranchState>, contentId: string): StoredContent | undefined {
  for (const row of seenRows<OwnRow>(ownRows(lineage))) if (row.id === contentId) return row.stored;
  return undefined;
}

/** What the first branch of a lineage sees. */
export function listContent(lineage: Iterable<BranchState>): ContentRecord[] {
  const rows = [...seenRows<OwnRow>(ownRows(lineage))];
  return structuredClone(inContentOrder(rows.map(({ stored }) => stored.record)));
}

type OwnRow = Pick<ContentRecord, "id" | "seq"> & { readonly stored: StoredContent };

function* ownRows(lineage: Iterable<BranchState>): Generator<{ base: number | undefined; rows: OwnRow[] }> {
  for (const { session, record } of lineage) {
    if (session.content.damage) throw session.content.damage;
    const own = [...(session.content.byBranch.get(record.branchId)?.values() ?? [])];
    const rows = own.map((stored) => ({ id: stored.record.id, seq: stored.record.seq, stored }));
    yield { base: record.parent?.seq, rows };
  }
}

/** The bytes from `from` to `to`, piece by piece. Throws `store_corrupt` when they are missing or, read whole, not those that were put. */
export async function* readAsset(
  disk: Disk,
  path: string,
  { record, crc }: StoredContent,
  { from, to }: { from: number; to: number },
): AsyncGenerator<Uint8Array> {
  const asset = assetPath(path, record.id);
  const damaged = () => corruptFile(disk.absolute(asset), "is damaged or missing", { contentId: record.id });
  if (disk.size(asset) !== record.size) throw damaged();
  const isWhole = from === 0 && to === record.size;
  let computed = 0;
  for (let at = from; at < to; at += largestPiece) {
    if (at > from) await breathe();
    const length = Math.min(largestPiece, to - at);
    const piece = disk.read(asset, at, length);
    computed = crc32(piece, computed);
    // Checked before the last piece is given out, so that nobody takes damaged bytes for all of them.
    const isLast = at + length === to;
    if (piece.length !== length || (isLast && isWhole && computed !== crc)) throw damaged();
    yield piece;
  }
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
  const isNew = "put" in entry && !before.get(entry.put.record.branchId)?.has(entry.put.record.id);
  applyContent(content, entry);
  const live = isNew ? undefined : [...content.byBranch.values()].flatMap((own) => [...own.values()]);
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
