// ContentKeeper: the content of a store that has tables for rows, uploads and chunks (content-table.ts), and that may be given a
// place outside for the bytes (blobs.ts). Owns the order of steps; holds no state of its own beside running uploads.
//
//   ContentKeeper-1. An upload is noted before its first byte is stored, here or outside. So whatever a crash leaves is found by
//       maintain(), without a listing of the outside.
//   ContentKeeper-2. The commit of a row and the end of its upload are one step, and so are the removal of the last row and the note
//       that its bytes are free. Bytes outside are removed after that note, never before.
//   ContentKeeper-3. An upload that expired can't be committed: its bytes may be gone.

import { BoughError } from "../base/errors.ts";
import { failpoint } from "../base/failpoint.ts";
import type { JsonObject } from "../base/json.ts";
import { runningSha256 } from "../base/sha256.ts";
import type { BlobPlace, Blobs, BlobWriter } from "./blobs.ts";
import type { BranchRef } from "./branch-ref.ts";
import {
  type ByteRange,
  type ContentRecord,
  type ContentStore,
  type ContentUrl,
  type ContentUrlOptions,
  type ContentWriter,
  chunkBytes,
  type NewContentRow,
  uploadExpiresMs,
} from "./content.ts";
import type { ContentRow, ContentTable, FoundContent } from "./content-table.ts";
import { refuse } from "./refusals.ts";
import type { StoreProblem } from "./store.ts";

export interface ContentKeeperOptions {
  /** Draws a key that was never used. */
  readonly newKey: () => string;
  readonly blobs?: Blobs | undefined;
  /** The largest content that the store keeps itself (default: no limit). */
  readonly largest?: number | undefined;
}

export class ContentKeeper implements ContentStore {
  readonly #table: ContentTable;
  readonly #options: ContentKeeperOptions;
  readonly url?: NonNullable<ContentStore["url"]>;

  constructor(table: ContentTable, options: ContentKeeperOptions) {
    this.#table = table;
    this.#options = options;
    if (options.blobs?.url) this.url = (ref, contentId, wanted) => this.#url(ref, contentId, wanted);
  }

  async write({ sessionId, branchId }: BranchRef): Promise<ContentWriter> {
    const ref = { sessionId, branchId };
    const { blobs, newKey, largest } = this.#options;
    if (!blobs) return new InnerWriter(this.#table, ref, await this.#table.begin(ref, undefined), largest);
    // Refuses a branch that is not there before bytes are taken.
    await this.#table.find(ref, "");
    return new OuterWriter(this.#table, ref, await blobs.write(), {
      newKey,
      drain: () => this.drain(sessionId),
    });
  }

