// The messages of an open turn as prompts have them. A long turn calls the model again and again with one batch more, so what was
// prepared is kept by the turn's first message, and extended.
//   PreparedTurn-1. What is kept is used as far as the messages are the same objects: a message never changes, but one of a batch is
//       replaced, and an output may be cleared.

import { freezeJson } from "../base/json.ts";
import type { Message } from "../events/index.ts";
import type { PromptMessage } from "./port.ts";
import { isMarkedMessage, isPlain, isResult } from "./specification.ts";

type Continue = (before: string, message: PromptMessage) => string;

/** A turn's part of one prompt. */
export interface TurnPart {
  readonly messages: readonly PromptMessage[];
  readonly isPlain: boolean;
  readonly hasResults: boolean;
  readonly isMarked: boolean;
  /** Continues the hash of what comes before it. */
  hash(before: string): string;
}

const known = new WeakMap<Message, PreparedTurn>();

/** The messages as `prepare` adds them to a prompt. */
export function prepareTurn(
  turn: readonly Message[],
  prepare: (message: Message, into: PromptMessage[]) => void,
  next: Continue,
): TurnPart {
  const [first] = turn;
  if (!first) return new PreparedTurn().part(next);
  let prepared = known.get(first);
  if (!prepared) {
    prepared = new PreparedTurn();
    known.set(first, prepared);
  }
  prepared.follow(turn, prepare);
  return prepared.part(next);
}

class PreparedTurn {
  readonly #source: Message[] = [];
  /** How many messages of a prompt there are up to each message. */
  readonly #ends: number[] = [];
  readonly #messages: PromptMessage[] = [];
  #isPlain = true;
  #hasResults = false;
  #isMarked = false;
  /** The hash of the first so many, behind something. */
  #hashed = { before: "", count: 0, hash: "" };
  /** How often something that was prepared was not the turn's any more. */
  #cuts = 0;

  follow(turn: readonly Message[], prepare: (message: Message, into: PromptMessage[]) => void): void {
    let same = 0;
    while (same < this.#source.length && this.#source[same] === turn[same]) same++;
    if (same < this.#source.length) this.#cut(same);
    for (let i = same; i < turn.length; i++) {
      prepare(turn[i]!, this.#messages);
      this.#source.push(turn[i]!);
      this.#see(this.#ends.at(-1) ?? 0);
      this.#ends.push(this.#messages.length);
    }
  }

  part(next: Continue): TurnPart {
    const messages = this.#messages.slice();
    const cuts = this.#cuts;
    return {
      messages,
      isPlain: this.#isPlain,
      hasResults: this.#hasResults,
      isMarked: this.#isMarked,
      hash: (before) => (cuts === this.#cuts ? this.#hash(before, messages, next) : messages.reduce(next, before)),
    };
  }

  #cut(count: number): void {
    this.#source.length = count;
    this.#ends.length = count;
    this.#messages.length = this.#ends.at(-1) ?? 0;
    this.#cuts++;
    [this.#isPlain, this.#hasResults, this.#isMarked] = [true, false, false];
    this.#hashed = { before: "", count: 0, hash: "" };
    this.#see(0);
  }

  #see(from: number): void {
    for (let i = from; i < this.#messages.length; i++) {
      const message = freezeJson(this.#messages[i]!);
      this.#isPlain &&= isPlain(message);
      this.#hasResults ||= isResult(message);
      this.#isMarked ||= isMarkedMessage(message);
    }
  }

  #hash(before: string, messages: readonly PromptMessage[], next: Continue): string {
    const { count } = this.#hashed;
    const goesOn = this.#hashed.before === before && count > 0 && count <= messages.length;
    let hash = goesOn ? this.#hashed.hash : before;
    for (let i = goesOn ? count : 0; i < messages.length; i++) hash = next(hash, messages[i]!);
    this.#hashed = { before, count: messages.length, hash };
    return hash;
  }
}
