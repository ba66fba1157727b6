// TurnChildren: the children of one turn, as far as this run knows them. It owns which children are under way, how those that
// ended did, and what all of them used.
//   TurnChildren-1. A child is spawned once at a time: who asks for it again waits for the same one.
//   TurnChildren-2. What a child used is counted once: as it goes while it runs, from its end's fact once it has ended.

import type { ChildEnd } from "../../events/drafts.ts";
import type { Fact, UnknownFact } from "../../events/index.ts";
import { addUsage, tokensOf, type Usage } from "../../models/index.ts";
import type { ClosedChild } from "./look.ts";

/** How a child ended, and what it used with its own children. */
export interface EndedChild {
  readonly end: ChildEnd;
  readonly usage: Usage;
}

export class TurnChildren {
  /** Children that ended and whose calls have no result yet. */
  readonly #ended = new Map<string, Map<string, EndedChild>>();
  readonly #spawned = new Map<string, Promise<ClosedChild>>();
  /** What children use that have not ended, by their turn. */
  readonly #running = new Map<string, () => number>();
  readonly #busy = new Map<string, number>();
  readonly #idle: (() => void)[] = [];
  /** Of the calls that have their results. */
  #usage: Usage = {};

  /** TurnChildren-1. */
  once(turnId: string, spawn: () => Promise<ClosedChild>): Promise<ClosedChild> {
    const known = this.#spawned.get(turnId);
    if (known) return known;
    const spawning = spawn().finally(() => this.#spawned.delete(turnId));
    this.#spawned.set(turnId, spawning);
    return spawning;
  }

  /** Counts a child of a call that does something, as opposed to one that waits for people; the function ends it. */
  busy(callId: string): () => void {
    this.#busy.set(callId, this.busyOf(callId) + 1);
    return () => {
      this.#busy.set(callId, this.busyOf(callId) - 1);
      if (this.busyOf(callId) === 0) for (const wake of this.#idle.splice(0)) wake();
    };
  }

  /** Resolves when the next call has no child left that does something. */
  whenIdle(): Promise<void> {
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  busyOf(callId: string): number {
    return this.#busy.get(callId) ?? 0;
  }

  /** A child is under way; the function tells what it has used so far. */
  track(turnId: string, tokens: () => number): void {
    this.#running.set(turnId, tokens);
  }

  ended(callId: string, child: EndedChild): void {
    this.#running.delete(child.end.turnId);
    const ended = this.#ended.get(callId) ?? new Map<string, EndedChild>();
    this.#ended.set(callId, ended.set(child.end.turnId, child));
  }

  /** What the result of a call tells of its children. */
  resultOf(callId: string): { child?: ChildEnd; children?: ChildEnd[]; usage?: Usage } {
    const ended = [...(this.#ended.get(callId)?.values() ?? [])];
    if (ended.length === 0) return {};
    const ends = ended.map(({ end }) => end);
    const usage = ended.reduce((sum, child) => addUsage(sum, child.usage), {} as Usage);
    return { ...(ends.length === 1 ? { child: ends[0]! } : { children: ends }), usage };
  }

  /** Told of every fact of the turn. */
  see(fact: Fact | UnknownFact): void {
    if (fact.type !== "tool.returned" && fact.type !== "step.returned") return;
    this.#ended.delete(fact.type === "tool.returned" ? fact.callId : fact.key);
    if (fact.usage) this.#usage = addUsage(this.#usage, fact.usage as Usage);
  }

  /** What children used that have ended. */
  get usage(): Usage {
    let sum = this.#usage;
    for (const ended of this.#ended.values()) for (const child of ended.values()) sum = addUsage(sum, child.usage);
    return sum;
  }

  /** The same in tokens, with what those use that have not ended (TurnChildren-2). */
  get tokens(): number {
    let sum = tokensOf(this.usage);
    for (const tokens of this.#running.values()) sum += tokens();
    return sum;
  }

  get isUnderWay(): boolean {
    return this.#spawned.size > 0;
  }

  /** Resolves when nothing is under way any more, however it ended. */
  async settle(): Promise<void> {
    while (this.#spawned.size > 0) await Promise.allSettled(this.#spawned.values());
  }
}
