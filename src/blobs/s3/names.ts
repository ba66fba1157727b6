// How places are named in a bucket: `<prefix><session>/<key>`. Only letters, digits, "-" and "." stand for themselves, because
// URLs, XML and the services themselves treat other characters each in their own way.

import { createHash } from "node:crypto";
import type { BlobPlace } from "../../log/blobs.ts";

/** The longest segment that a session id is written out in: services that keep objects as files take 255 characters. */
const longest = 200;
const hashed = "..";

export function nameOf({ sessionId, key }: BlobPlace): string {
  const session = encode(sessionId);
  const folder =
    session.length <= longest ? session : `${hashed}${createHash("sha256").update(sessionId).digest("hex")}`;
  return `${folder}/${encode(key)}`;
}

/** The place that a name stands for. A session whose id is too long for a name is undefined: the object's metadata has it. */
export function placeOf(name: string): { sessionId: string | undefined; key: string } | undefined {
  const [folder = "", file = "", ...rest] = name.split("/");
  const [sessionId, key] = [decode(folder), decode(file)];
  if (key === undefined || rest.length > 0) return undefined;
  if (folder.startsWith(hashed)) return { sessionId: undefined, key };
  return sessionId === undefined ? undefined : { sessionId, key };
}

function encode(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return Array.from(bytes, (byte) => {
    const char = String.fromCharCode(byte);
    return /[A-Za-z0-9-]/.test(char) ? char : `.${byte.toString(16).padStart(2, "0")}`;
  }).join("");
}

function decode(name: string): string | undefined {
  if (!/^([A-Za-z0-9-]|\.[0-9a-f]{2})+$/.test(name)) return undefined;
  return new TextDecoder().decode(
    Buffer.from(
      name.replace(/[^.]|\.(..)/g, (char, byte) => byte ?? hexOf(char)),
      "hex",
    ),
  );
}

function hexOf(char: string): string {
  return char.charCodeAt(0).toString(16).padStart(2, "0");
}
