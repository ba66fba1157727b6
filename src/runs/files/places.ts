// The files of a prompt: where they stand, and the prompt with something else in their places.

import type { Json } from "../../base/json.ts";
import { type FilePart, isFilePart } from "../../events/files.ts";
import type { Part, ToolOutput, ToolResultPart } from "../../events/index.ts";
import type { FilePlace } from "../../models/accepts.ts";
import type { PromptMessage } from "../../models/index.ts";

/** A file in a prompt. */
export interface PlacedFile {
  /** The position of its message. */
  readonly at: number;
  readonly place: FilePlace;
  readonly file: FilePart;
}

/** Every file of a prompt, in order. */
export function findFiles(prompt: readonly PromptMessage[]): PlacedFile[] {
  const found: PlacedFile[] = [];
  prompt.forEach(({ role, content }, at) => {
    if (typeof content === "string") return;
    for (const part of content) {
      if (isFilePart(part))
        found.push({ at, place: role === "assistant" ? "assistant" : "user", file: part as FilePart });
      for (const item of itemsOf(part)) if (isFilePart(item)) found.push({ at, place: "tool", file: item });
    }
  });
  return found;
}

function itemsOf(part: Part): readonly Json[] {
  if (part.type !== "tool-result") return [];
  const { type, value } = (part as ToolResultPart).output as ToolOutput & { value?: Json };
  return type === "content" && Array.isArray(value) ? value : [];
}

/** What stands in the place of a file: a part of the same place; nothing; or a note, and the file in a message after it. */
export interface Sent {
  readonly part?: object;
  readonly moved?: object;
}

/** The prompt with its files replaced; messages without files are the same objects. */
export function replaceFiles(prompt: readonly PromptMessage[], sent: ReadonlyMap<object, Sent>): PromptMessage[] {
  const made: PromptMessage[] = [];
  for (const message of prompt) {
    const { content } = message;
    if (typeof content === "string" || !content.some((part) => sent.has(part) || itemsOf(part).length > 0)) {
      made.push(message);
      continue;
    }
    const moved: object[] = [];
    const parts = content.flatMap((part) => replacePart(part, sent, moved));
    if (parts.length > 0) made.push({ ...message, content: parts });
    if (moved.length > 0) made.push(fileMessage(moved));
  }
  return made;
}

function replacePart(part: Part, sent: ReadonlyMap<object, Sent>, moved: object[]): Part[] {
  const own = sent.get(part);
  if (own) return own.part ? [own.part as Part] : [];
  const items = itemsOf(part);
  if (!items.some((item) => sent.has(item as object))) return [part];
  const value = items.flatMap((item) => {
    const replaced = sent.get(item as object);
    if (!replaced) return [item];
    if (replaced.moved) moved.push(replaced.moved);
    return replaced.part ? [replaced.part as Json] : [];
  });
  const { output } = part as ToolResultPart;
  return [{ ...part, output: { ...output, value } } as unknown as ToolResultPart];
}

/** Files that a tool returned, for a model that takes files from a user only. */
function fileMessage(files: readonly object[]): PromptMessage {
  const text = { type: "text", text: files.length === 1 ? "[The file from the tool:]" : "[The files from the tools:]" };
  return { role: "user", content: [text, ...files] as unknown as readonly Part[] };
}
