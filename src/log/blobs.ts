// Blobs: the port of an object store that keeps the bytes of content for another store, which keeps the rows.
//
//   Blobs-1. A place is used once: the store draws a new one for every upload. So bytes at a place never change, and removing a
//       place can't hit bytes that somebody else has just stored.
//   Blobs-2. keep() resolves when the bytes are durable. Until then nothing can be read at the place.

import type { ByteRange, ContentUrl, ContentUrlOptions } from "./content.ts";

/** Where bytes are kept: the session they belong to and a key drawn for this upload. */
export interface BlobPlace {
  readonly sessionId: string;
  readonly key: string;
}

/** Bytes on their way to an object store. */
export interface BlobWriter {
  /** Takes more bytes. They are the caller's again when the promise resolves. */
  add(chunk: Uint8Array): Promise<void>;
  /** Ends the bytes; returns their SHA-256 in hexadecimal and their number. Nothing has to be sent yet. */
  finish(): Promise<{ readonly id: string; readonly size: number }>;
  /** Stores the bytes at the place (Blobs-2). Calls `onProgress` at least every few minutes while it takes. May be tried again. */
  keep(place: BlobPlace, onProgress: () => Promise<void>): Promise<void>;
  /** Drops what is held for the upload; does not remove what was kept. Never rejects. */
  abort(): Promise<void>;
}

/** Keeps bytes outside the store that has their rows, for example in S3. */
export interface Blobs {
  write(): Promise<BlobWriter>;
  /** The bytes at a place; throws `content_not_found` when there are none. */
  read(place: BlobPlace, range?: ByteRange): AsyncIterable<Uint8Array>;
  /** Removes the bytes at a place; resolves also when there are none. */
  remove(place: BlobPlace): Promise<void>;
  /** Every place with its size, in any order. */
  list(): AsyncIterable<BlobPlace & { readonly size: number }>;
  /** A URL from which the bytes can be downloaded without credentials until it expires. */
  url?(place: BlobPlace, options: ContentUrlOptions): Promise<ContentUrl | undefined>;
}
