// The door for files: bytes on their way into the log become references to stored content.
//   Files-1. No fact holds the bytes of a file: whatever form they come in, they are stored first, and the fact has a reference.
//   Files-2. A reference is handed out after its content is durable.
//   Files-3. A reference that comes from outside names content that the branch sees.
//   Files-4. What was fetched from the web is stored, so neither a replay nor a model needs the web again.

import { BoughError } from "../base/errors.ts";
import { decideType, refineType, signatureBytes } from "../base/media-type.ts";
import { type FetchedFile, type GivenFile, peekBytes, readGiven } from "../content/index.ts";
import {
  contentIdIn,
  type FilePart,
  fileReference,
  hasContentScheme,
  type InputPart,
  isFilePart,
} from "../events/files.ts";
import type { NewMessage, Part } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import { asFilePart } from "../tools/content.ts";
import { findContent, putContent } from "./content.ts";
import type { Context } from "./context.ts";

/** A message on its way in; its files may hold their bytes. */
export interface InputMessage extends Omit<NewMessage, "content"> {
  readonly content: string | readonly InputPart[];
}

/** Where files are stored. */
export interface FileDoor {
  readonly context: Context;
  readonly ref: BranchRef;
  /** Whether references are checked (Files-3): those that callers and clients pass are. */
  readonly isChecked: boolean;
  /** What is noted as their origin. */
  readonly origin?: string;
  /** Fetches files from the web, where that is allowed. */
  readonly fetching?: FileFetching;
}

/** How files are fetched from the web. */
export interface FileFetching {
  /** Undefined when the address is none that may be fetched; the message keeps it then. */
  fetch(url: string, mediaType: string | undefined): Promise<FetchedFile | undefined>;
  /** Told why a file could not be fetched; throws if the message can't go on without it. */
  onFail(error: unknown): void;
}

/** The messages with their files stored. Messages without files are returned as they are. */
export async function storeMessages(door: FileDoor, messages: readonly InputMessage[]): Promise<readonly NewMessage[]> {
  if (!messages.some(hasFiles)) return messages as readonly NewMessage[];
  const stored: NewMessage[] = [];
  for (const message of messages) {
    stored.push(
      hasFiles(message)
        ? { ...message, content: await storeParts(door, message.content as readonly InputPart[]) }
        : (message as NewMessage),
    );
  }
  return stored;
}

/** Whether there is anything to store in a message. */
export function hasFiles(message: InputMessage): boolean {
  // What is no message is refused where it is written.
  const { content } = Object(message) as Partial<InputMessage>;
  return Array.isArray(content) && content.some((part) => isAnyFile(part) || isFileOutput(part));
}

/** The parts with their files stored. */
export async function storeParts(door: FileDoor, parts: readonly InputPart[]): Promise<readonly Part[]> {
  const stored: Part[] = [];
  for (const part of parts) {
    if (isAnyFile(part)) stored.push((await storeFile(door, part)) as unknown as Part);
    else if (isFileOutput(part)) stored.push({ ...part, output: await storeOutput(door, part.output) } as Part);
    else stored.push(part as Part);
  }
  return stored;
}

/** The output of a tool with its files stored; anything but a content output is returned as it is. */
export async function storeOutput(door: FileDoor, output: unknown): Promise<unknown> {
  const { type, value } = Object(output) as { type?: unknown; value?: unknown };
  if (type !== "content" || !Array.isArray(value)) return output;
  const items = value.map(asFilePart);
  if (!items.some(isAnyFile)) return output;
  const stored: unknown[] = [];
  for (const item of items) stored.push(isAnyFile(item) ? await storeFile(door, item) : item);
  return { ...(output as object), value: stored };
}

/** The AI SDK has a part of its own for images. */
type AnyFile = { readonly type: string; readonly [key: string]: unknown };

function isAnyFile(part: unknown): part is AnyFile {
  return isFilePart(part) || (Object(part).type === "image" && "image" in Object(part));
}