  async get(ref: BranchRef, contentId: string): Promise<ContentRecord | undefined> {
    return (await this.#table.find(ref, contentId))?.record;
  }

  async *read({ sessionId, branchId }: BranchRef, contentId: string, range?: ByteRange): AsyncGenerator<Uint8Array> {
    const ref = { sessionId, branchId };
    const found = await this.#table.find(ref, contentId);
    if (!found) throw refuse.contentNotFound(ref, contentId);
    const { from, to } = clampRange(range, found.record.size);
    if (from >= to) return;
    try {
      if (found.key === undefined) yield* this.#readChunks(ref, found, from, to);
      else yield* this.#blobs(found).read({ sessionId, key: found.key }, { from, to });
    } catch (error) {
      if (!(error instanceof BytesGone) && !BoughError.is(error, "content_not_found")) throw error;
      // Deleted while it was read, or lost.
      const still = await this.#table.find(ref, contentId);
      throw still ? refuse.contentLost(ref, contentId) : refuse.contentNotFound(ref, contentId);
    }
  }

  list(ref: BranchRef): Promise<readonly ContentRecord[]> {
    return this.#table.list(ref);
  }

  async update(ref: BranchRef, contentId: string, info: JsonObject): Promise<ContentRecord> {
    const record = await this.#table.update(ref, contentId, info);
    if (!record) throw refuse.contentNotFound(ref, contentId);
    return record;
  }

  async delete(ref: BranchRef, contentId: string): Promise<boolean> {
    const { sessionId } = ref;
    const isDeleted = await this.#table.delete(ref, contentId);
    if (isDeleted) await this.drain(sessionId);
    return isDeleted;
  }

  usage(sessionId: string): Promise<number> {
    return this.#table.usage(sessionId);
  }

  /** Removes the freed bytes outside (ContentKeeper-2). What can't be removed now stays noted, and is tried again by maintain(). */
  async drain(sessionId?: string): Promise<void> {
    const { blobs } = this.#options;
    if (!blobs) return;
    for (;;) {
      const places = await this.#table.freed(sessionId);
      if (places.length === 0) return;
      try {
        for (const place of places) await blobs.remove(place);
      } catch {
        return;
      }
      await this.#table.forget(places);
    }
  }

  /** Ends uploads that were cut off, removes what is free, and compares rows with the bytes outside. */
  async maintain(now: number): Promise<StoreProblem[]> {
    const expired = await this.#table.expire(now - uploadExpiresMs);
    await this.drain();
    const problems: StoreProblem[] = [];
    if (expired > 0) problems.push({ code: "orphan", detail: `Removed ${expired} uploads that were cut off.` });
    return [...problems, ...(await this.#missing())];
  }

  async #missing(): Promise<StoreProblem[]> {
    const { blobs } = this.#options;
    if (!blobs) return [];
    const there = new Map<string, number>();
    const wanted: (BlobPlace & { size: number; contentId: string })[] = [];
    // Rows first: bytes are there before their row.
    for await (const place of this.#table.places()) wanted.push(place);
    for await (const { sessionId, key, size } of blobs.list()) there.set(JSON.stringify([sessionId, key]), size);
    const lost = wanted.filter(({ sessionId, key, size }) => there.get(JSON.stringify([sessionId, key])) !== size);
    return lost.map(({ sessionId, contentId }) => ({
      code: "corrupt",
      detail: `The bytes of content ${contentId} are missing or incomplete.`,
      sessionId,
    }));
  }

  async *#readChunks(ref: BranchRef, found: FoundContent, from: number, to: number): AsyncGenerator<Uint8Array> {
    for (let at = from; at < to; ) {
      const number = Math.floor(at / chunkBytes);
      const start = number * chunkBytes;
      const end = Math.min(to, start + chunkBytes);
      const chunk = await this.#table.readChunk(ref, found.bytes, number);
      if (!chunk || chunk.length < end - start) throw new BytesGone();
      yield chunk.subarray(at - start, end - start);
      at = end;
    }
  }

  #blobs({ record }: FoundContent): Blobs {
    const { blobs } = this.#options;
    if (blobs) return blobs;
    const sentence = `The bytes of content "${record.id}" are kept outside the store; open it with the option blobs.`;
    throw new BoughError("store_unsupported", sentence, { data: { contentId: record.id } });
  }

  async #url(
    { sessionId, branchId }: BranchRef,
    contentId: string,
    options: ContentUrlOptions,
  ): Promise<ContentUrl | undefined> {
    const found = await this.#table.find({ sessionId, branchId }, contentId);
    if (found?.key === undefined) return undefined;
    return this.#options.blobs?.url?.({ sessionId, key: found.key }, options);
  }
}

class BytesGone extends Error {}

/** The range within the bytes there are. */
export function clampRange(range: ByteRange | undefined, size: number): { from: number; to: number } {
  const from = Math.min(Math.max(range?.from ?? 0, 0), size);
  return { from, to: Math.min(Math.max(range?.to ?? size, from), size) };
}

/** Uploads to the store itself, in chunks. */
class InnerWriter implements ContentWriter {
  readonly #table: ContentTable;
  readonly #ref: BranchRef;
  readonly #upload: string;
  readonly #hash = runningSha256();
  readonly #largest: number;
  readonly #pieces = new Pieces();
  #stored = 0;
  #size = 0;
  #finished: { id: string; size: number } | undefined;
  #isOver = false;

  constructor(table: ContentTable, ref: BranchRef, upload: string, largest = Number.POSITIVE_INFINITY) {
    this.#table = table;
    this.#ref = ref;
    this.#upload = upload;
    this.#largest = largest;
  }

