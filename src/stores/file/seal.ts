// A sealed document: ordinary JSON whose last member, `crc32`, is the checksum of the text before it. This form can't change:
// bough.json, which has the format's number, must be readable whatever the format.

import { crc32 } from "node:zlib";

export function hex8(value: number): string {
  return value.toString(16).padStart(8, "0");
}

const sealLength = ',"crc32":"00000000"}\n'.length;

function sealOf(body: Uint8Array): string {
  return `,"crc32":"${hex8(crc32(body))}"}\n`;
}

export function seal(document: object): Buffer {
  const body = Buffer.from(JSON.stringify(document).slice(0, -1));
  return Buffer.concat([body, Buffer.from(sealOf(body))]);
}

/** The document, or undefined when a byte of it is not as it was written. */
export function unseal(bytes: Buffer): unknown {
  const at = bytes.length - sealLength;
  if (at < 0 || bytes.toString("latin1", at) !== sealOf(bytes.subarray(0, at))) return undefined;
  return JSON.parse(bytes.toString("utf8"));
}
