// Texts that others wrote, made safe for a terminal: what would steer it is written out, line breaks and tabs stay.

import { shorten, visible } from "../terminal.ts";

/** A whole text. */
export function safeText(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .split(/([\n\t])/)
    .map((piece) => (piece === "\n" || piece === "\t" ? piece : visible(piece)))
    .join("");
}

/** A text that comes in pieces: halves of a character are held back until the other half is there. */
export class SafeStream {
  #held = "";

  write(piece: string): string {
    const text = this.#held + piece;
    const [, whole = "", held = ""] = /^([\s\S]*?)([\ud800-\udbff\r]?)$/.exec(text) ?? [];
    this.#held = held;
    return safeText(whole);
  }

  /** What was held back, at the end. */
  end(): string {
    const rest = safeText(this.#held);
    this.#held = "";
    return rest;
  }
}

/** Any value on one line. */
export function oneLine(value: unknown, width: number): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return shorten(visible(text.replace(/\s+/g, " ")), width);
}
