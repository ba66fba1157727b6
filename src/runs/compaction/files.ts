// The files that messages refer to: what stays reachable by its address after the messages are out of the model's sight.

import type { Message, Part } from "../../events/index.ts";

interface FilePart {
  readonly mediaType?: unknown;
  readonly filename?: unknown;
  readonly data?: unknown;
}

/** One line for each file that has an address, each once: its name, its type and where it is. */
export function listFiles(messages: readonly Message[]): string[] {
  const lines = new Set<string>();
  for (const { content } of messages) {
    if (typeof content === "string") continue;
    for (const part of content) for (const file of filesOf(part)) lines.add(describeFile(file));
  }
  return [...lines].filter((line) => line !== "");
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
  return about.length > 0 ? `${about.join(", ")}: ${url}` : url;
}
