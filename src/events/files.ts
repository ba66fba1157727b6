// Files in messages. In the log a file is a reference to stored content, in the shape that the provider specification has for
// files with an address; what callers and tools may pass in its place is described here and stored at the doors
// (sessions/files.ts).

import type { Json, JsonObject } from "../base/json.ts";
import type { Message, Part, ToolOutput, ToolResultPart } from "./message.ts";

/** Bytes as a caller has them. A string is base64, or a data URL. */
export type FileBytes =
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>
  | string;

/** A file on its way in: its bytes in any form, an address, or a reference to content that is stored already. */
export interface FileInput {
  readonly type: "file";
  readonly data:
    | FileBytes
    | URL
    | { readonly type: "data"; readonly data: FileBytes }
    | { readonly type: "url"; readonly url: string | URL }
    | { readonly type: "text"; readonly text: string }
    | { readonly type: "reference"; readonly reference: JsonObject };
  /** By default that of the bytes, or of the name's ending. */
  readonly mediaType?: string;
  readonly filename?: string;
  readonly providerOptions?: JsonObject;
}

/** A part of a message on its way in. */
export type InputPart = Part | FileInput;

/** A file as the log has it. */
export interface FilePart {
  readonly type: "file" | "reasoning-file";
  readonly mediaType: string;
  readonly filename?: string;
  readonly data: JsonObject & { readonly type: string };
  readonly providerOptions?: JsonObject;
}

const scheme = "bough-content:";
const address = /^bough-content:\/\/sha256\/([0-9a-f]{64})$/;

/** How messages refer to stored content. */
function contentUrl(id: string): `bough-content://${string}` {
  return `bough-content://sha256/${id}`;
}

/** The id in a reference to stored content. */
export function contentIdIn(url: unknown): string | undefined {
  return typeof url === "string" ? address.exec(url)?.[1] : undefined;
}

/** Whether the text has the scheme of stored content, well formed or not. */
export function hasContentScheme(url: unknown): boolean {
  return typeof url === "string" && url.slice(0, scheme.length).toLowerCase() === scheme;
}

/** The part that refers to stored content. */
export function fileReference(file: {
  readonly id: string;
  readonly mediaType: string;
  readonly filename?: string | undefined;
  /** Where it was fetched from. */
  readonly originalUrl?: string | undefined;
}): FilePart {
  const { id, mediaType, filename, originalUrl } = file;
  const url = { type: "url", url: contentUrl(id), ...(originalUrl !== undefined && { originalUrl }) };
  return { type: "file", mediaType, ...(filename !== undefined && { filename }), data: url };
}

export function isFilePart(part: unknown): part is FilePart {
  const { type } = Object(part) as { type?: unknown };
  return type === "file" || type === "reasoning-file";
}

/** The id of the stored content that a file refers to. */
export function contentIdOf(file: Pick<FilePart, "data">): string | undefined {
  const data = Object(file.data) as { type?: unknown; url?: unknown };
  return data.type === "url" ? contentIdIn(data.url) : undefined;
}

/** The files of a message: its own, and those that its tools returned. */
export function filesOf({ content }: Pick<Message, "content">): FilePart[] {
  if (typeof content === "string") return [];
  return content.flatMap((part): readonly unknown[] => (isFilePart(part) ? [part] : itemsOf(part))).filter(isFilePart);
}

function itemsOf(part: Part): readonly Json[] {
  if (part.type !== "tool-result") return [];
  const { type, value } = part.output as ToolOutput & { value?: Json };
  return type === "content" && Array.isArray(value) ? value : [];
}

/** What the note in a long output says that was stored as a file. */
const wholeOutput = /read_file\(\{ id: "([0-9a-f]{64})"/;

/**
 * One line for each file of a part that has an address: its name, its type and where it is. Stored content is named by its id,
 * which the tool `read_file` takes.
 */
export function describeFiles(part: Part): string[] {
  const files = isFilePart(part) ? [part] : itemsOf(part).filter((item) => Object(item).type !== "text");
  const lines = files.map((file) => describeFile(Object(file)));
  const whole = part.type === "tool-result" ? describeWhole(part as ToolResultPart) : "";
  return [...lines, whole].filter((line) => line !== "");
}

function describeWhole({ toolName, output }: ToolResultPart): string {
  const { type, value } = output as { type?: unknown; value?: unknown };
  const id = type === "text" && typeof value === "string" ? wholeOutput.exec(value)?.[1] : undefined;
  return id === undefined ? "" : `whole output of ${toolName}: id ${id}`;
}

/** Bytes inside the message have no address, and a provider's own reference means nothing to a model. */
function describeFile({
  mediaType,
  filename,
  data,
}: {
  mediaType?: unknown;
  filename?: unknown;
  data?: unknown;
}): string {
  const url = typeof data === "string" ? data : (Object(data) as { url?: unknown }).url;
  if (typeof url !== "string" || !/^[a-z][a-z0-9+.-]*:\/\//i.test(url)) return "";
  const about = [filename, mediaType].filter((each) => typeof each === "string");
  const id = contentIdIn(url);
  const where = id === undefined ? url : `id ${id}`;
  return about.length > 0 ? `${about.join(", ")}: ${where}` : where;
}
