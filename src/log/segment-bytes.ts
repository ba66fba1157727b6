// Lines of a segment as bytes, for stores that keep them packed: a head that says how to read the body, and the body, which a
// store deflates as it likes.

import { isWellFormed } from "../base/json.ts";

// UTF-8 can't hold a lone surrogate.
const encodings = ["utf8", "utf16le"] as const;

/** One byte for the encoding, four for the length of the body, so that inflating needs one buffer of the right size. */
export const headSize = 5;

export function encodeLines(lines: readonly string[]): { head: Buffer; body: Buffer } {
  const text = lines.join("\n");
  const which = isWellFormed(text) ? 0 : 1;
  const body = Buffer.from(text, encodings[which]);
  const head = Buffer.alloc(headSize);
  head.writeUInt8(which);
  head.writeUInt32LE(body.length, 1);
  return { head, body };
}

/** How many bytes the body has when it is inflated. */
export function bodySize(packed: Buffer): number {
  return packed.readUInt32LE(1);
}

/** Throws when this is not the body that the head speaks of. */
export function decodeLines(packed: Buffer, body: Buffer): string[] {
  if (body.length !== bodySize(packed)) throw new Error("the length differs");
  const encoding = encodings[packed.readUInt8()]!;
  return encoding === "utf8" ? splitLines(body) : body.toString(encoding).split("\n");
}

/** Line by line out of the bytes: strings of this size are cheap, one of the whole text is not. */
export function splitLines(bytes: Buffer): string[] {
  const lines: string[] = [];
  for (let start = 0; start <= bytes.length; ) {
    const end = bytes.indexOf(10, start);
    lines.push(bytes.toString("utf8", start, end < 0 ? bytes.length : end));
    start = end < 0 ? bytes.length + 1 : end + 1;
  }
  return lines;
}