function isFileOutput(part: InputPart): part is Extract<Part, { type: "tool-result" }> {
  return part.type === "tool-result" && Object((part as { output?: unknown }).output).type === "content";
}

async function storeFile(door: FileDoor, part: AnyFile): Promise<FilePart> {
  const { image, ...rest } =
    part.type === "image" ? { mediaType: "image/*", ...part, type: "file", data: part.image } : part;
  const file = rest as unknown as FilePart;
  const given = readGiven(file.data);
  switch (given.kind) {
    case "bytes":
    case "stream":
      return { ...file, ...(await storeGiven(door, file, given)) };
    case "url":
      return addressed(door, file, given.url);
    case "none":
      return file;
    case "wrong":
      throw refused('The data of a file must be bytes, a Blob, a stream, base64, a data URL, or { type: "url", url }.');
  }
}

async function storeGiven(
  { context, ref, origin }: FileDoor,
  { type, mediaType: said, filename: name }: FilePart,
  given: Extract<GivenFile, { kind: "bytes" | "stream" }>,
): Promise<FilePart> {
  const { start, source } = await sourceOf(given);
  if (start.length === 0) throw refused("A file has no bytes.");
  const mediaType = decideType(said ?? given.mediaType, start, name);
  const about = { mediaType, ...(name !== undefined && { name }), ...(origin !== undefined && { origin }) };
  const content = await putContent(context, ref, { ...source, ...about });
  return { ...fileReference({ id: content.id, mediaType, filename: name }), type };
}

/** The first bytes, and where all of them come from. */
async function sourceOf(given: Extract<GivenFile, { kind: "bytes" | "stream" }>) {
  if (given.kind === "bytes") return { start: given.bytes.subarray(0, signatureBytes), source: { bytes: given.bytes } };
  const { start, stream } = await peekBytes(given.stream, signatureBytes);
  return { start, source: { stream } };
}

async function addressed(door: FileDoor, file: FilePart, url: string): Promise<FilePart> {
  const { context, ref, isChecked } = door;
  const { originalUrl } = Object(file.data) as { originalUrl?: unknown };
  const kept = { ...file, data: { type: "url", url, ...(typeof originalUrl === "string" && { originalUrl }) } };
  if (!hasContentScheme(url)) {
    if (/^(file|blob|javascript):/i.test(url))
      throw refused(`A file can't be read from "${url.slice(0, 200)}": pass its bytes.`);
    const fetched = await fetchStored(door, file, url);
    if (fetched) return fetched;
    if (typeof file.mediaType !== "string") throw refused("A file with a URL needs a mediaType.");
    return kept;
  }
  const id = contentIdIn(url);
  if (id === undefined) throw refused(`"${url.slice(0, 200)}" is not a reference to stored content.`);
  if (!isChecked && typeof file.mediaType === "string") return kept;
  const { mediaType, name } = await findContent(context, ref, id);
  const type = refineType(mediaType, file.filename ?? name);
  const known = { mediaType: type, ...(name !== undefined && { filename: name }) };
  return { ...known, ...kept };
}

/** Files-4. Undefined when the file is not fetched. */
async function fetchStored(door: FileDoor, file: FilePart, url: string): Promise<FilePart | undefined> {
  const { context, ref, origin, fetching } = door;
  if (!fetching) return undefined;
  try {
    const found = await fetching.fetch(url, typeof file.mediaType === "string" ? file.mediaType : undefined);
    if (!found) return undefined;
    const { stream, mediaType } = found;
    const name = file.filename ?? found.filename;
    const about = { mediaType, ...(name !== undefined && { name }), ...(origin !== undefined && { origin }) };
    const { id } = await putContent(context, ref, { stream, ...about });
    return { ...file, ...fileReference({ id, mediaType, filename: name, originalUrl: url }), type: file.type };
  } catch (error) {
    fetching.onFail(error);
    return undefined;
  }
}

function refused(sentence: string): BoughError {
  return new BoughError("invalid_argument", sentence);
}
