// How large messages are where no model has told: by their characters.

import type { Message } from "../../events/index.ts";

const tokensPerCharacter = 0.28;
const tokensPerFile = 1500;

/** Roughly; the same message always has the same size. */
export function estimateTokens({ content }: Message): number {
  if (typeof content === "string") return Math.ceil(content.length * tokensPerCharacter);
  let tokens = 0;
  for (const part of content) {
    if (part.type === "file") tokens += tokensPerFile;
    else if (part.type === "text") tokens += part.text.length * tokensPerCharacter;
    else tokens += JSON.stringify(part).length * tokensPerCharacter;
  }
  return Math.ceil(tokens);
}
