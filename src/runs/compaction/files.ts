// The files that messages refer to: what stays reachable after the messages are out of the model's sight. Stored content is
// named by its id, which the tool `read_file` takes.

import { describeFiles } from "../../events/files.ts";
import { type Message, textOf } from "../../events/index.ts";

/** One line for each file that has an address, each once: its name, its type and where it is. */
export function listFiles(messages: readonly Message[]): string[] {
  const lines = new Set<string>();
  for (const message of messages) {
    const { content } = message;
    if (message.role === "user") for (const line of listedIn(textOf(message))) lines.add(line);
    if (typeof content === "string") continue;
    for (const part of content) for (const line of describeFiles(part)) lines.add(line);
  }
  return [...lines];
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
