import type { JsonObject } from "../base/json.ts";
import type { BlobPlace } from "./blobs.ts";
import type { BranchRef } from "./branch-ref.ts";
import type { ContentRecord } from "./content.ts";

/** A complete row on its way in. */
export interface ContentRow {
  readonly id: string;
  readonly size: number;
  readonly mediaType: string;
  readonly name: string | undefined;
  readonly info: JsonObject;
  readonly seq: number | undefined;
}

/** A row and where its bytes are: in this store under `bytes`, or outside at `key`. */
export interface FoundContent {
  readonly record: ContentRecord;
  readonly bytes: string;
  readonly key?: string | undefined;
}

/**
 * What a store keeps for ContentKeeper: rows, uploads under way, and the bytes themselves in chunks. Each call is one atomic
 * operation.
 */
export interface ContentTable {
  /** Notes an upload to a session of this branch; with `key`, its bytes go to that place outside. `branch_not_found`. */
  begin(ref: BranchRef, key: string | undefined): Promise<string>;
  /** Says that the upload goes on; false when it expired. */
  touch(ref: BranchRef, upload: string): Promise<boolean>;
  /** Stores chunks of an upload, the first as number `from`; false when it expired. Storing the same again changes nothing. */
  addChunks(ref: BranchRef, upload: string, from: number, chunks: readonly Uint8Array[]): Promise<boolean>;
  /** Ends the upload and removes its bytes; outside ones are noted as freed. */
  cancel(ref: BranchRef, upload: string): Promise<void>;
  /**
   * Stores a row and ends its upload. If the session has the bytes already, those of the upload are removed. Without an upload
   * the session must have them: otherwise it returns "bytes_missing". "upload_expired" when the upload is not there any more.
   */
  commit(
    ref: BranchRef,
    row: ContentRow,
    upload: string | undefined,
  ): Promise<ContentRecord | "bytes_missing" | "upload_expired">;
  find(ref: BranchRef, contentId: string): Promise<FoundContent | undefined>;
  /** The chunk with this number of the bytes; undefined when there is none. */
  readChunk(ref: BranchRef, bytes: string, chunk: number): Promise<Uint8Array | undefined>;
  list(ref: BranchRef): Promise<readonly ContentRecord[]>;
  update(ref: BranchRef, contentId: string, info: JsonObject): Promise<ContentRecord | undefined>;
  delete(ref: BranchRef, contentId: string): Promise<boolean>;
  usage(sessionId: string): Promise<number>;
  /** Ends uploads that were last touched before this time, as `cancel` does; returns how many. */
  expire(before: number): Promise<number>;
  /** Places whose bytes nothing refers to any more, of one session or of all; at most 100. */
  freed(sessionId: string | undefined): Promise<readonly BlobPlace[]>;
  /** The bytes of these places are removed. */
  forget(places: readonly BlobPlace[]): Promise<void>;
  /** Places that rows refer to. */
  places(): AsyncIterable<BlobPlace & { readonly size: number; readonly contentId: string }>;
}
