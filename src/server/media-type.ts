// Detects media types by signature. No type that a browser would execute is in the list.

const signatures: readonly { readonly type: string; readonly at?: number; readonly bytes: string }[] = [
  { type: "image/png", bytes: "89504e470d0a1a0a" },
  { type: "image/jpeg", bytes: "ffd8ff" },
  { type: "image/gif", bytes: "474946383761" },
  { type: "image/gif", bytes: "474946383961" },
  { type: "image/bmp", bytes: "424d" },
  { type: "image/tiff", bytes: "49492a00" },
  { type: "image/tiff", bytes: "4d4d002a" },
  { type: "image/webp", at: 8, bytes: "57454250" },
  { type: "audio/wav", at: 8, bytes: "57415645" },
  { type: "image/avif", at: 4, bytes: "6674797061766966" },
  { type: "image/heic", at: 4, bytes: "6674797068656963" },
  { type: "audio/mp4", at: 4, bytes: "667479704d344120" },
  { type: "video/mp4", at: 4, bytes: "66747970" },
  { type: "video/webm", bytes: "1a45dfa3" },
  { type: "audio/mpeg", bytes: "494433" },
  { type: "audio/mpeg", bytes: "fffb" },
  { type: "audio/flac", bytes: "664c6143" },
  { type: "audio/ogg", bytes: "4f676753" },
  { type: "application/pdf", bytes: "255044462d" },
  { type: "application/zip", bytes: "504b0304" },
  { type: "application/gzip", bytes: "1f8b" },
];

/** The media type by the first bytes; `application/octet-stream` if unknown. */
export function mediaTypeOf(bytes: Uint8Array): string {
  const start = Array.from(bytes.subarray(0, 32), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const found = signatures.find(({ at = 0, bytes: signature }) => start.startsWith(signature, at * 2));
  return found?.type ?? "application/octet-stream";
}
