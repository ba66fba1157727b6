// The bytes of a file part in whatever form they were passed.

import { fromBase64 } from "../base/bytes.ts";
import { readDataUrl } from "../base/data-url.ts";

/** What a file part holds: bytes, an address, or something that has no bytes here. */
export type GivenFile =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array; readonly mediaType?: string }
  | { readonly kind: "stream"; readonly stream: AsyncIterable<Uint8Array>; readonly mediaType?: string }
  | { readonly kind: "url"; readonly url: string }
  /** A provider's own reference, or a text. */
  | { readonly kind: "none" }
  /** Nothing that a file could be made of. */
  | { readonly kind: "wrong" };

const wrong: GivenFile = { kind: "wrong" };

/** Reads the `data` of a file part. */
export function readGiven(data: unknown): GivenFile {
  if (typeof data === "string") return ofText(data);
  if (data instanceof URL) return ofText(data.href);
  const bytes = ofBinary(data);
  if (bytes) return bytes;
  const { type, data: inner, url } = Object(data) as { type?: unknown; data?: unknown; url?: unknown };
  switch (type) {
    case "data":
      return typeof inner === "string" ? ofBase64(inner) : (ofBinary(inner) ?? wrong);
    case "url":
      return typeof url === "string" || url instanceof URL ? ofText(String(url)) : wrong;
    case "text":
    case "reference":
      return { kind: "none" };
    default:
      return wrong;
  }
}

function ofBinary(data: unknown): GivenFile | undefined {
  if (data instanceof Uint8Array) return { kind: "bytes", bytes: data };
  if (data instanceof ArrayBuffer) return { kind: "bytes", bytes: new Uint8Array(data) };
  if (ArrayBuffer.isView(data)) {
    return { kind: "bytes", bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
  }
  if (typeof data !== "object" || data === null) return undefined;
  if (globalThis.Blob && data instanceof Blob) {
    const stream = data.stream() as unknown as AsyncIterable<Uint8Array>;
    return { kind: "stream", stream, ...(data.type !== "" && { mediaType: data.type }) };
  }
  return Symbol.asyncIterator in data ? { kind: "stream", stream: data as AsyncIterable<Uint8Array> } : undefined;
}

/** An address with a scheme, a data URL, or base64. */
function ofText(text: string): GivenFile {
  if (/^data:/i.test(text)) {
    const read = readDataUrl(text);
    return read ? { kind: "bytes", ...read } : wrong;
  }
  return /^[a-z][a-z0-9+.-]*:/i.test(text) ? { kind: "url", url: text } : ofBase64(text);
}

function ofBase64(text: string): GivenFile {
  const bytes = text === "" ? undefined : fromBase64(text);
  return bytes ? { kind: "bytes", bytes } : wrong;
}

/** The first bytes of a stream, and the stream from its beginning. */
export async function peekBytes(
  stream: AsyncIterable<Uint8Array>,
  count: number,
): Promise<{ readonly start: Uint8Array; readonly stream: AsyncIterable<Uint8Array> }> {
  const iterator = stream[Symbol.asyncIterator]();
  const seen: Uint8Array[] = [];
  let size = 0;
  while (size < count) {
    const { done, value } = await iterator.next();
    if (done) break;
    // A copy: the source may fill the same memory again.
    seen.push(new Uint8Array(value));
    size += value.length;
  }
  const start = new Uint8Array(size);
  let at = 0;
  for (const piece of seen) {
    start.set(piece, at);
    at += piece.length;
  }
  return { start: start.subarray(0, count), stream: rejoin(start, iterator) };
}

async function* rejoin(start: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    if (start.length > 0) yield start;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}
