// Media types: by the first bytes, which can't be forged for what they identify, and by the ending of a file name for the kinds
// that have no signature. No type that a browser would execute is found by signature.

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

/** How many bytes a signature reaches into a file, at most. */
export const signatureBytes = 32;

/** The media type of bytes that nothing is known about. */
const unknownType = "application/octet-stream";

/** The media type by the first bytes; `application/octet-stream` if unknown. */
export function mediaTypeOf(bytes: Uint8Array): string {
  const start = Array.from(bytes.subarray(0, signatureBytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const found = signatures.find(({ at = 0, bytes: signature }) => start.startsWith(signature, at * 2));
  return found?.type ?? unknownType;
}

const office = "application/vnd.openxmlformats-officedocument";

const endings: Readonly<Record<string, string>> = {
  txt: "text/plain",
  log: "text/plain",
  md: "text/markdown",
  markdown: "text/markdown",
  csv: "text/csv",
  html: "text/html",
  htm: "text/html",
  xml: "application/xml",
  json: "application/json",
  pdf: "application/pdf",
  docx: `${office}.wordprocessingml.document`,
  pptx: `${office}.presentationml.presentation`,
  xlsx: `${office}.spreadsheetml.sheet`,
  odt: "application/vnd.oasis.opendocument.text",
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  wav: "audio/wav",
  mp3: "audio/mpeg",
  m4a: "audio/mp4",
  ogg: "audio/ogg",
  flac: "audio/flac",
  mp4: "video/mp4",
  webm: "video/webm",
};

/** The media type that a file's name suggests. */
export function mediaTypeByName(name: string | undefined): string | undefined {
  const ending = /\.([a-z0-9]{1,8})$/i.exec(name ?? "")?.[1]?.toLowerCase();
  return ending !== undefined && Object.hasOwn(endings, ending) ? endings[ending] : undefined;
}

/** Whether the type names one kind of file: not `image/*`, and not `image`. */
export function isFullType(mediaType: string | undefined): mediaType is string {
  return mediaType !== undefined && /^[^/*]+\/[^/*]+$/.test(mediaType);
}

/**
 * The media type of a file. What was said counts when it names one kind; then the signature; then the name, which alone tells
 * a text from a table, or a document from the archive that it is stored as.
 */
export function decideType(said: string | undefined, start: Uint8Array, name?: string): string {
  if (isFullType(said) && said !== unknownType) return said;
  const found = mediaTypeOf(start);
  const named = mediaTypeByName(name);
  if (found !== unknownType && found !== "application/zip") return found;
  return named ?? found;
}

/** The type that was stored, made exact by the name where signatures can't tell. */
export function refineType(mediaType: string, name: string | undefined): string {
  const isVague = mediaType === unknownType || mediaType === "application/zip";
  return (isVague ? mediaTypeByName(name) : undefined) ?? mediaType;
}

/** Whether the type matches a pattern: itself, `image/*`, `*` or `*\/*`. A type such as `image/*` matches what covers it. */
export function matchesType(pattern: string, mediaType: string): boolean {
  const [wanted, type] = [pattern.toLowerCase(), mediaType.toLowerCase().split(";")[0]!.trim()];
  if (wanted === "*" || wanted === "*/*" || wanted === type) return true;
  return wanted.endsWith("/*") && (type === wanted.slice(0, -2) || type.startsWith(wanted.slice(0, -1)));
}
