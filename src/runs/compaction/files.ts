// The files that messages refer to: what stays reachable after the messages are out of the model's sight. Stored content is
// named by its id, which the tool `read_file` takes.

import { contentIdIn } from "../../events/files.ts";
import { type Message, type Part, textOf } from "../../events/index.ts";

interface FilePart {
  readonly mediaType?: unknown;
  readonly filename?: unknown;
  readonly data?: unknown;
}

/** One line for each file that has an address, each once: its name, its type and where it is. */
export function listFiles(messages: readonly Message[]): string[] {
  const lines = new Set<string>();
  for (const message of messages) {
    const { content } = message;
    if (message.role === "user") for (const line of listedIn(textOf(message))) lines.add(line);
    if (typeof content === "string") continue;
    for (const part of content) for (const file of filesOf(part)) lines.add(describeFile(file));
  }
  return [...lines].filter((line) => line !== "");
}

/** What precedes the list in a summary. */
export const listTitle = "Files in it:";

/** The files that an earlier summary lists: what they were in is gone, so the next one lists them, too. */
function listedIn(text: string): string[] {
  const at = text.startsWith("Earlier conversation, summarised;") ? text.indexOf(`\n${listTitle}\n`) : -1;
  if (at < 0) return [];
  const listed = text.slice(at + listTitle.length + 2).split("\n\n")[0]!;
  return listed.split("\n").flatMap((line) => (line.startsWith("- ") ? [line.slice(2)] : []));
}

function filesOf(part: Part): FilePart[] {
  if (part.type === "file") return [part as FilePart];
  if (part.type !== "tool-result") return [];
  const { type, value } = part.output as { type?: unknown; value?: unknown };
  if (type !== "content" || !Array.isArray(value)) return [];
  return value.filter((item) => Object(item).type !== "text").map((item) => Object(item) as FilePart);
}

/** Bytes inside the message have no address, and a provider's own reference means nothing to a model. */
function describeFile({ mediaType, filename, data }: FilePart): string {
  const url = typeof data === "string" ? data : (Object(data) as { url?: unknown }).url;
  if (typeof url !== "string" || !/^[a-z][a-z0-9+.-]*:\/\//i.test(url)) return "";
  const about = [filename, mediaType].filter((each) => typeof each === "string");
  const id = contentIdIn(url);
  const where = id === undefined ? url : `id ${id}`;
  return about.length > 0 ? `${about.join(", ")}: ${where}` : where;
}
