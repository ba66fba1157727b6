// Content: bytes stored once per session under their hash, visible to a branch and to forks made from then on. Bytes are
// streamed: no step holds more than a few pieces of them.

import { readPieces } from "../base/byte-stream.ts";
import { BoughError } from "../base/errors.ts";
import { encodeJson, type JsonObject, metadataLimits } from "../base/json.ts";
import { mediaTypeOf, signatureBytes } from "../base/media-type.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import type { BranchRef } from "../log/branch-ref.ts";
import { type ByteRange, type ContentRecord, type ContentUrl, largestPiece } from "../log/content.ts";
import { needContent } from "../log/need-content.ts";
import { refuse } from "../log/refusals.ts";
import { resolveBranch } from "./branches.ts";
import type { Context, Scope } from "./context.ts";

/** The address of stored content, as messages refer to it. */
export type ContentUri = `bough-content://${string}`;

/** What can be noted about content beside its type and name. */
export interface ContentDetails {
  /** Where it came from, such as `"upload"`, `"tool"`, `"model"` or `"derived"`. */
  readonly origin?: string;
  /** For derived content: the id of what it was made from. */
  readonly of?: string;
  readonly tags?: readonly string[];
  /** The contents that are texts of it, by the type as which it was read. */
  readonly texts?: Readonly<Record<string, string>>;
  /** What providers know it by, such as file ids. Never part of the log. */
  readonly provider?: JsonObject;
}

/** Details to change; null removes one. */
export type ContentPatch = { readonly [Key in keyof ContentDetails]?: ContentDetails[Key] | null };

/** Stored bytes as messages refer to them. */
export interface Content extends Omit<ContentRecord, "info">, ContentDetails {
  readonly uri: ContentUri;
}

/** Bytes that arrive piece by piece. */
export type ByteStream = AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>;

/** Bytes to store (one of `bytes`, `blob` and `stream`), and what they are. */
export interface NewContent extends ContentDetails {
  readonly bytes?: Uint8Array;
  readonly blob?: Blob;
  readonly stream?: ByteStream;
  /** Default: by the signature of the bytes, or `application/octet-stream`. */
  readonly mediaType?: string;
  readonly name?: string;
  /** Ends the upload; nothing of it is kept. */
  readonly signal?: AbortSignal;
  /** Called with the number of bytes stored so far. */
  readonly onProgress?: (bytes: number) => void;
  /** The largest size, in bytes, instead of the configured one. */
  readonly maxBytes?: number;
}

/** Content to be read, once or several times. Iterate over it to stream its bytes. */
export interface StoredContent extends AsyncIterable<Uint8Array> {
  readonly content: Content;
  /** All bytes of the range at once. */
  bytes(): Promise<Uint8Array>;
}

const newContentKeys = optionKeys<NewContent>({
  bytes: true,
  blob: true,
  stream: true,
  mediaType: true,
  name: true,
  origin: true,
  of: true,
  tags: true,
  texts: true,
  provider: true,
  signal: true,
  onProgress: true,
  maxBytes: true,
});
const detailKeys = optionKeys<ContentDetails>({ origin: true, of: true, tags: true, texts: true, provider: true });
const rangeKeys = optionKeys<{ range: ByteRange }>({ range: true });
const largestInfo = 16 * 1024;

