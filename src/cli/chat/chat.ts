// Chat: between a person and a conversation. It owns where the chat is, and what it is about to do.
//   C1. One thing at a time: a line is asked for when nothing runs, and while something runs only its questions are asked.
//   C2. A session is made when something is said in it, not before.
//   C3. Ctrl-C stops what runs; a second one, or one while nothing runs and nothing is typed, leaves.

import { BoughError } from "../../base/errors.ts";
import type { BoughEvent } from "../../events/index.ts";
import type { BranchRef } from "../../log/store.ts";
import { type Terminal, visible } from "../terminal.ts";
import { type GoToOptions, runSlash, type Talk } from "./commands.ts";
import type { Conversation } from "./conversation.ts";
import type { Input } from "./input.ts";
import { Questioner } from "./questioner.ts";
import type { Screen } from "./screen.ts";

export interface ChatOptions {
  readonly conversation: Conversation;
  readonly input: Input;
  readonly screen: Screen;
  readonly terminal: Terminal;
  /** Aborts when the process is told to stop. */
  readonly signal: AbortSignal;
}

export class Chat implements Talk {
  readonly conversation: Conversation;
  readonly screen: Screen;
  readonly #input: Input;
  readonly #terminal: Terminal;
  readonly #questioner: Questioner;
  readonly #left = new AbortController();
  /** Resolves when somebody wants to leave. */
  readonly #leaving: Promise<undefined>;
  #place: BranchRef | undefined;
  #isRunning = false;
  #isInterrupted = false;
  #hasFailed = false;

  constructor({ conversation, input, screen, terminal, signal }: ChatOptions) {
    this.conversation = conversation;
    this.screen = screen;
    this.#input = input;
    this.#terminal = terminal;
    this.#questioner = new Questioner({ conversation, input, screen });
    conversation.onNotice = (text) => screen.note(text);
    input.onInterrupt = () => this.#interrupt();
    this.#leaving = new Promise((resolve) => {
      this.#left.signal.addEventListener("abort", () => resolve(undefined), { once: true });
    });
    signal.addEventListener("abort", () => this.leave(), { once: true });
  }

  get place(): BranchRef | undefined {
    return this.#place;
  }

  /** Whether something that was said came to no end. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Reads and does, until the input ends or somebody wants to leave. */
  async talk(): Promise<void> {
    const { signal } = this.#left;
    while (!signal.aborted) {
      const line = await this.#input.line(this.#prompt, { signal });
      if (line === undefined) return;
      const text = line.trim();
      if (text !== "") await this.#attempt(() => this.#take(text));
    }
  }

  leave(): void {
    this.#left.abort();
    this.#questioner.stop();
  }

  async goTo(place: BranchRef | undefined, { recent = 6, isAsked = true }: GoToOptions = {}): Promise<void> {
    this.#place = place;
    this.#isInterrupted = false;
    if (!place) return;
    const { messages, before, open, interactions } = await this.conversation.look(place, recent);
    this.screen.tell({ type: "place", ...place }, { isAsked });
    const all = [...messages, ...(open ?? [])];
    if (all.length > 0) this.screen.tell({ type: "history", messages: all, before }, { isAsked });
    if (!open) return;
    this.screen.note("The last turn has no end yet; it goes on.");
    for (const interaction of interactions) this.#questioner.add(place, interaction);
    await this.#follow(place, this.conversation.run(place, undefined));
  }

  async #take(text: string): Promise<void> {
    if (text.startsWith("/") && !text.startsWith("//")) return runSlash(this, text);
    const place = this.#place ?? { sessionId: await this.conversation.openSession(undefined), branchId: "main" };
    this.#place = place;
    await this.#follow(place, this.conversation.run(place, text.replace(/^\/\//, "/")));
  }

  async #follow(place: BranchRef, events: AsyncIterable<BoughEvent>): Promise<void> {
    this.#isRunning = true;
    this.#isInterrupted = false;
    const reading = events[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await Promise.race([reading.next(), this.#leaving]);
        if (!next || next.done) break;
        this.#show(place, next.value);
      }
    } finally {
      this.#isRunning = false;
      await this.#questioner.end();
    }
  }

  #show(place: BranchRef, event: BoughEvent): void {
    this.screen.show(event);
    if (event.type === "interaction.opened") this.#questioner.add(place, event);
    if (event.type === "interaction.answered" || event.type === "interaction.expired") {
      this.#questioner.settle(event.interactionId);
    }
    if (event.type === "turn.ended") this.#hasFailed = event.status === "failed";
    if (event.type === "turn.committed") this.#hasFailed = false;
  }

  #interrupt(): void {
    const place = this.#place;
    if (!this.#isRunning || !place || this.#isInterrupted) {
      this.leave();
      return;
    }
    this.#isInterrupted = true;
    this.#questioner.stop();
    this.screen.note("Interrupting; again to leave.");
    this.conversation.interrupt(place).catch((error: Error) => this.screen.problem(error));
  }

  /** What goes wrong is told, and the chat goes on. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#hasFailed = true;
      if (!(error instanceof Error)) throw error;
      const code = BoughError.is(error) ? error.code : (error as { code?: unknown }).code;
      this.screen.problem({ message: error.message, ...(typeof code === "string" && { code }) });
    }
  }

  get #prompt(): string {
    const { paint } = this.#terminal;
    const branch = this.#place?.branchId;
    return `${paint("bold", branch === undefined || branch === "main" ? "you" : `you (${visible(branch)})`)} › `;
  }
}
