// TurnLog: how a run writes its turn and hears what others write on the branch meanwhile (answers, renames).
//   TurnLog-1. Facts that are ready at the same moment share one append.
//   TurnLog-2. Every fact of the branch since the run began is shown once, in the order of the log, others' included.
//   TurnLog-3. A fact is shown after the store has acknowledged it.
//   TurnLog-4. What builds on a message that is not written yet is written with it or after it, or refused with it.
//   TurnLog-5. What can't be stored is refused alone, not with what was ready at the same moment.

import { failpoint } from "../../base/failpoint.ts";
import type { AnyDraft } from "../../events/codec.ts";
import type { Fact, UnknownFact } from "../../events/index.ts";
import type { Context } from "../../sessions/context.ts";
import type { HeldTurn } from "../../sessions/turn-writer.ts";
import type { Emitter, Span } from "../emit.ts";
import { isRefusal } from "./keepable.ts";

interface Waiting {
  readonly drafts: readonly AnyDraft[];
  readonly resolve: (facts: readonly Fact[]) => void;
  readonly reject: (error: unknown) => void;
  /** What waits behind it builds on it (TurnLog-4). */
  readonly isAhead?: true;
}

export class TurnLog {
  readonly #context: Context;
  readonly #held: HeldTurn;
  readonly #emitter: Emitter;
  readonly #onFact: (fact: Fact | UnknownFact) => void;
  #waiting: Waiting[] = [];
  /** The end of what is being written or caught up with: one thing at a time. */
  #busy: Promise<void> | undefined;
  /** The position up to which facts were shown. */
  #shown: number;

  constructor(options: {
    context: Context;
    held: HeldTurn;
    emitter: Emitter;
    onFact: (fact: Fact | UnknownFact) => void;
    /** The position up to which facts were shown before; absent when the opening is to be shown. */
    shown?: number | undefined;
  }) {
    this.#context = options.context;
    this.#held = options.held;
    this.#emitter = options.emitter;
    this.#onFact = options.onFact;
    this.#shown = options.shown ?? options.held.opening[0]!.seq - 1;
    if (options.shown === undefined) this.#show(options.held.opening);
  }

  get shown(): number {
    return this.#shown;
  }

  /** Appends drafts all or nothing, together with what else is ready (TurnLog-1). */
  write(...drafts: AnyDraft[]): Promise<readonly Fact[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ drafts, resolve, reject });
      this.#busy ??= this.#flush();
    });
  }

  /**
   * Appends a message that others build on at once (TurnLog-4). The event loop turns first, so that what is ready by then is in the
   * same append. `onRefused` is called before anything else builds on it.
   */
  writeAhead(message: AnyDraft, onRefused: (error: unknown) => void): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const refuse = (error: unknown) => {
        onRefused(error);
        reject(error);
      };
      this.#waiting.push({ drafts: [message], resolve, reject: refuse, isAhead: true });
      this.#busy ??= this.#flush(new Promise((turned) => setImmediate(turned)));
    });
  }

  /** Writes through a function of the held turn, in its place among the appends: for what is decided on the newest view. */
  through(write: () => Promise<readonly Fact[]>): Promise<readonly Fact[]> {
    return this.#inTurn(async () => {
      const facts = await write();
      if (facts.length > 0) await this.#showInOrder(facts);
      return facts;
    });
  }

  /** The same for the append that closes the turn. */
  last(close: () => Promise<readonly Fact[]>): Promise<readonly Fact[]> {
    return this.#inTurn(async () => {
      failpoint("run.turn.closing");
      const facts = await close();
      if (facts.length === 0) return facts;
      failpoint("run.turn.closed");
      // It is closed, whatever becomes of showing it: once given back, the branch may be gone before it is read again.
      await this.#showInOrder(facts).catch(() => this.#show(facts.filter(({ seq }) => seq > this.#shown)));
      return facts;
    });
  }

  /** Shows what others wrote since. */
  catchUp(): Promise<void> {
    return this.#inTurn(() => this.#showNew(Number.MAX_SAFE_INTEGER));
  }

  /** Resolves when everything handed over so far is written and shown, or refused. */
  async settle(): Promise<void> {
    while (this.#busy) await this.#busy;
  }

  /** Does what reads or shows when nothing else does; what becomes ready meanwhile is written afterwards. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    while (this.#busy) await this.#busy;
    const working = work();
    const next = () => {
      this.#busy = this.#waiting.length > 0 ? this.#flush() : undefined;
    };
    this.#busy = working.then(next, next);
    return working;
  }

  async #flush(ready?: Promise<void>): Promise<void> {
    // One step later at least, so that whatever becomes ready in this one is in the same append.
    await ready;
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        await this.#append(group);
      } catch (error) {
        // TurnLog-5: each alone, so that only the one that can't be stored is refused.
        if (group.length > 1 && isRefusal(error)) await this.#appendEach(group);
        else this.#refuse(group, error);
      }
    }
    this.#busy = undefined;
  }

  async #appendEach(group: Waiting[]): Promise<void> {
    for (const [i, waiting] of group.entries()) {
      try {
        await this.#append([waiting]);
      } catch (error) {
        if (waiting.isAhead) return this.#refuse(group.slice(i), error);
        waiting.reject(error);
      }
    }
  }

  async #append(group: readonly Waiting[]): Promise<void> {
    const facts = await this.#held.append(...group.flatMap(({ drafts }) => drafts));
    await this.#showInOrder(facts);
    let at = 0;
    for (const { drafts, resolve } of group) {
      resolve(facts.slice(at, at + drafts.length));
      at += drafts.length;
    }
  }

  #refuse(group: Waiting[], error: unknown): void {
    if (group.some(({ isAhead }) => isAhead)) group.push(...this.#waiting.splice(0));
    for (const { reject } of group) reject(error);
  }

  /** TurnLog-2: what others wrote before these facts goes first. */
  async #showInOrder(facts: readonly Fact[]): Promise<void> {
    const first = facts[0]!.seq;
    if (first > this.#shown + 1) await this.#showNew(first);
    this.#show(facts.filter(({ seq }) => seq > this.#shown));
  }

  async #showNew(before: number): Promise<void> {
    for (;;) {
      const { facts } = await this.#context.journal.read(this.#held.ref, { after: this.#shown, before });
      if (facts.length === 0) return;
      this.#show(facts);
    }
  }

  #show(facts: readonly (Fact | UnknownFact)[], span?: Span): void {
    if (facts.length === 0) return;
    this.#shown = facts.at(-1)!.seq;
    for (const fact of facts) this.#onFact(fact);
    this.#emitter.kept(facts, span);
  }
}
