// The closed turns of a conversation as prompts have them. What was prepared is kept by the array of messages, and extended. A
// fork has an array of its own with its parent's messages, and as many as a hundred children may begin on the same ones.
//   PreparedHistory-1. A message is prepared, looked at and hashed once in a process, whichever branches begin with it: what
//       another array begins with is pointed at, not copied.
//   PreparedHistory-2. A beginning is another array's only as far as both hold the same objects from the first message on.
//   PreparedHistory-3. A beginning has no beginning of its own, so that forks of forks don't become chains.

import { freezeJson } from "../base/json.ts";
import type { Message } from "../events/index.ts";
import type { PromptMessage } from "./port.ts";
import { isMarkedMessage, isPlain, isResult, type PromptFacts } from "./specification.ts";

type Prepare = (message: Message, into: PromptMessage[]) => void;
type Continue = (before: string, message: PromptMessage) => string;

/** How a kind of prompt is made of messages, and what was made so already. */
export interface Preparing {
  readonly prepare: Prepare;
  readonly next: Continue;
  readonly byArray: WeakMap<readonly Message[], PreparedHistory>;
  /** What a message was prepared by last. */
  readonly byMessage: WeakMap<Message, PreparedHistory>;
}

/** What an array shares with another one that was prepared before. */
interface Beginning {
  readonly of: PreparedHistory;
  /** How many messages of the history, and of the prompt. */
  readonly count: number;
  readonly length: number;
}

export function newPreparing(prepare: Prepare, next: Continue): Preparing {
  return { prepare, next, byArray: new WeakMap(), byMessage: new WeakMap() };
}

/** The history as it is now; extends what was prepared of it. */
export function prepareHistory(history: readonly Message[], preparing: Preparing): PreparedHistory {
  let prepared = preparing.byArray.get(history);
  if (!prepared || prepared.count > history.length) {
    prepared = PreparedHistory.behind(history, preparing);
    preparing.byArray.set(history, prepared);
  }
  prepared.extend();
  return prepared;
}

export class PreparedHistory {
  readonly #source: readonly Message[];
  readonly #preparing: Preparing;
  readonly #beginning: Beginning | undefined;
  /** Behind the beginning. */
  readonly #messages: PromptMessage[] = [];
  /** How many messages of the prompt there are up to each message behind the beginning. */
  readonly #ends: number[] = [];
  /** The hash of the conversation up to each message of the prompt behind the beginning, as far as it was asked for. */
  readonly #hashes: string[] = [];
  /** Where in the prompt the first message is that makes it other than plain, without results or without marks. */
  readonly #first = {
    odd: Number.POSITIVE_INFINITY,
    result: Number.POSITIVE_INFINITY,
    marked: Number.POSITIVE_INFINITY,
  };

  private constructor(source: readonly Message[], preparing: Preparing, beginning?: Beginning) {
    this.#source = source;
    this.#preparing = preparing;
    this.#beginning = beginning;
  }

  /** Begins with what another array of the same messages has prepared. */
  static behind(source: readonly Message[], preparing: Preparing): PreparedHistory {
    const at = source.findLastIndex((message) => preparing.byMessage.has(message));
    const other = at < 0 ? undefined : preparing.byMessage.get(source[at]!)!;
    const count = other ? other.#sharedWith(source) : 0;
    if (!other || count === 0) return new PreparedHistory(source, preparing);
    const beginning = other.#beginningFor(count);
    const made = new PreparedHistory(source, preparing, beginning);
    // PreparedHistory-3.
    for (let i = 0; beginning.of !== other && beginning.count + i < count; i++) made.#take(other, i);
    return made;
  }

  /** How many messages of the history are prepared. */
  get count(): number {
    return (this.#beginning?.count ?? 0) + this.#ends.length;
  }

  /** How many messages of the prompt they are. */
  get length(): number {
    return this.#before + this.#messages.length;
  }

  /** The messages of the prompt, in pieces that are only to be read. */
  get pieces(): readonly (readonly PromptMessage[])[] {
    if (!this.#beginning) return [this.#messages];
    const { of, length } = this.#beginning;
    return [length === of.#messages.length ? of.#messages : of.#messages.slice(0, length), this.#messages];
  }

  get facts(): PromptFacts {
    const begun = this.#beginning && this.#beginning.of.#first;
    const comesFirst = (which: "odd" | "result" | "marked") =>
      this.#first[which] < this.length || (begun !== undefined && begun[which] < this.#before);
    return { isPlain: !comesFirst("odd"), hasResults: comesFirst("result"), isMarked: comesFirst("marked") };
  }

  extend(): void {
    const { prepare, byMessage } = this.#preparing;
    while (this.count < this.#source.length) {
      const message = this.#source[this.count]!;
      const known = this.#messages.length;
      prepare(message, this.#messages);
      for (let i = known; i < this.#messages.length; i++) this.#see(freezeJson(this.#messages[i]!), i);
      this.#ends.push(this.length);
      byMessage.set(message, this);
    }
  }

  /** The hash of the first so many messages of the prompt. */
  hash(length: number): string {
    if (length === 0) return "";
    if (length <= this.#before) return this.#beginning!.of.hash(length);
    const own = length - this.#before;
    while (this.#hashes.length < own) {
      const before = this.#hashes.at(-1) ?? (this.#beginning ? this.#beginning.of.hash(this.#before) : "");
      this.#hashes.push(this.#preparing.next(before, this.#messages[this.#hashes.length]!));
    }
    return this.#hashes[own - 1]!;
  }

  get #before(): number {
    return this.#beginning?.length ?? 0;
  }

  /** PreparedHistory-2. */
  #sharedWith(source: readonly Message[]): number {
    const most = Math.min(this.count, this.#source.length, source.length);
    let count = 0;
    while (count < most && this.#source[count] === source[count]) count++;
    return count;
  }

  /** PreparedHistory-3. */
  #beginningFor(count: number): Beginning {
    const mine = this.#beginning;
    if (!mine) return { of: this, count, length: this.#ends[count - 1]! };
    if (count >= mine.count) return mine;
    return { of: mine.of, count, length: mine.of.#ends[count - 1]! };
  }

  /** Has what the other one prepared of its message at this place behind the beginning of both. */
  #take(other: PreparedHistory, place: number): void {
    const end = other.#ends[place]!;
    for (let i = this.#messages.length; i < end - other.#before; i++) {
      this.#messages.push(other.#messages[i]!);
      this.#see(other.#messages[i]!, i);
      if (i < other.#hashes.length) this.#hashes.push(other.#hashes[i]!);
    }
    this.#ends.push(end);
  }

  #see(message: PromptMessage, place: number): void {
    const at = this.#before + place;
    const first = this.#first;
    if (!isPlain(message)) first.odd = Math.min(first.odd, at);
    if (isResult(message)) first.result = Math.min(first.result, at);
    if (isMarkedMessage(message)) first.marked = Math.min(first.marked, at);
  }
}
