// The parts of a content output. The AI SDK has several names for a file that a tool gives back; the provider
// specification has one, with tagged data. Bytes become base64, because the log is JSON.

import { base64 } from "../base/bytes.ts";

/** The part in the shape of the provider specification; parts other than files stay unchanged. */
export function contentPart(part: unknown): unknown {
  const named = asFilePart(part);
  const { type, ...rest } = Object(named) as Record<string, unknown>;
  return type === "file" ? { ...rest, type, data: fileData(rest.data) } : named;
}

/** A file under the specification's name for it; its data stays as it is, and so do all other parts. */
export function asFilePart(part: unknown): unknown {
  const { type, ...rest } = Object(part) as Record<string, unknown>;
  switch (type) {
    case "media":
    case "file-data":
    case "image-data":
      return { ...rest, type: "file" };
    case "file-url":
    case "image-url":
      return urlPart(type, rest);
    case "file-reference":
      return referencePart(rest, "providerReference");
    case "file-id":
    case "image-file-id":
      return typeof rest.fileId === "object" ? referencePart(rest, "fileId") : part;
    default:
      return part;
  }
}

function urlPart(type: "file-url" | "image-url", { url, ...rest }: Record<string, unknown>) {
  const mediaType = type === "image-url" ? "image/*" : "application/octet-stream";
  return { mediaType, ...rest, type: "file", data: { type: "url", url: String(url) } };
}

function referencePart(part: Record<string, unknown>, key: string) {
  const { [key]: reference, ...rest } = part;
  return { mediaType: "application/octet-stream", ...rest, type: "file", data: { type: "reference", reference } };
}

function fileData(data: unknown): unknown {
  if (typeof data === "string") return { type: "data", data };
  if (data instanceof Uint8Array) return { type: "data", data: base64(data) };
  if (data instanceof URL) return { type: "url", url: data.href };
  const { type, ...rest } = Object(data) as Record<string, unknown>;
  if (type === "data" && rest.data instanceof Uint8Array) return fileData(rest.data);
  return type === "url" ? { type, url: String(rest.url) } : data;
}
