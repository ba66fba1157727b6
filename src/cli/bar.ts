import type { Terminal } from "./terminal.ts";

const barWidth = 24;
const redrawMs = 50;

/** A line of progress on a terminal; nothing elsewhere. */
export class Bar {
  readonly #terminal: Terminal;
  #isDrawn = false;
  #drawnAt = 0;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Draws the bar; `part` is what is done, from 0 to 1, if that can be told. Draws of one moment are drawn once. */
  draw(text: string, part: number | undefined): void {
    if (!this.#terminal.isInteractive) return;
    const now = Date.now();
    if (part !== 1 && now - this.#drawnAt < redrawMs) return;
    this.#drawnAt = now;
    this.#isDrawn = true;
    const full = Math.round((part ?? 0) * barWidth);
    const bar = part === undefined ? "" : `${"█".repeat(full)}${"░".repeat(barWidth - full)} `;
    this.#terminal.overwrite(`${bar}${text}`);
  }

  /** Removes the bar. */
  end(): void {
    if (this.#isDrawn) this.#terminal.overwrite("");
    this.#isDrawn = false;
  }
}
