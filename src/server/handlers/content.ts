import { BoughError } from "../../base/errors.ts";
import { contentBody } from "../../sessions/bodies.ts";
import { readBytes } from "../body.ts";
import type { HeldBytes } from "../bytes.ts";
import { downloadBody } from "../download.ts";
import type { Exchange } from "../exchange.ts";
import { mediaTypeOf } from "../media-type.ts";
import { readFormFile } from "../multipart.ts";
import { Refusal } from "../refusal.ts";

export const contentHandlers = {
  async listContent({ tenant, ref }: Exchange) {
    return { content: (await tenant.sessions.listContent(ref)).map(contentBody) };
  },
  async uploadContent(exchange: Exchange) {
    const { tenant, ref } = exchange;
    const held = exchange.holdBytes();
    try {
      const { bytes, name } = await readUpload(exchange, held);
      if (bytes.length === 0) throw new Refusal("invalid_argument", "There is no file in the request.");
      // A client's claim about the type proves nothing.
      const upload = { bytes, mediaType: mediaTypeOf(bytes), ...(name !== undefined && { name }) };
      return contentBody(await tenant.sessions.putContent(ref, upload));
    } finally {
      held.release();
    }
  },
  async downloadContent(exchange: Exchange) {
    const { tenant, ref, limits, request, writesStreams } = exchange;
    const contentId = exchange.param("contentId");
    const held = exchange.holdBytes();
    const { content, bytes } = await held.load(() => tenant.sessions.getContent(ref, contentId));
    const body = downloadBody(bytes, {
      signal: request.signal,
      done: () => held.release(),
      ...(!writesStreams && { stalledMs: limits.stalledMs }),
    });
    return new Response(body, {
      headers: {
        "content-type": content.mediaType,
        "content-length": String(bytes.length),
        "content-disposition": `attachment; filename*=UTF-8''${encodeName(content.name ?? content.id)}`,
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

async function readUpload(
  { request, limits }: Exchange,
  held: HeldBytes,
): Promise<{ bytes: Uint8Array; name?: string }> {
  const type = request.headers.get("content-type") ?? "";
  const bytes = await readBytes(request, limits.uploadBytes, held);
  if (!/^multipart\//i.test(type)) {
    return { bytes, ...named(decodeName(request.headers.get("x-filename") ?? "")) };
  }
  const file = readFormFile(bytes, type);
  return { bytes: file.bytes, ...named(file.fileName) };
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
