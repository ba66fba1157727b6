import { count, type Terminal } from "../terminal.ts";

const barWidth = 24;
const redrawMs = 50;
/** How many lines one step may print without a terminal. */
const lines = 10;

/** Shows progress: a bar on a terminal, a few lines elsewhere. */
export class Progress {
  readonly #terminal: Terminal;
  #isDrawn = false;
  #drawnAt = 0;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  show(step: "copied" | "verified", done: number, of: number): void {
    const text = `${step} ${done.toLocaleString("en-US")} of ${count(of, "session")}`;
    const every = Math.ceil(of / lines);
    if (this.#terminal.isInteractive) this.#draw(text, done / of, Date.now());
    else if (done % every === 0 || done === of) this.#terminal.note(text);
  }

  /** Removes the bar. */
  end(): void {
    if (this.#isDrawn) this.#terminal.overwrite("");
    this.#isDrawn = false;
  }

  #draw(text: string, part: number, now: number): void {
    if (part < 1 && now - this.#drawnAt < redrawMs) return;
    this.#drawnAt = now;
    const full = Math.round(part * barWidth);
    this.#isDrawn = true;
    this.#terminal.overwrite(`${"█".repeat(full)}${"░".repeat(barWidth - full)} ${text}`);
  }
}
