// The screen for scripts: every event and command result is a line of JSON on stdout, every error one on stderr.

import type { BoughEvent } from "../../events/index.ts";
import { type Terminal, toJson } from "../terminal.ts";
import type { Finding, Screen } from "./screen.ts";

export class JsonScreen implements Screen {
  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  show(event: BoughEvent): void {
    this.#terminal.print(toJson(event));
  }

  tell(finding: Finding): void {
    this.#terminal.print(toJson(finding));
  }

  problem({ message, code }: { message: string; code?: string }): void {
    this.#terminal.note(toJson({ error: { code: code ?? "unexpected", message } }));
  }

  /** The question was already printed as an event. */
  ask(): void {}
  note(): void {}
  pause(): void {}
  resume(): void {}
}
