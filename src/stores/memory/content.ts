// Content of the memory store: rows on each branch that has it, bytes once per session, uploads under way.

import { type JsonObject, mergePatch } from "../../base/json.ts";
import {
  type BlobPlace,
  type BranchRef,
  type ContentRecord,
  type ContentRow,
  type ContentTable,
  inContentOrder,
  refuse,
  seenRows,
} from "../../log/index.ts";
import type { MemoryBranch, MemoryBytes, MemorySession } from "./tables.ts";

interface Parts {
  readonly sessions: ReadonlyMap<string, MemorySession>;
  readonly now: () => number;
  /** Throws when the store is closed. */
  readonly check: () => void;
}

const mostFreed = 100;

export class MemoryContent implements ContentTable {
  readonly #parts: Parts;
  #freed: BlobPlace[] = [];
  #count = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async begin(ref: BranchRef, key: string | undefined): Promise<string> {
    const { session } = this.#at(ref);
    const no = String(++this.#count);
    session.uploads.set(no, { no, key, chunks: [], size: 0, touchedAt: this.#parts.now() });
    return no;
  }

  async touch(ref: BranchRef, upload: string): Promise<boolean> {
    return this.#upload(ref, upload) !== undefined;
  }

  async addChunks(ref: BranchRef, upload: string, _from: number, chunks: readonly Uint8Array[]): Promise<boolean> {
    const found = this.#upload(ref, upload);
    found?.chunks.push(...chunks);
    return found !== undefined;
  }

  async cancel({ sessionId }: BranchRef, upload: string): Promise<void> {
    const session = this.#parts.sessions.get(sessionId);
    if (session) this.#cancel(session, upload);
  }

  async commit(ref: BranchRef, row: ContentRow, upload: string | undefined) {
    const { session, branch } = this.#at(ref);
    const bytes = upload === undefined ? undefined : session.uploads.get(upload);
    if (upload !== undefined && !bytes) return "upload_expired";
    const { id, size, mediaType, name, info, seq = branch.record.seq } = row;
    if (!bytes && !session.bytes.has(id)) return "bytes_missing";
    if (bytes && !session.bytes.has(id)) {
      session.uploads.delete(bytes.no);
      session.bytes.set(id, { ...bytes, size });
    } else if (bytes) this.#cancel(session, bytes.no);
    const known = branch.contents.get(id);
    if (known) return structuredClone(known);
    const named = name === undefined ? {} : { name };
    const { branchId } = ref;
    const record = structuredClone({
      id,
      size,
      mediaType,
      ...named,
      createdAt: this.#parts.now(),
      branchId,
      seq,
      info,
    });
    branch.contents.set(id, record);
    return structuredClone(record);
  }

  async find(ref: BranchRef, contentId: string) {
    const { session, branch } = this.#at(ref);
    const record = this.#seen(branch, contentId);
    const bytes = record && session.bytes.get(contentId);
    return bytes && { record: structuredClone(record), bytes: contentId, key: bytes.key };
  }

  async readChunk({ sessionId }: BranchRef, contentId: string, chunk: number): Promise<Uint8Array | undefined> {
    this.#parts.check();
    return this.#parts.sessions.get(sessionId)?.bytes.get(contentId)?.chunks[chunk]?.slice();
  }

  async list(ref: BranchRef): Promise<ContentRecord[]> {
    return structuredClone(inContentOrder(seenRows(lineRows(this.#at(ref).branch))));
  }

  async update(ref: BranchRef, contentId: string, info: JsonObject): Promise<ContentRecord | undefined> {
    const { session, branch } = this.#at(ref);
    const record = this.#seen(branch, contentId);
    if (!record) return undefined;
    const updated = structuredClone({ ...record, info: mergePatch(record.info, info) });
    session.branches.get(record.branchId)!.contents.set(contentId, updated);
    return structuredClone(updated);
  }

  async delete(ref: BranchRef, contentId: string): Promise<boolean> {
    const { session, branch } = this.#at(ref);
    const isDeleted = branch.contents.delete(contentId);
    if (isDeleted) this.dropUnused(session);
    return isDeleted;
  }

  async usage(sessionId: string): Promise<number> {
    this.#parts.check();
    const session = this.#parts.sessions.get(sessionId);
    if (!session) throw refuse.sessionNotFound(sessionId);
    return [...session.bytes.values()].reduce((sum, { size }) => sum + size, 0);
  }

  async expire(before: number): Promise<number> {
    let expired = 0;
    for (const session of this.#parts.sessions.values()) {
      for (const { no, touchedAt } of [...session.uploads.values()]) {
        if (touchedAt >= before) continue;
        this.#cancel(session, no);
        expired += 1;
      }
    }
    return expired;
  }

  async freed(sessionId: string | undefined): Promise<BlobPlace[]> {
    const wanted = sessionId === undefined ? this.#freed : this.#freed.filter((place) => place.sessionId === sessionId);
    return wanted.slice(0, mostFreed);
  }

  async forget(places: readonly BlobPlace[]): Promise<void> {
    const keys = new Set(places.map(({ key }) => key));
    this.#freed = this.#freed.filter(({ key }) => !keys.has(key));
  }

  async *places() {
    for (const [sessionId, session] of this.#parts.sessions) {
      for (const [contentId, { key, size }] of session.bytes) {
        if (key !== undefined) yield { sessionId, key, size, contentId };
      }
    }
  }

  /** Drops bytes that no branch of the session refers to any more. */
  dropUnused(session: MemorySession): void {
    if (session.bytes.size === 0) return;
    const used = new Set<string>();
    for (const { contents } of session.branches.values()) for (const id of contents.keys()) used.add(id);
    for (const [id, bytes] of session.bytes) {
      if (used.has(id)) continue;
      session.bytes.delete(id);
      this.#free(session, bytes);
    }
  }

  /** The session goes, with its uploads. */
  dropAll(session: MemorySession): void {
    for (const bytes of [...session.bytes.values(), ...session.uploads.values()]) this.#free(session, bytes);
  }

  #cancel(session: MemorySession, upload: string): void {
    const bytes = session.uploads.get(upload);
    if (!bytes) return;
    session.uploads.delete(upload);
    this.#free(session, bytes);
  }

  #free(session: MemorySession, { key }: MemoryBytes): void {
    if (key !== undefined) this.#freed.push({ sessionId: session.record.id, key });
  }

  #upload({ sessionId }: BranchRef, upload: string): MemoryBytes | undefined {
    this.#parts.check();
    const found = this.#parts.sessions.get(sessionId)?.uploads.get(upload);
    if (found) found.touchedAt = this.#parts.now();
    return found;
  }

  #seen(branch: MemoryBranch, contentId: string): ContentRecord | undefined {
    for (const row of seenRows(lineRows(branch))) if (row.id === contentId) return row;
    return undefined;
  }

  #at(ref: BranchRef): { session: MemorySession; branch: MemoryBranch } {
    this.#parts.check();
    const session = this.#parts.sessions.get(ref.sessionId);
    const branch = session?.branches.get(ref.branchId);
    if (!session || !branch) throw refuse.branchNotFound(ref);
    return { session, branch };
  }
}

function* lineRows(from: MemoryBranch): Generator<{ base: number | undefined; rows: Iterable<ContentRecord> }> {
  for (let branch: MemoryBranch | undefined = from; branch; branch = branch.parent) {
    yield { base: branch.record.parent?.seq, rows: branch.contents.values() };
  }
}
