// Questions: questions of a run to a person or a client. It owns what is known of this turn's interactions, from the log.
//   Questions-1. A question is a fact before it is shown, and its answer is a fact before it takes effect.
//   Questions-2. The same question (kind, call, key) asked again, also after a restart, is the same interaction. About a call it has
//       to show the same, too: an answer holds for the arguments that were shown.
//   Questions-3. Of an answer and an expiry, the one that is first in the log counts.
//   Questions-4. What needs no answer any more is closed before it goes on without one: no answer is taken that comes to nothing.
//   Questions-5. A child's question is a question of its parent, too: a mirror, which is answered and closed as that is.

import type { Clock } from "../../base/clock.ts";
import type { Ids } from "../../base/ids.ts";
import { encodeJson, factLimits, type JsonObject } from "../../base/json.ts";
import { interactionExpired, interactionOpened } from "../../events/drafts.ts";
import type { Draft, Fact, UnknownFact } from "../../events/index.ts";
import type { Answer, Question } from "../../middleware/index.ts";
import { handedOver, Parked } from "../endings.ts";
import { Parking } from "./parking.ts";

/** The keys of mirrors begin with it; the id of the child's question follows. */
const mirrorPrefix = "child:";

/** A child's question, as it is shown on its parent. */
export interface MirroredQuestion extends Pick<Question, "kind" | "request"> {
  readonly callId: string;
  /** The id of the child's question. */
  readonly of: string;
  readonly expiresAt?: number | undefined;
}

interface Asked {
  readonly id: string;
  readonly kind: Question["kind"];
  readonly callId: string | undefined;
  /** What it shows of its call, as text. */
  readonly shown: string | undefined;
  /** The call it lets through, if it stands before one: a permission, but not one to run the call again. */
  readonly gates: string | undefined;
  /** Whether it is a child's question: then it says nothing about the call itself. */
  readonly isMirror: boolean;
  readonly expiresAt: number | undefined;
  settled?: Answer;
  /** All waiters of the question share this promise. */
  waiting?: Promise<Answer> | undefined;
  wake?: (answer: Answer) => void;
}

export interface QuestionsOptions {
  readonly turnId: string;
  readonly clock: Clock;
  readonly ids: Ids;
  /** How long a question can be answered; without it, as long as it takes. */
  readonly answerMs?: number | undefined;
  readonly signal: AbortSignal;
  /** Aborted when this run stops waiting for answers and leaves them to the run that resumes the turn. */
  readonly leaving: AbortSignal;
  /** When a run that parks does so (default: as soon as it asks). */
  readonly parking?: Parking;
  /** What to do with a question now: depends on who listens. */
  policy(): "wait" | "park" | "deny";
  write(...drafts: Draft[]): Promise<unknown>;
  /** From now on, what another process writes is shown to see(), too. May be called again. */
  listen(): void;
}

export class Questions {
  readonly #options: QuestionsOptions;
  readonly #parking: Parking;
  /** By name, the newest. */
  readonly #asked = new Map<string, Asked>();
  readonly #byId = new Map<string, Asked>();
  /** Questions on their way into the log. */
  readonly #opening = new Map<string, Promise<Asked>>();

  constructor(options: QuestionsOptions) {
    this.#options = options;
    this.#parking = options.parking ?? new Parking({ clock: options.clock, clientGraceMs: 0 });
  }

  /** Told of every fact of the turn, in order. */
  see(fact: Fact | UnknownFact): void {
    if (fact.type === "interaction.opened") {
      const { id, kind, callId, expiresAt } = fact;
      const isMirror = fact.key?.startsWith(mirrorPrefix) === true;
      const isGate = fact.kind === "permission" && !isMirror && !fact.key?.startsWith("again");
      const shown = fact.callId === undefined ? undefined : JSON.stringify(fact.request);
      const asked = { id, kind, callId, shown, gates: isGate ? callId : undefined, isMirror, expiresAt };
      this.#asked.set(nameOf(fact), asked);
      this.#byId.set(id, asked);
    } else if (fact.type === "interaction.answered") {
      const { interactionId, answer, at } = fact;
      const by = fact.by === undefined ? {} : { by: fact.by };
      this.#settle(interactionId, { answered: true, answer, interactionId, at, ...by });
    } else if (fact.type === "interaction.expired") {
      this.#settle(fact.interactionId, { answered: false, reason: fact.reason === "nobody" ? "nobody" : "expired" });
    }
  }

