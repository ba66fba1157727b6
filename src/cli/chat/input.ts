// Input: where a chat's lines come from. It owns stdin.
//   Input-1. Text typed while no line is read is not echoed; it is kept for the next read.
//   Input-2. A fresh line was typed after its prompt appeared, so a question can't be approved before it was shown.

import { createInterface, type Interface } from "node:readline";
import { Writable } from "node:stream";

export interface Input {
  /** Whether stdin is a terminal. */
  readonly isInteractive: boolean;
  /** The next line; undefined at the end of the input, or when the signal aborts. */
  line(prompt: string, options?: { signal?: AbortSignal; isFresh?: boolean }): Promise<string | undefined>;
  /** Called on Ctrl-C, unless it only cleared the line being typed. */
  onInterrupt: () => void;
  close(): void;
}

export function openInput(isInteractive: boolean): Input {
  return isInteractive ? new TerminalInput() : new PipedInput();
}

/** Received lines, and the reader that waits for one. */
class Lines {
  readonly #lines: string[] = [];
  #isEnded = false;
  #wake: (() => void) | undefined;

  get length(): number {
    return this.#lines.length;
  }

  push(line: string): void {
    this.#lines.push(line);
    this.#wake?.();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake?.();
  }

  clear(): void {
    this.#lines.length = 0;
  }

  async next(signal: AbortSignal | undefined): Promise<string | undefined> {
    while (this.#lines.length === 0 && !this.#isEnded && !signal?.aborted) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          signal?.removeEventListener("abort", wake);
          resolve();
        };
        this.#wake = wake;
        signal?.addEventListener("abort", wake);
      });
    }
    return signal?.aborted ? undefined : this.#lines.shift();
  }
}

class PipedInput implements Input {
  readonly isInteractive = false;
  onInterrupt = () => {};
  readonly #lines = new Lines();
  readonly #reader: Interface;

  constructor() {
    this.#reader = createInterface({ input: process.stdin, terminal: false });
    this.#reader.on("line", (line) => this.#lines.push(line));
    this.#reader.on("close", () => this.#lines.end());
  }

  line(_prompt: string, { signal }: { signal?: AbortSignal } = {}): Promise<string | undefined> {
    return this.#lines.next(signal);
  }

  close(): void {
    this.#reader.close();
    process.stdin.destroy();
  }
}

class TerminalInput implements Input {
  readonly isInteractive = true;
  onInterrupt = () => {};
  readonly #lines = new Lines();
  readonly #reader: Interface;
  #isShown = false;

  constructor() {
    const output = new Writable({
      decodeStrings: false,
      write: (chunk, _encoding, done) => {
        if (this.#isShown) process.stdout.write(chunk);
        done();
      },
    });
    // readline wraps lines where the terminal does.
    Object.defineProperty(output, "columns", { get: () => process.stdout.columns });
    process.stdout.on("resize", () => output.emit("resize"));
    this.#reader = createInterface({ input: process.stdin, output, terminal: true, historySize: 500 });
    this.#reader.on("line", (line) => this.#lines.push(line));
    this.#reader.on("close", () => this.#lines.end());
    this.#reader.on("SIGINT", () => this.#interrupt());
  }

  async line(
    prompt: string,
    { signal, isFresh = false }: { signal?: AbortSignal; isFresh?: boolean } = {},
  ): Promise<string | undefined> {
    if (isFresh) {
      this.#lines.clear();
      this.#clearTyped();
    }
    const isTypedAlready = this.#lines.length > 0;
    this.#reader.setPrompt(prompt);
    this.#isShown = true;
    if (!isTypedAlready) this.#reader.prompt(true);
    const line = await this.#lines.next(signal);
    if (isTypedAlready && line !== undefined) process.stdout.write(`${prompt}${line}\n`);
    if (line === undefined) process.stdout.write("\n");
    this.#isShown = false;
    return line;
  }

  close(): void {
    this.#reader.close();
    process.stdin.destroy();
  }

  #interrupt(): void {
    if (this.#isShown && this.#reader.line !== "") this.#clearTyped();
    else this.onInterrupt();
  }

  #clearTyped(): void {
    this.#reader.write(null, { ctrl: true, name: "e" });
    this.#reader.write(null, { ctrl: true, name: "u" });
  }
}
