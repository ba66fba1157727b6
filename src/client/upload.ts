// Uploads: how bytes get to the server, and how far they are. A browser tells the progress of a request only through
// XMLHttpRequest, and sends streams over HTTP/2 only; everywhere else bytes are counted as `fetch` takes them.

import { readPieces } from "../base/byte-stream.ts";
import type { Upload } from "../wire/handle.ts";

/** What is used of an XMLHttpRequest. */
interface Xhr {
  readonly upload: { onprogress: ((event: { readonly loaded: number }) => void) | null };
  readonly status: number;
  readonly responseText: string;
  onload: (() => void) | null;
  onerror: (() => void) | null;
  onloadend: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getResponseHeader(name: string): string | null;
  send(body: Uint8Array | Blob): void;
  abort(): void;
}

export interface UploadRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Upload;
  readonly signal?: AbortSignal;
  /** Called with the number of bytes sent so far. */
  readonly onProgress?: (bytes: number) => void;
}

/** Makes the request. Rejects with `SourceError` if the bytes could not be read. */
export type Uploader = (url: string, request: UploadRequest) => Promise<Response>;

/** The bytes could not be read, or the caller's `onProgress` threw. Neither is the connection's fault. */
export class SourceError extends Error {}

/** As many bytes as are sent at once. */
const pieceBytes = 64 * 1024;

/** The uploader for this runtime. The caller's own `fetch` makes its uploads, too. */
export function findUploader(fetch: typeof globalThis.fetch, isOwn: boolean): Uploader {
  const { XMLHttpRequest: Xhr } = globalThis as { XMLHttpRequest?: new () => Xhr };
  if (!Xhr) return (url, request) => sendByFetch(fetch, url, request);
  return async (url, request) => {
    const bytes = isWhole(request.bytes) ? request.bytes : await collect(request);
    const whole = { ...request, bytes };
    return isOwn || !request.onProgress ? sendWhole(fetch, url, whole) : sendByXhr(new Xhr(), url, whole);
  };
}

/** Whether the bytes can be sent again. */
export function isWhole(bytes: Upload): bytes is Uint8Array | Blob {
  return bytes instanceof Uint8Array || bytes instanceof Blob;
}

async function sendByFetch(fetch: typeof globalThis.fetch, url: string, request: UploadRequest): Promise<Response> {
  const { bytes, onProgress, ...init } = request;
  if (isWhole(bytes) && !onProgress) return fetch(url, { ...init, body: bytes as Blob });
  const source = new Counted(request);
  try {
    return await fetch(url, { ...init, body: source.stream, duplex: "half" } as RequestInit);
  } catch (error) {
    throw source.failure ?? error;
  }
}

type WholeRequest = UploadRequest & { readonly bytes: Uint8Array | Blob };

async function sendWhole(fetch: typeof globalThis.fetch, url: string, request: WholeRequest): Promise<Response> {
  const { bytes, onProgress, ...init } = request;
  const answer = await fetch(url, { ...init, body: bytes as Blob });
  onProgress?.(bytes instanceof Uint8Array ? bytes.length : bytes.size);
  return answer;
}

function sendByXhr(xhr: Xhr, url: string, request: WholeRequest): Promise<Response> {
  const { method, headers, bytes, signal, onProgress } = request;
  return new Promise((resolve, reject) => {
    const abort = () => {
      xhr.abort();
      reject(signal?.reason);
    };
    xhr.open(method, url);
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = ({ loaded }) => onProgress?.(loaded);
    xhr.onerror = () => reject(new TypeError("the connection broke off"));
    xhr.onload = () => resolve(answerOf(xhr));
    xhr.onloadend = () => signal?.removeEventListener("abort", abort);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) return abort();
    xhr.send(bytes);
  });
}

function answerOf(xhr: Xhr): Response {
  const retryAfter = xhr.getResponseHeader("retry-after");
  const { status, responseText } = xhr;
  return new Response(responseText === "" ? null : responseText, {
    status,
    ...(retryAfter !== null && { headers: { "retry-after": retryAfter } }),
  });
}

/** All bytes of a stream, for a runtime that can't send one. */
async function collect({ bytes, signal }: UploadRequest): Promise<Blob> {
  const all: Uint8Array<ArrayBuffer>[] = [];
  const pieces = piecesOf(bytes);
  try {
    for (let next = await pieces.next(); !next.done; next = await pieces.next()) {
      signal?.throwIfAborted();
      all.push(next.value as Uint8Array<ArrayBuffer>);
    }
    return new Blob(all);
  } catch (error) {
    throw signal?.aborted ? signal.reason : new SourceError("The bytes could not be read.", { cause: error });
  } finally {
    await pieces.return();
  }
}

/** Bytes as a stream that counts what is taken from it, and that ends with the signal: `fetch` may read on regardless. */
class Counted {
  /** Why the bytes could not be read. */
  failure: SourceError | undefined;
  readonly stream: ReadableStream<Uint8Array>;

  constructor({ bytes, signal, onProgress }: UploadRequest) {
    const pieces = piecesOf(bytes);
    let sent = 0;
    const next = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      const { done, value } = await pieces.next();
      if (signal?.aborted) return;
      if (done) return controller.close();
      controller.enqueue(value);
      sent += value.length;
      onProgress?.(sent);
    };
    this.stream = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          const abort = () => {
            controller.error(signal?.reason);
            void pieces.return().catch(() => {});
          };
          signal?.addEventListener("abort", abort, { once: true });
        },
        pull: (controller) =>
          next(controller).catch((error: unknown) => {
            this.failure = new SourceError("The bytes could not be read.", { cause: error });
            throw error;
          }),
        cancel: async () => void (await pieces.return()),
      },
      { highWaterMark: 0 },
    );
  }
}

async function* piecesOf(bytes: Upload): AsyncGenerator<Uint8Array, void> {
  if (bytes instanceof Uint8Array) return yield* cut(bytes);
  const source = bytes instanceof Blob ? bytes.stream() : bytes;
  for await (const piece of "getReader" in source ? readPieces(source) : source) {
    if (!(piece instanceof Uint8Array)) throw new TypeError("A stream must yield Uint8Arrays.");
    yield* cut(piece);
  }
}

function* cut(bytes: Uint8Array): Generator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}
