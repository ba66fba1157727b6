// The content part of the store port: rows that describe stored bytes, and the bytes themselves, which are only ever streamed.
//
//   Content-1. Bytes first, row last: a row is committed after its bytes are complete and durable, and nothing is visible before.
//   Content-2. Equal bytes of a session are stored once, whatever rows refer to them.
//   Content-3. An upload that is cut off leaves nothing visible; maintain() removes its remains.
//   Content-4. A branch sees its own rows, and an ancestor's that were made at or before the fork point. Siblings see nothing
//       of each other.
//   Content-5. Bytes are removed with the last row that refers to them, and not before.

import type { JsonObject } from "../base/json.ts";
import type { BranchRef } from "./branch-ref.ts";

/** Stored bytes as a store describes them. */
export interface ContentRecord {
  /** The SHA-256 of the bytes, in hexadecimal. */
  readonly id: string;
  readonly size: number;
  readonly mediaType: string;
  readonly name?: string;
  readonly createdAt: number;
  /** The branch that stored it. */
  readonly branchId: string;
  /** The newest sequence number of that branch when the row was made: forks from there on see it (Content-4). */
  readonly seq: number;
  /** What else is known about it; opaque to the store. */
  readonly info: JsonObject;
}

/** A row to commit. */
export interface NewContentRow {
  readonly mediaType: string;
  readonly name?: string | undefined;
  readonly info?: JsonObject | undefined;
  /** Records an earlier position than the branch's newest: for copies of a session. */
  readonly seq?: number | undefined;
}

/** Bytes from `from` up to, but not including, `to` (default: the end). Positions behind the end mean the end. */
export interface ByteRange {
  readonly from: number;
  readonly to?: number | undefined;
}

/**
 * An upload under way. Calls are made one after the other; each waits until the bytes before it are written, so a slow store
 * slows its source down. After a failure only `abort` may be called.
 */
export interface ContentWriter {
  /** Writes more bytes. They are the caller's again when the promise resolves. */
  add(chunk: Uint8Array): Promise<void>;
  /** Ends the bytes; returns their SHA-256 and their number. Nothing is visible yet. */
  finish(): Promise<{ readonly id: string; readonly size: number }>;
  /**
   * Makes the content visible on the branch, once its bytes are durable. A branch that has this content already keeps its row,
   * which is returned. `branch_not_found` when the branch is gone.
   */
  commit(row: NewContentRow): Promise<ContentRecord>;
  /** Removes what was written and not committed. May be called at any time, also twice; never rejects. */
  abort(): Promise<void>;
}

/** How a URL for direct downloads is made. */
export interface ContentUrlOptions {
  readonly expiresMs: number;
  readonly mediaType: string;
  readonly name?: string | undefined;
}

/** Where content can be downloaded, and until when. */
export interface ContentUrl {
  readonly url: string;
  readonly expiresAt: number;
}

/** Stores content: a row for each branch that has it, and its bytes once per session. */
export interface ContentStore {
  /** Begins an upload. `branch_not_found`. */
  write(ref: BranchRef): Promise<ContentWriter>;
  /** The row of the branch, or of its nearest ancestor that has one to see (Content-4). `branch_not_found`. */
  get(ref: BranchRef, contentId: string): Promise<ContentRecord | undefined>;
  /**
   * The bytes, in pieces of at most 1 MB. `branch_not_found`; `content_not_found`, also when it is deleted meanwhile;
   * `store_corrupt` when bytes are missing.
   */
  read(ref: BranchRef, contentId: string, range?: ByteRange): AsyncIterable<Uint8Array>;
  /** What the branch sees, oldest first, each id once. `branch_not_found`. */
  list(ref: BranchRef): Promise<readonly ContentRecord[]>;
  /** Applies a merge patch to the `info` of the row that the branch sees. `branch_not_found`, `content_not_found`. */
  update(ref: BranchRef, contentId: string, info: JsonObject): Promise<ContentRecord>;
  /** Removes the branch's own row, and the bytes with the last one. False if it had none. `branch_not_found`. */
  delete(ref: BranchRef, contentId: string): Promise<boolean>;
  /** How many bytes the session's content has, equal ones counted once. `session_not_found`. */
  usage(sessionId: string): Promise<number>;
  /** A URL for direct downloads by others, where the bytes are kept in a place that has such. */
  url?(ref: BranchRef, contentId: string, options: ContentUrlOptions): Promise<ContentUrl | undefined>;
}

/** The largest piece that `read` yields. */
export const largestPiece = 1024 * 1024;
/** How bytes are cut where they are kept in rows of a table. */
export const chunkBytes = 256 * 1024;
/** An upload that wrote nothing for this long is taken for one that was cut off. */
export const uploadExpiresMs = 60 * 60 * 1000;
