import { BoughError } from "../../base/errors.ts";
import { mediaTypeOf } from "../../base/media-type.ts";
import { contentBody } from "../../sessions/bodies.ts";
import { readBytes, streamBytes } from "../body.ts";
import { hasTag, readRange } from "../byte-range.ts";
import type { HeldBytes } from "../bytes.ts";
import { downloadBody } from "../download.ts";
import type { Exchange } from "../exchange.ts";
import { readFormFile } from "../multipart.ts";
import { byCreation, listAnswer, type PageQuery } from "../pages.ts";
import { Refusal } from "../refusal.ts";

export const contentHandlers = {
  async listContent({ tenant, ref, query, limits }: Exchange) {
    const items = (await tenant.sessions.listContent(ref)).map(contentBody);
    return listAnswer("content", { items, ...byCreation, order: "oldest" }, query as PageQuery, limits);
  },
  async uploadContent(exchange: Exchange) {
    const { tenant, ref, limits } = exchange;
    const held = exchange.holdBytes();
    try {
      const { pieces, name } = await readUpload(exchange, held);
      const { head, stream } = await peek(pieces);
      if (head.length === 0) throw new Refusal("invalid_argument", "There is no file in the request.");
      // A client's claim about the type proves nothing.
      const said = { mediaType: mediaTypeOf(head), ...(name !== undefined && { name }) };
      const upload = { stream, maxBytes: limits.uploadBytes, origin: "upload", ...said };
      return contentBody(await tenant.sessions.putContent(ref, upload));
    } finally {
      held.release();
    }
  },
  async downloadContent(exchange: Exchange) {
    const { tenant, ref, limits, request, writesStreams } = exchange;
    const contentId = exchange.param("contentId");
    const { content } = await tenant.sessions.getContent(ref, contentId);
    const etag = `"${content.id}"`;
    const base = { etag, "accept-ranges": "bytes", "cache-control": "private, no-cache" };
    if (hasTag(request.headers.get("if-none-match"), etag)) return new Response(null, { status: 304, headers: base });
    const ifRange = request.headers.get("if-range");
    const asked =
      ifRange === null || ifRange === etag ? readRange(request.headers.get("range"), content.size) : undefined;
    if (asked === "unsatisfiable") {
      const headers = { ...base, "content-range": `bytes */${content.size}` };
      return new Response(null, { status: 416, headers });
    }
    const range = asked ?? { from: 0, to: content.size };
    const held = exchange.holdBytes();
    held.take(Math.min(range.to - range.from, transitBytes));
    const body = downloadBody(await tenant.sessions.getContent(ref, contentId, { range }), {
      signal: request.signal,
      done: () => held.release(),
      ...(!writesStreams && { stalledMs: limits.stalledMs }),
    });
    return new Response(body, {
      status: asked ? 206 : 200,
      headers: {
        ...base,
        "content-type": content.mediaType,
        "content-length": String(range.to - range.from),
        "content-disposition": `attachment; filename*=UTF-8''${encodeName(content.name ?? content.id)}`,
        ...(asked && { "content-range": `bytes ${range.from}-${range.to - 1}/${content.size}` }),
      },
    });
  },
  async deleteContent(exchange: Exchange) {
    const { tenant, ref } = exchange;
    const contentId = exchange.param("contentId");
    if (await tenant.sessions.deleteContent(ref, contentId)) return;
    throw new BoughError("content_not_found", `Branch "${ref.branchId}" does not own content "${contentId}".`, {
      data: { ...ref, contentId },
    });
  },
};

/** What an upload or a download that is streamed holds at most, and so what it counts for. */
const transitBytes = 1024 * 1024;
/** A form is read whole before its file is stored. */
const formBytes = 20 * 1024 * 1024;

async function readUpload(
  { request, limits }: Exchange,
  held: HeldBytes,
): Promise<{ pieces: AsyncIterable<Uint8Array>; name?: string }> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^multipart\//i.test(type)) {
    const name = named(decodeName(request.headers.get("x-filename") ?? ""));
    return { pieces: streamBytes(request, { limit: limits.uploadBytes, held, heldBytes: transitBytes }), ...name };
  }
  const bytes = await readBytes(request, Math.min(limits.uploadBytes, formBytes), held);
  const file = readFormFile(bytes, type);
  return { pieces: only(file.bytes), ...named(file.fileName) };
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** As many first bytes as tell a file's type. */
const headBytes = 64;

/** The first bytes of a stream, and the stream with them. */
async function peek(
  pieces: AsyncIterable<Uint8Array>,
): Promise<{ head: Uint8Array; stream: AsyncIterable<Uint8Array> }> {
  const source = pieces[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let size = 0;
  while (size < headBytes) {
    const { done, value } = await source.next();
    if (done) break;
    first.push(value);
    size += value.length;
  }
  const head = new Uint8Array(Math.min(size, headBytes));
  let at = 0;
  for (const piece of first) {
    head.set(piece.subarray(0, head.length - at), at);
    at = Math.min(head.length, at + piece.length);
  }
  const stream = (async function* () {
    try {
      yield* first;
      yield* { [Symbol.asyncIterator]: () => source };
    } finally {
      await source.return?.();
    }
  })();
  return { head, stream };
}

/** Control, direction and zero-width characters: they make a name look like another ("\u202egnp.exe"). */
const notInNames =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udfff]/gu;
/** How many characters of a name are used. */
const nameLength = 1024;

/** A file name without its path; undefined if nothing of it can be shown. */
function named(given: string): { name?: string } {
  const last = given.slice(-nameLength).split(/[/\\]/).at(-1)!.replace(notInNames, "");
  const name = [...last].slice(0, 255).join("");
  return name === "" ? {} : { name };
}

function encodeName(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
}

function decodeName(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw new Refusal("invalid_argument", "The file name in the `x-filename` header is not valid.");
  }
}
