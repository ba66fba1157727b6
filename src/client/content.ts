// The files of a branch over HTTP.

import { rangeOf } from "../wire/byte-range.ts";
import type { ContentHandle, DownloadOptions } from "../wire/handle.ts";
import { allPages } from "./all-pages.ts";
import { isRemoteError } from "./errors.ts";
import { type Http, path, type RequestOptions } from "./http.ts";
import { isWhole } from "./upload.ts";

/** The files of the branch at the path. */
export function remoteContent(http: Http, branchPath: string): ContentHandle {
  const all = `${branchPath}/content`;
  return {
    put(bytes, { name, signal, onProgress } = {}) {
      const headers = {
        "content-type": "application/octet-stream",
        ...(name !== undefined && { "x-filename": encodeURIComponent(name) }),
      };
      return http.json("POST", all, {
        ...{ bytes, headers },
        // Equal bytes are stored once.
        isRepeatable: isWhole(bytes),
        ...(signal && { signal }),
        ...(onProgress && { onProgress }),
      });
    },
    list: () => allPages(http, all, "content"),
    get: async (contentId, options = {}) =>
      http.bytes(all + path`/${contentId}`, requestOf(options)).catch(nothingAfterEnd(() => new Blob([]))),
    stream: async (contentId, options = {}) =>
      http.stream(all + path`/${contentId}`, requestOf(options)).catch(nothingAfterEnd(() => new Blob([]).stream())),
    delete: (contentId) => http.json("DELETE", all + path`/${contentId}`),
  };
}

function requestOf(options: DownloadOptions): RequestOptions {
  const { from, to } = rangeOf(options);
  const { signal } = options;
  const isPart = from > 0 || to !== undefined;
  const last = to === undefined ? "" : to - 1;
  return { ...(isPart && { headers: { range: `bytes=${from}-${last}` } }), ...(signal && { signal }) };
}

/** A part that begins after the end has no bytes; HTTP has a status for it. */
function nothingAfterEnd<T>(nothing: () => T): (error: unknown) => T {
  return (error) => {
    if (isRemoteError(error) && error.status === 416) return nothing();
    throw error;
  };
}
