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

const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** Breaks lines between words, where a terminal would break them anywhere. A word is shown when it is whole. */
export class WordFlow {
  readonly #write: (text: string) => void;
  readonly #width: number;
  #column: number;
  #spaces = "";
  #word = "";
  #wordWidth = 0;

  constructor({ write, width, column = 0 }: { write: (text: string) => void; width: number; column?: number }) {
    this.#write = write;
    this.#width = width;
    this.#column = column;
  }

  write(text: string): void {
    for (const character of text) {
      if (character === "\n") this.#endLine();
      else if (character === " " || character === "\t") {
        this.#putWord();
        this.#spaces += character;
      } else this.#add(character);
    }
  }

  end(): void {
    this.#putWord();
  }

  #add(character: string): void {
    const isWide = wide.test(character);
    this.#word += character;
    this.#wordWidth += isWide ? 2 : 1;
    // Scripts without spaces break anywhere; what is longer than half a line is for the terminal to break.
    if (isWide || this.#wordWidth > this.#width / 2) this.#putWord();
  }

  #putWord(): void {
    if (this.#word === "") return;
    const needed = this.#column + this.#spaces.length + this.#wordWidth;
    const isBroken = this.#column > 0 && needed > this.#width;
    this.#write(isBroken ? `\n${this.#word}` : this.#spaces + this.#word);
    this.#column = (isBroken ? this.#wordWidth : needed) % Math.max(this.#width, 1);
    this.#spaces = "";
    this.#word = "";
    this.#wordWidth = 0;
  }

  #endLine(): void {
    this.#putWord();
    this.#write("\n");
    this.#spaces = "";
    this.#column = 0;
  }
}

/** Any value on one line. */
export function oneLine(value: unknown, width: number): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return shorten(visible(text.replace(/\s+/g, " ")), width);
}
