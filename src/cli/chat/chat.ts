// Chat: connects a person to a conversation. It owns the current branch, and what is running.
//   Chat-1. One thing at a time: a line is read when nothing runs; during a run, only its questions are asked.
//   Chat-2. A session is created with its first message, not before.
//   Chat-3. Ctrl-C interrupts the run; a second one, or one on an empty line while nothing runs, leaves.

import { BoughError } from "../../base/errors.ts";
import type { Conversation } from "../../chat/conversation.ts";
import { visible } from "../../chat/text.ts";
import type { BoughEvent } from "../../events/index.ts";
import type { BranchRef } from "../../log/store.ts";
import type { Input as Said } from "../../wire/index.ts";
import { count, type Terminal } from "../terminal.ts";
import { Attachments } from "./attachments.ts";
import { runSlash } from "./commands.ts";
import type { Input } from "./input.ts";
import { Questioner } from "./questioner.ts";
import type { Screen } from "./screen.ts";
import { type GoToOptions, placeOf, type Talk } from "./talk.ts";

export interface ChatOptions {
  readonly conversation: Conversation;
  readonly input: Input;
  readonly screen: Screen;
  readonly terminal: Terminal;
  /** Aborts when the process is asked to stop. */
  readonly signal: AbortSignal;
}

export class Chat implements Talk {
  readonly conversation: Conversation;
  readonly screen: Screen;
  readonly attachments: Attachments;
  readonly #input: Input;
  readonly #terminal: Terminal;
  readonly #questioner: Questioner;
  readonly #left = new AbortController();
  /** Resolves when the user leaves. */
  readonly #leaving: Promise<undefined>;
  #place: BranchRef | undefined;
  /** Ends the upload of files that go with a message. */
  #upload: AbortController | undefined;
  #isRunning = false;
  #isInterrupted = false;
  #hasFailed = false;

  constructor({ conversation, input, screen, terminal, signal }: ChatOptions) {
    this.conversation = conversation;
    this.screen = screen;
    this.#input = input;
    this.#terminal = terminal;
    this.attachments = new Attachments(terminal);
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

  /** Whether the last message or command failed. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Reads and handles lines until the input ends or the user leaves. */
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
    this.screen.note("The last turn is unfinished; resuming it.");
    for (const interaction of interactions) this.#questioner.add(place, interaction);
    await this.#follow(place, this.conversation.run(place, undefined));
  }

  async run(input: Said | undefined): Promise<void> {
    const place = placeOf(this);
    await this.#follow(place, this.conversation.run(place, input));
  }

  async #take(text: string): Promise<void> {
    if (text.startsWith("/") && !text.startsWith("//")) return runSlash(this, text);
    const place = this.#place ?? { sessionId: await this.conversation.openSession(undefined), branchId: "main" };
    this.#place = place;
    await this.#follow(place, this.conversation.run(place, await this.#inputOf(place, text.replace(/^\/\//, "/"))));
  }

  /** What was said, with the attached files, which are stored first. Ctrl-C ends that. */
  async #inputOf(place: BranchRef, text: string): Promise<Said> {
    if (this.attachments.files.length === 0) return text;
    const upload = new AbortController();
    this.#upload = upload;
    try {
      const { signal } = this.#left;
      const content = this.conversation.content(place);
      return await this.attachments.send(text, content, AbortSignal.any([upload.signal, signal]));
    } finally {
      this.#upload = undefined;
    }
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
    if (this.#upload) {
      const sentence = "The message was not sent. Its files are still attached; /detach removes them.";
      this.#upload.abort(new BoughError("aborted", sentence));
      return;
    }
    const place = this.#place;
    if (!this.#isRunning || !place || this.#isInterrupted) {
      this.leave();
      return;
    }
    this.#isInterrupted = true;
    this.#questioner.stop();
    this.screen.note("Interrupting. Press Ctrl-C again to leave.");
    this.conversation.interrupt(place).catch((error: Error) => this.screen.problem(error));
  }

  /** Shows an error and lets the chat continue. */
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
    const files = this.attachments.files.length;
    const known = [
      ...(branch === undefined || branch === "main" ? [] : [visible(branch)]),
      ...(files === 0 ? [] : [count(files, "file")]),
    ];
    return `${paint("bold", known.length === 0 ? "you" : `you (${known.join(", ")})`)} › `;
  }
}
