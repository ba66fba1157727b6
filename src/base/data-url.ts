// Data URLs (RFC 2397): a media type and the bytes themselves, in a text.

import { fromBase64 } from "./bytes.ts";

/** The bytes of a data URL and the type it names; undefined for any other text, and for one that can't be decoded. */
export function readDataUrl(url: string): { readonly bytes: Uint8Array; readonly mediaType?: string } | undefined {
  if (!/^data:/i.test(url)) return undefined;
  const comma = url.indexOf(",");
  if (comma < 0) return undefined;
  const head = url.slice(5, comma);
  const body = url.slice(comma + 1);
  const mediaType = /^[^;,]+\/[^;,]+/.exec(head)?.[0].toLowerCase();
  const bytes = /;base64$/i.test(head) ? fromBase64(unescaped(body) ?? "") : encodeText(body);
  return bytes && { bytes, ...(mediaType !== undefined && { mediaType }) };
}

function encodeText(body: string): Uint8Array | undefined {
  const text = unescaped(body);
  return text === undefined ? undefined : new TextEncoder().encode(text);
}

function unescaped(text: string): string | undefined {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
