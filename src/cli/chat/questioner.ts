// Questioner: asks a run's questions, one after the other, while the run continues.
//   Questioner-1. A question that is answered elsewhere or expires is removed from the screen.
//   Questioner-2. The run's output is held back while the user types.
//   Questioner-3. After an "always", no more questions about the same tool are asked: the run closes them itself, a moment later.

import { BoughError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { Conversation } from "../../chat/conversation.ts";
import { type Form, formOf, type Question } from "../../chat/questions.ts";
import type { BranchRef } from "../../log/store.ts";
import type { Input } from "./input.ts";
import type { Screen } from "./screen.ts";

interface Asked {
  readonly place: BranchRef;
  readonly question: Question;
  /** Aborts when no more questions are to be asked. */
  readonly over: AbortController;
}

export class Questioner {
  readonly #conversation: Conversation;
  readonly #input: Input;
  readonly #screen: Screen;
  readonly #asked = new Map<string, Asked>();
  #asking: Promise<void> | undefined;

  constructor(given: { conversation: Conversation; input: Input; screen: Screen }) {
    this.#conversation = given.conversation;
    this.#input = given.input;
    this.#screen = given.screen;
  }

  add(place: BranchRef, question: Question): void {
    if (this.#asked.has(question.id)) return;
    this.#asked.set(question.id, { place, question, over: new AbortController() });
    this.#asking ??= this.#askAll().finally(() => {
      this.#asking = undefined;
    });
  }

  settle(interactionId: string): void {
    this.#asked.get(interactionId)?.over.abort();
    this.#asked.delete(interactionId);
  }

  /** Stops asking. */
  stop(): void {
    for (const id of [...this.#asked.keys()]) this.settle(id);
  }

  /** The run is over: resolves when the screen is free. */
  async end(): Promise<void> {
    this.stop();
    await this.#asking;
  }

  async #askAll(): Promise<void> {
    for (;;) {
      const [asked] = this.#asked.values();
      if (!asked) return;
      await this.#ask(asked);
      this.#asked.delete(asked.question.id);
    }
  }

  async #ask({ place, question, over }: Asked): Promise<void> {
    const form = formOf(question);
    this.#screen.ask(question, form);
    const answer = await this.#read(form, over.signal);
    if (!answer) return;
    try {
      await this.#conversation.respond(place, question.id, answer);
      const { toolName, again } = question.request;
      if (answer.choice === "always" && !again) this.#settleAll(toolName);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const { code, data } = error as { code?: unknown; data?: { why?: unknown } };
      const isLate = code === "interaction_closed";
      if (isLate)
        this.#screen.note(data?.why === "expired" ? "The question has expired." : "The question was already answered.");
      else this.#screen.problem(BoughError.is(error) ? error : { message: error.message });
    }
  }

  /** Questioner-3. A question about rerunning a call is a separate one. */
  #settleAll(toolName: Json | undefined): void {
    for (const { question } of [...this.#asked.values()]) {
      const { kind, request } = question;
      if (kind === "permission" && request.toolName === toolName && !request.again) this.settle(question.id);
    }
  }

  async #read(form: Form, signal: AbortSignal): Promise<Form["nobody"] | undefined> {
    while (!signal.aborted) {
      this.#screen.pause();
      const line = await this.#input
        .line(`  ${form.prompt} › `, { signal, isFresh: true })
        .finally(() => this.#screen.resume());
      if (signal.aborted) return undefined;
      if (line === undefined) return form.nobody;
      const reading = form.read(line);
      if ("answer" in reading) return reading.answer;
      this.#screen.note(`  ${reading.problem}`);
    }
    return undefined;
  }
}