  /** Whether a question stood before this call; one about running it again did not. */
  isGated(callId: string): boolean {
    for (const { gates } of this.#asked.values()) if (gates === callId) return true;
    return false;
  }

  /** What a client answered for a call that it was asked to run. */
  clientAnswer(callId: string): JsonObject | undefined {
    for (const { kind, callId: about, isMirror, settled } of this.#asked.values()) {
      if (kind === "client-tool" && !isMirror && about === callId && settled?.answered) return settled.answer;
    }
    return undefined;
  }

  /** Closes what is still asked about a call that has its result, such as the question of a tool whose time was over (Questions-4). */
  outlived(callId: string): Draft[] {
    const left: Draft[] = [];
    for (const asked of this.#asked.values()) {
      if (asked.callId === callId && !asked.settled) left.push(this.#expiry(asked, "not needed"));
    }
    return left;
  }

  async ask(question: Question): Promise<Answer> {
    const shown = shownOf(question);
    const before = this.#asked.get(nameOf(question));
    const known = before?.shown === shown ? before : undefined;
    if (known?.settled) return known.settled;
    const policy = this.#options.policy();
    if (policy === "deny") {
      if (before && !before.settled) await this.#options.write(this.#expiry(before, "nobody"));
      return (known && this.#byId.get(known.id)?.settled) ?? { answered: false, reason: "nobody" };
    }
    const asked = known ?? (await this.#open(question, shown, before));
    if (asked.settled) return asked.settled;
    if (policy === "park" && this.#isOver(asked)) {
      await this.#options.write(this.#expiry(asked, "no answer"));
      return asked.settled!;
    }
    asked.waiting ??= this.#wait(asked, policy === "park");
    return asked.waiting;
  }

  /** Questions-5. Opens the mirror of a child's question, once; does not wait for its answer. */
  async mirror(question: MirroredQuestion): Promise<void> {
    const name = nameOf({ ...question, key: mirrorPrefix + question.of });
    if (this.#asked.has(name) || this.#options.policy() === "deny") return;
    const { kind, callId, request, expiresAt, of } = question;
    const asked = { kind, callId, request, key: mirrorPrefix + of };
    const opened = interactionOpened(this.#options, this.#options.turnId, asked);
    await this.#options.write({ ...opened, ...(expiresAt !== undefined && { expiresAt }) });
  }

  /** The open mirror of a child's question. */
  mirrorId(of: string): string | undefined {
    for (const [name, { id, settled }] of this.#asked) {
      if (!settled && name.endsWith(`\n${mirrorPrefix}${of}`)) return id;
    }
    return undefined;
  }

  /** Questions-4. Gives the answer, if that was first (Questions-3). */
  async withdraw(question: Question): Promise<Answer | undefined> {
    const asked = this.#asked.get(nameOf(question));
    if (!asked) return undefined;
    if (!asked.settled) await this.#options.write(this.#expiry(asked, "not needed"));
    return asked.shown === shownOf(question) && asked.settled?.answered ? asked.settled : undefined;
  }

  #isOver({ expiresAt = Number.POSITIVE_INFINITY }: Asked): boolean {
    return this.#options.clock.now() >= expiresAt;
  }

  /** One interaction, also for those who ask before it is written (Questions-2). */
  #open(question: Question, shown: string | undefined, before: Asked | undefined): Promise<Asked> {
    const name = `${nameOf(question)}\n${shown ?? ""}`;
    const opening = this.#opening.get(name) ?? this.#write(question, before).finally(() => this.#opening.delete(name));
    this.#opening.set(name, opening);
    return opening;
  }

  async #write({ kind, request, callId, key, expiresInMs }: Question, before: Asked | undefined): Promise<Asked> {
    const { turnId, answerMs = Number.POSITIVE_INFINITY, write } = this.#options;
    const optional = { ...(callId && { callId }), ...(key && { key }) };
    const opened = interactionOpened(this.#options, turnId, { kind, request, ...optional });
    const timeMs = expiresInMs ?? answerMs;
    const expiresAt = Number.isFinite(timeMs) && { expiresAt: Math.max(0, Math.ceil(opened.at + timeMs)) };
    const outdated = before && !before.settled ? [this.#expiry(before, "changed")] : [];
    await write(...outdated, { ...opened, ...expiresAt });
    return this.#byId.get(opened.id)!;
  }

  /** Waits for the answer; with `parks`, until the run parks. */
  async #wait(asked: Asked, parks: boolean): Promise<Answer> {
    const { signal, leaving } = this.#options;
    const over = new AbortController();
    let isParked = false;
    let stay = () => {};
    const answer = new Promise<Answer>((resolve, reject) => {
      asked.wake = resolve;
      const once = { once: true, signal: over.signal };
      signal.addEventListener("abort", () => reject(signal.reason), once);
      leaving.addEventListener("abort", () => reject(new Parked(handedOver)), once);
      if (signal.aborted) reject(signal.reason);
      if (leaving.aborted) reject(new Parked(handedOver));
      const leave = (parked: Parked) => {
        isParked = true;
        reject(parked);
      };
      if (parks) stay = this.#parking.wait(asked, leave);
    });
    try {
      if (isParked) return await answer;
      this.#options.listen();
      const late = this.#pass(asked, AbortSignal.any([signal, over.signal])).then(() => answer);
      return await Promise.race([answer, late]);
    } finally {
      stay();
      over.abort();
      asked.waiting = undefined;
    }
  }

  /** Expires the question, in the log. */
  async #pass(asked: Asked, stop: AbortSignal): Promise<void> {
    const { clock, write } = this.#options;
    const { expiresAt = Number.POSITIVE_INFINITY } = asked;
    // A timer may ring a little early.
    while (!stop.aborted && clock.now() < expiresAt) await clock.sleep(expiresAt - clock.now(), stop);
    if (!stop.aborted) await write(this.#expiry(asked, "no answer"));
  }

  #expiry({ id }: Asked, reason: string): Draft {
    return interactionExpired(this.#options, id, reason);
  }

  /** Questions-3: the first one settles it. */
  #settle(interactionId: string, answer: Answer): void {
    const asked = this.#byId.get(interactionId);
    if (!asked || asked.settled) return;
    asked.settled = answer;
    asked.wake?.(answer);
  }
}

/** What a question shows of its call, as text; refuses what can't be shown. */
function shownOf({ request, callId }: Question): string | undefined {
  const text = encodeJson(request, "A question", factLimits);
  return callId === undefined ? undefined : text;
}

function nameOf({
  kind,
  callId,
  key,
}: {
  kind: string;
  callId?: string | undefined;
  key?: string | undefined;
}): string {
  return `${kind}\n${callId ?? ""}\n${key ?? ""}`;
}

/** The words of an answer in plain text, for tools that ask a person. */
export function answerText(answer: JsonObject): string {
  return typeof answer.answer === "string" ? answer.answer : JSON.stringify(answer.answer ?? answer);
}
