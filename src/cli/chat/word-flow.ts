// Word wrap, since a terminal alone would break lines anywhere.

const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** Wraps streamed text between words. A word is shown when it is complete. */
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
    // Writing systems without spaces break anywhere; words longer than half a line are left to the terminal.
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
