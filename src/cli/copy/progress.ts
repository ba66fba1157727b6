import { Bar } from "../bar.ts";
import { count, type Terminal } from "../terminal.ts";

/** How many lines one step may print without a terminal. */
const lines = 10;

/** Shows progress: a bar on a terminal, a few lines elsewhere. */
export class Progress {
  readonly #terminal: Terminal;
  readonly #bar: Bar;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.#bar = new Bar(terminal);
  }

  show(step: "copied" | "verified", done: number, of: number): void {
    const text = `${step} ${done.toLocaleString("en-US")} of ${count(of, "session")}`;
    const every = Math.ceil(of / lines);
    this.#bar.draw(text, done / of);
    if (!this.#terminal.isInteractive && (done % every === 0 || done === of)) this.#terminal.note(text);
  }

  /** Removes the bar. */
  end(): void {
    this.#bar.end();
  }
}