export async function putContent(context: Context, scope: Scope, content: NewContent): Promise<Content> {
  checkOptions("The options of putContent", content, newContentKeys);
  const { mediaType, name, signal } = content;
  checkTexts(mediaType, name);
  const info = infoOf(content);
  // Before anything is waited for: the caller may use its bytes for something else.
  const pieces = sourceOf(content);
  signal?.throwIfAborted();
  const ref = await resolveBranch(context, scope);
  const store = needContent(context.store);
  const limit = await limitOf(context, ref, content.maxBytes);
  const writer = await store.write(ref);
  try {
    let size = 0;
    let head = new Uint8Array(0);
    for await (const piece of untilAborted(pieces, signal)) {
      if (!(piece instanceof Uint8Array)) throw new BoughError("invalid_argument", "A stream must yield Uint8Arrays.");
      size += piece.length;
      if (size > limit.bytes) throw refuse.contentTooLarge(limit.bytes, limit.what);
      if (head.length < signatureBytes) head = joined(head, piece.subarray(0, signatureBytes - head.length));
      await writer.add(piece);
      content.onProgress?.(size);
    }
    await writer.finish();
    signal?.throwIfAborted();
    const record = await writer.commit({ mediaType: mediaType ?? mediaTypeOf(head), name, info });
    context.contentUsage.add(record.size);
    return toContent(record);
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

export async function getContent(
  context: Context,
  scope: Scope,
  idOrUri: string,
  options: { range?: ByteRange } = {},
): Promise<StoredContent> {
  checkOptions("The options of getContent", options, rangeKeys);
  const { range } = options;
  if (range) checkRange(range);
  const ref = await resolveBranch(context, scope);
  const id = contentId(idOrUri);
  const store = needContent(context.store);
  const record = await store.get(ref, id);
  if (!record) throw refuse.contentNotFound(ref, id);
  const content = toContent(record);
  return {
    content,
    bytes: () => collect(store.read(ref, id, range), record.size),
    [Symbol.asyncIterator]: () => store.read(ref, id, range)[Symbol.asyncIterator](),
  };
}

/** What is stored under an id that the branch sees; `content_not_found`. */
export async function findContent(context: Context, ref: BranchRef, id: string): Promise<Content> {
  return (await getContent(context, ref, id)).content;
}

/** All bytes of content that the branch sees; `content_not_found`. */
export async function readContent(context: Context, ref: BranchRef, id: string): Promise<Uint8Array> {
  return (await getContent(context, ref, id)).bytes();
}

export async function listContent(context: Context, scope: Scope): Promise<Content[]> {
  const ref = await resolveBranch(context, scope);
  return (await needContent(context.store).list(ref)).map(toContent);
}

export async function deleteContent(context: Context, scope: Scope, idOrUri: string): Promise<boolean> {
  const ref = await resolveBranch(context, scope);
  const isDeleted = await needContent(context.store).delete(ref, contentId(idOrUri));
  if (isDeleted) context.contentUsage.forget();
  return isDeleted;
}

/** Merges details into those of the content; null removes one. */
export async function updateContent(
  context: Context,
  scope: Scope,
  idOrUri: string,
  patch: ContentPatch,
): Promise<Content> {
  checkOptions("The patch of updateContent", patch, detailKeys);
  const ref = await resolveBranch(context, scope);
  const info = encodeInfo(patch as JsonObject);
  return toContent(await needContent(context.store).update(ref, contentId(idOrUri), info));
}

/** A URL for direct downloads; undefined where the store has none. */
export async function contentUrl(
  context: Context,
  scope: Scope,
  idOrUri: string,
  { expiresMs = 60 * 60 * 1000 }: { expiresMs?: number } = {},
): Promise<ContentUrl | undefined> {
  const ref = await resolveBranch(context, scope);
  const store = needContent(context.store);
  const id = contentId(idOrUri);
  const record = await store.get(ref, id);
  if (!record) throw refuse.contentNotFound(ref, id);
  const { mediaType, name } = record;
  return store.url?.(ref, id, { expiresMs, mediaType, name });
}

/** How many bytes a file may have, and what says so. */
async function limitOf(context: Context, { sessionId }: BranchRef, maxBytes: number | undefined) {
  const { fileBytes, sessionBytes, totalBytes } = context.contentLimits;
  let limit = { bytes: maxBytes ?? fileBytes, what: "An upload" };
  const bound = (bytes: number, what: string) => {
    if (bytes < limit.bytes) limit = { bytes: Math.max(0, bytes), what };
  };
  if (Number.isFinite(sessionBytes)) {
    bound(sessionBytes - (await needContent(context.store).usage(sessionId)), "What is left for the session");
  }
  if (Number.isFinite(totalBytes))
    bound(totalBytes - (await context.contentUsage.bytes()), "What is left for all sessions");
  return limit;
}

function sourceOf({ bytes, blob, stream }: NewContent): AsyncIterable<Uint8Array> {
  if ([bytes, blob, stream].filter((each) => each !== undefined).length !== 1) {
    throw new BoughError("invalid_argument", "Content must be given as one of bytes, blob and stream.");
  }
  if (bytes !== undefined) {
    if (!(bytes instanceof Uint8Array)) throw new BoughError("invalid_argument", "bytes must be a Uint8Array.");
    return piecesOf(new Uint8Array(bytes));
  }
  if (blob !== undefined) {
    if (!(blob instanceof Blob)) throw new BoughError("invalid_argument", "blob must be a Blob.");
    return readPieces(blob.stream());
  }
  if (typeof (stream as ReadableStream).getReader === "function")
    return readPieces(stream as ReadableStream<Uint8Array>);
  if (typeof (stream as AsyncIterable<Uint8Array>)[Symbol.asyncIterator] === "function")
    return stream as AsyncIterable<Uint8Array>;
  throw new BoughError("invalid_argument", "stream must be a ReadableStream or an async iterable of Uint8Arrays.");
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += largestPiece) yield bytes.subarray(at, at + largestPiece);
}

/** Passes pieces on; rejects as soon as the signal aborts, also while a piece is waited for, and lets go of the source. */
async function* untilAborted(
  pieces: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  if (!signal) return yield* pieces;
  const iterator = pieces[Symbol.asyncIterator]();
  let stop: () => void = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
  });
  aborted.catch(() => {});
  let isDone = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await Promise.race([iterator.next(), aborted]);
      isDone = next.done === true;
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    // Not waited for: a source that hangs would hang the caller, too.
    if (!isDone) void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

