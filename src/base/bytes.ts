// Texts and bytes: by Node's buffers where there are any, because they are faster, and by what every platform has elsewhere.

const encoder = new TextEncoder();

/** How many bytes a text has in UTF-8. */
export function utf8Length(text: string): number {
  return globalThis.Buffer ? Buffer.byteLength(text) : encoder.encode(text).length;
}

/** Bytes as base64. */
export function base64(bytes: Uint8Array): string {
  if (globalThis.Buffer) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** The same as it stands in a URL: without padding. */
export function base64url(bytes: Uint8Array): string {
  return base64(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
