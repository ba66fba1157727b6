// The files of a branch in this process.

import { streamPieces } from "../base/byte-stream.ts";
import { BoughError } from "../base/errors.ts";
import type { BranchRef } from "../log/store.ts";
import { contentBody } from "../sessions/bodies.ts";
import type { NewContent, Sessions, StoredContent } from "../sessions/index.ts";
import { rangeOf } from "../wire/byte-range.ts";
import type { ContentHandle, DownloadOptions, Upload } from "../wire/index.ts";

type ContentSource = Pick<Sessions, "putContent" | "listContent" | "getContent" | "deleteContent">;

/** The files of a branch. */
export function localContent(sessions: ContentSource, scope: BranchRef): ContentHandle {
  const open = async (contentId: string, options: DownloadOptions): Promise<StoredContent> =>
    sessions.getContent(scope, contentId, { range: rangeOf(options) });
  return {
    put: async (bytes, options = {}) =>
      contentBody(await sessions.putContent(scope, { ...sourceOf(bytes), ...options, origin: "upload" })),
    list: async () => (await sessions.listContent(scope)).map(contentBody),
    async get(contentId, options = {}) {
      const pieces: Uint8Array<ArrayBuffer>[] = [];
      const stored = await open(contentId, options);
      for await (const piece of untilAborted(stored, options.signal)) pieces.push(piece as Uint8Array<ArrayBuffer>);
      return new Blob(pieces, { type: stored.content.mediaType });
    },
    stream: async (contentId, options = {}) =>
      streamPieces(untilAborted(await open(contentId, options), options.signal)),
    async delete(contentId) {
      if (await sessions.deleteContent(scope, contentId)) return;
      const sentence = `Branch "${scope.branchId}" has no content "${contentId}" of its own.`;
      throw new BoughError("content_not_found", sentence, { data: { ...scope, contentId } });
    },
  };
}

function sourceOf(bytes: Upload): Pick<NewContent, "bytes" | "blob" | "stream"> {
  if (bytes instanceof Uint8Array) return { bytes };
  return bytes instanceof Blob ? { blob: bytes } : { stream: bytes };
}

async function* untilAborted(
  pieces: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void> {
  signal?.throwIfAborted();
  for await (const piece of pieces) {
    yield piece;
    signal?.throwIfAborted();
  }
}
