// How a message begins, for lists.

import type { Fact, Message } from "../events/index.ts";

/** About a line of a list. */
const mostCharacters = 80;
const mostRead = 1000;

/** The beginning of what a message says, on one line; "" for one that says nothing in words. */
export function firstWords({
  content,
}: {
  readonly content: Message["content"] | Fact<"message.added">["content"];
}): string {
  const texts =
    typeof content === "string" ? [content] : content.map((part) => (part.type === "text" ? part.text : ""));
  const line = texts.join(" ").slice(0, mostRead).replace(/\s+/g, " ").trim();
  if (line.length <= mostCharacters) return line;
  // Not within a word, unless the word is that long; and never within a character.
  const cut = line.slice(0, mostCharacters);
  const end = cut.lastIndexOf(" ");
  return `${(end > mostCharacters / 2 ? cut.slice(0, end) : cut).replace(/[\ud800-\udbff]$/, "").trimEnd()}…`;
}
