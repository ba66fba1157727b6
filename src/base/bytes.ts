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

const base64Text = /^[A-Za-z0-9+/_-]*={0,2}$/;

/** The bytes that a base64 text stands for, in either alphabet; undefined for any other text. */
export function fromBase64(text: string): Uint8Array | undefined {
  const packed = /\s/.test(text) ? text.replace(/\s+/g, "") : text;
  if (!base64Text.test(packed) || packed.replace(/=+$/, "").length % 4 === 1) return undefined;
  if (globalThis.Buffer) return new Uint8Array(Buffer.from(packed, "base64"));
  return Uint8Array.from(atob(packed.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
}
