// Markdown that grows: while an answer is streamed, only its end is lexed again.
//   Lex-1. The tokens are those of lexing the whole text at once, at every length (lex.test.ts tries random documents).
// The last three blocks may still change with the next words (a list goes on, a table begins); those before them are settled. A link
// definition anywhere changes what earlier links mean, so such a text is lexed whole.

import { lexer, type Token } from "marked";

const definition = /^ {0,3}\[[^\]]+\]:/m;
const unsettled = 3;

export class GrowingMarkdown {
  #settledText = "";
  #settled: Token[] = [];

  /** The blocks of a text that usually begins with the one before. */
  lex(text: string): Token[] {
    if (!text.startsWith(this.#settledText) || definition.test(text)) this.#forget();
    const tail = lexer(text.slice(this.#settledText.length));
    const tokens = [...this.#settled, ...tail];
    if (!definition.test(text)) this.#settle(text, tail);
    return tokens;
  }

  #settle(text: string, tail: Token[]): void {
    const count = tail.length - unsettled;
    if (count <= 0) return;
    const blocks = tail.slice(0, count);
    const settledText = this.#settledText + blocks.map(({ raw }) => raw).join("");
    // The lexer evens out some white space: what it did not give back word for word can't be cut off.
    if (!text.startsWith(settledText)) return;
    this.#settledText = settledText;
    this.#settled = [...this.#settled, ...blocks];
  }

  #forget(): void {
    this.#settledText = "";
    this.#settled = [];
  }
}
