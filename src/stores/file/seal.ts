// A sealed document: ordinary JSON whose last member is the checksum of the text before it.

import { crc32 } from "node:zlib";

export function hex8(value: number): string {
  return value.toString(16).padStart(8, "0");
}

const sealPattern = /^,"crc32":"([0-9a-f]{8})"\}\n$/;
const sealLength = ',"crc32":"00000000"}\n'.length;

export function seal(document: object): Buffer {
  const body = Buffer.from(JSON.stringify(document).slice(0, -1));
  return Buffer.concat([body, Buffer.from(`,"crc32":"${hex8(crc32(body))}"}\n`)]);
}

/** The document, or undefined when a byte of it is not as it was written. */
export function unseal(bytes: Buffer): unknown {
  const at = bytes.length - sealLength;
  const match = sealPattern.exec(bytes.toString("latin1", Math.max(at, 0)));
  if (!match || hex8(crc32(bytes.subarray(0, at))) !== match[1]) return undefined;
  return JSON.parse(bytes.toString("utf8"));
}
