// Asking: questions of a run to a person or a client. It owns what is known of this turn's interactions, from the log.
//   A1. A question is a fact before anybody sees it, and its answer is a fact before it takes effect.
//   A2. The same question (kind, call, key) asked again, also after a restart, is the same interaction.
//   A3. Of an answer and an expiry, the one that is first in the log counts.

import type { Clock } from "../base/clock.ts";
import type { Ids } from "../base/ids.ts";
import type { JsonObject } from "../base/json.ts";
import type { Draft, Fact, UnknownFact } from "../events/index.ts";
import type { Answer, Question } from "../middleware/index.ts";
import { Parked } from "./endings.ts";

interface Asked {
  readonly id: string;
  /** The call it lets through, if it stands before one: a permission, but not one to run the call again. */
  readonly gates: string | undefined;
  readonly expiresAt: number | undefined;
  settled?: Answer;
}

export interface AskingOptions {
  readonly turnId: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly answerMs: number;
  readonly signal: AbortSignal;
  /** What to do with a question now: depends on who listens. */
  policy(): "wait" | "park" | "deny";
  write(draft: Draft): Promise<unknown>;
  /** Resolves when there may be new facts; they are then shown to see(). */
  watch(signal: AbortSignal): Promise<void>;
}

export class Asking {
  readonly #options: AskingOptions;
  readonly #asked = new Map<string, Asked>();
  readonly #names = new Map<string, string>();
  readonly #waiting = new Map<string, (answer: Answer) => void>();
  #isWatching = false;

  constructor(options: AskingOptions) {
    this.#options = options;
  }

  /** Told of every fact of the turn, in order. */
  see(fact: Fact | UnknownFact): void {
    if (fact.type === "interaction.opened") {
      const name = nameOf(fact);
      this.#names.set(fact.id, name);
      const gates = fact.kind === "permission" && !fact.key?.startsWith("again") ? fact.callId : undefined;
      this.#asked.set(name, { id: fact.id, gates, expiresAt: fact.expiresAt });
    } else if (fact.type === "interaction.answered") {
      const by = fact.by === undefined ? {} : { by: fact.by };
      this.#settle(fact.interactionId, { answered: true, answer: fact.answer, ...by });
    } else if (fact.type === "interaction.expired") {
      this.#settle(fact.interactionId, { answered: false, reason: fact.reason === "nobody" ? "nobody" : "expired" });
    }
  }

  /** Whether a question stood before this call; one about running it again did not. */
  isGated(callId: string): boolean {
    for (const { gates } of this.#asked.values()) if (gates === callId) return true;
    return false;
  }

  async ask(question: Question): Promise<Answer> {
    const name = nameOf(question);
    const known = this.#asked.get(name);
    if (known?.settled) return known.settled;
    const policy = this.#options.policy();
    if (policy === "deny") return this.#nobody(known);
    if (!known) await this.#open(question);
    const { id, settled, expiresAt } = this.#asked.get(name)!;
    if (settled) return settled;
    if (policy === "park") throw new Parked("question");
    return this.#wait(id, expiresAt);
  }

  async #open({ kind, request, callId, key, expiresInMs }: Question): Promise<void> {
    const { turnId, clock, ids, answerMs, write } = this.#options;
    const at = clock.now();
    const isParked = this.#options.policy() === "park" && expiresInMs === undefined;
    // A question that nobody waits for has all the time it needs, unless it says otherwise.
    const expiry = isParked ? {} : { expiresAt: at + (expiresInMs ?? answerMs) };
    const optional = { ...(callId && { callId }), ...(key && { key }), ...expiry };
    await write({ type: "interaction.opened", id: ids.next(), at, turnId, kind, request, ...optional } as Draft);
  }

  async #nobody(known: Asked | undefined): Promise<Answer> {
    if (known) await this.#expire(known.id, "nobody");
    return known?.settled ?? { answered: false, reason: "nobody" };
  }

  async #wait(id: string, expiresAt: number | undefined): Promise<Answer> {
    const { signal, clock } = this.#options;
    const answered = new AbortController();
    const answer = new Promise<Answer>((resolve, reject) => {
      this.#waiting.set(id, resolve);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true, signal: answered.signal });
      if (signal.aborted) reject(signal.reason);
    });
    void this.#watch();
    try {
      if (expiresAt === undefined) return await answer;
      const stop = AbortSignal.any([signal, answered.signal]);
      const late = clock.sleep(Math.max(0, expiresAt - clock.now()), stop).then(async () => {
        if (!stop.aborted) await this.#expire(id, "no answer");
        return answer;
      });
      return await Promise.race([answer, late]);
    } finally {
      answered.abort();
      this.#waiting.delete(id);
    }
  }

  async #expire(interactionId: string, reason: string): Promise<void> {
    const { clock, ids, write } = this.#options;
    await write({ type: "interaction.expired", id: ids.next(), at: clock.now(), interactionId, reason });
  }

  /** A3: the first one settles it. */
  #settle(interactionId: string, answer: Answer): void {
    const asked = this.#asked.get(this.#names.get(interactionId) ?? "");
    if (!asked || asked.settled) return;
    asked.settled = answer;
    this.#waiting.get(interactionId)?.(answer);
  }

  /** Looks at the log while somebody waits for an answer that another process may write. */
  async #watch(): Promise<void> {
    if (this.#isWatching) return;
    this.#isWatching = true;
    const { signal, watch } = this.#options;
    try {
      while (this.#waiting.size > 0 && !signal.aborted) await watch(signal);
    } finally {
      this.#isWatching = false;
    }
  }
}

function nameOf({ kind, callId, key }: { kind: string; callId?: string | undefined; key?: string | undefined }): string {
  return `${kind}\n${callId ?? ""}\n${key ?? ""}`;
}

/** The words of an answer in plain text, for tools that ask a person. */
export function answerText(answer: JsonObject): string {
  return typeof answer.answer === "string" ? answer.answer : JSON.stringify(answer);
}