async function collect(pieces: AsyncIterable<Uint8Array>, most: number): Promise<Uint8Array> {
  const all: Uint8Array[] = [];
  let size = 0;
  for await (const piece of pieces) {
    all.push(piece);
    size += piece.length;
  }
  const bytes = new Uint8Array(Math.min(size, most));
  let at = 0;
  for (const piece of all) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

function checkTexts(mediaType: unknown, name: unknown): void {
  for (const said of [mediaType, name]) {
    if (said === undefined) continue;
    if (typeof said !== "string") throw new BoughError("invalid_argument", "mediaType and name must be strings.");
    encodeJson(said, "A content's mediaType or name", metadataLimits);
  }
}

function checkRange({ from, to }: ByteRange): void {
  const isPosition = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  if (isPosition(from) && (to === undefined || (isPosition(to) && to >= from))) return;
  throw new BoughError("invalid_argument", "range must be { from, to } with integers, 0 ≤ from ≤ to.");
}

function infoOf({ origin, of, tags, texts, provider }: ContentDetails): JsonObject {
  const given = Object.entries({ origin, of, tags, texts, provider }).filter(([, value]) => value !== undefined);
  return encodeInfo(Object.fromEntries(given) as JsonObject);
}

/** A copy, checked. */
function encodeInfo(info: JsonObject): JsonObject {
  const text = encodeJson(info, "What is noted about content", metadataLimits);
  if (text.length > largestInfo) {
    throw new BoughError("limit_exceeded", `What is noted about content can have at most ${largestInfo} characters.`);
  }
  return JSON.parse(text) as JsonObject;
}

function toContent({ info, ...record }: ContentRecord): Content {
  return { ...(info as ContentDetails), ...record, uri: `bough-content://sha256/${record.id}` };
}

function contentId(idOrUri: string): string {
  const id = String(idOrUri).replace(/^bough-content:\/\/sha256\//, "");
  if (/^[0-9a-f]{64}$/.test(id)) return id;
  throw new BoughError("invalid_argument", `"${idOrUri}" is not a content id.`, { data: { contentId: idOrUri } });
}