  async add(chunk: Uint8Array): Promise<void> {
    this.#size += chunk.length;
    if (this.#size > this.#largest) throw refuse.contentTooLarge(this.#largest, "This store");
    this.#pieces.add(chunk);
    if (this.#pieces.isFull) await this.#store(this.#pieces.takeFull());
  }

  async finish() {
    await this.#store(this.#pieces.takeAll());
    this.#finished ??= { id: this.#hash.digest(), size: this.#size };
    failpoint("content.finish");
    return this.#finished;
  }

  async commit(row: NewContentRow): Promise<ContentRecord> {
    const complete = completeRow(row, this.#finished);
    const record = await this.#table.commit(this.#ref, complete, this.#upload);
    failpoint("content.row");
    if (typeof record === "string") throw await expired(this.#table, this.#ref);
    this.#isOver = true;
    return record;
  }

  async abort(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    // What can't be removed now expires.
    await this.#table.cancel(this.#ref, this.#upload).catch(() => {});
  }

  async #store(pieces: readonly Uint8Array[]): Promise<void> {
    if (pieces.length === 0) return;
    for (const piece of pieces) this.#hash.update(piece);
    if (!(await this.#table.addChunks(this.#ref, this.#upload, this.#stored, pieces))) {
      throw await expired(this.#table, this.#ref);
    }
    this.#stored += pieces.length;
    failpoint("content.chunk");
  }
}

/** Uploads to a place outside; equal bytes are not sent again. */
class OuterWriter implements ContentWriter {
  readonly #table: ContentTable;
  readonly #ref: BranchRef;
  readonly #writer: BlobWriter;
  readonly #options: { newKey: () => string; drain: () => Promise<void> };
  #upload: string | undefined;
  #finished: { id: string; size: number } | undefined;

  constructor(
    table: ContentTable,
    ref: BranchRef,
    writer: BlobWriter,
    options: { newKey: () => string; drain: () => Promise<void> },
  ) {
    this.#table = table;
    this.#ref = ref;
    this.#writer = writer;
    this.#options = options;
  }

  async add(chunk: Uint8Array): Promise<void> {
    await this.#writer.add(chunk);
    failpoint("content.chunk");
  }

  async finish() {
    this.#finished ??= await this.#writer.finish();
    failpoint("content.finish");
    return this.#finished;
  }

  async commit(row: NewContentRow): Promise<ContentRecord> {
    const complete = completeRow(row, this.#finished);
    const known = await this.#table.commit(this.#ref, complete, undefined);
    const record = known === "bytes_missing" ? await this.#keep(complete) : known;
    failpoint("content.row");
    if (typeof record === "string") throw await expired(this.#table, this.#ref);
    await this.#writer.abort();
    return record;
  }

  async #keep(row: ContentRow): Promise<ContentRecord | string> {
    const key = this.#options.newKey();
    const upload = await this.#table.begin(this.#ref, key);
    this.#upload = upload;
    await this.#writer.keep({ sessionId: this.#ref.sessionId, key }, async () => {
      if (!(await this.#table.touch(this.#ref, upload))) throw await expired(this.#table, this.#ref);
    });
    const record = await this.#table.commit(this.#ref, row, upload);
    this.#upload = undefined;
    // Another upload of the same bytes may have been first.
    await this.#options.drain();
    return record;
  }

  async abort(): Promise<void> {
    const upload = this.#upload;
    this.#upload = undefined;
    await this.#writer.abort();
    if (upload === undefined) return;
    try {
      await this.#table.cancel(this.#ref, upload);
      await this.#options.drain();
    } catch {
      // What can't be removed now expires.
    }
  }
}

/** Why an upload is not there any more: its branch is gone, or it was idle. */
async function expired(table: ContentTable, ref: BranchRef): Promise<BoughError> {
  await table.find(ref, "");
  return refuse.uploadExpired(ref);
}

function completeRow(row: NewContentRow, finished: { id: string; size: number } | undefined): ContentRow {
  if (!finished) throw new BoughError("invalid_argument", "An upload is committed after finish().");
  const { mediaType, name, info = {}, seq } = row;
  return { ...finished, mediaType, name, info, seq };
}

/** Cuts bytes into pieces of `chunkBytes`, each a copy. */
class Pieces {
  readonly #full: Uint8Array[] = [];
  #last: Uint8Array | undefined;
  #used = 0;

  /** Whether there is enough to be stored in one step. */
  get isFull(): boolean {
    return this.#full.length >= 4;
  }

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      this.#last ??= new Uint8Array(chunkBytes);
      const taken = Math.min(bytes.length - at, chunkBytes - this.#used);
      this.#last.set(bytes.subarray(at, at + taken), this.#used);
      this.#used += taken;
      at += taken;
      if (this.#used === chunkBytes) this.#next();
    }
  }

  takeFull(): Uint8Array[] {
    return this.#full.splice(0);
  }

  takeAll(): Uint8Array[] {
    if (this.#last && this.#used > 0) {
      this.#full.push(this.#last.slice(0, this.#used));
      this.#last = undefined;
      this.#used = 0;
    }
    return this.takeFull();
  }

  #next(): void {
    this.#full.push(this.#last!);
    this.#last = undefined;
    this.#used = 0;
  }
}
