// RunFollower: picks the events of one turn out of a branch's stream, from its run's beginning to the turn's end.
//   RunFollower-1. Nothing is handed on before the run is known: until then events are held.
//   RunFollower-2. Text that a lost connection swallowed comes as one delta, made from the server's snapshot.

import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { BoughEvent, Fact } from "../events/index.ts";
import type { MessageSnapshot } from "../wire/frames.ts";
import type { SubscribeOptions, Subscription } from "./subscription.ts";

type Close = Fact<"turn.committed" | "turn.staged" | "turn.ended" | "turn.discarded">;

const closes = new Set<string>(["turn.committed", "turn.staged", "turn.ended", "turn.discarded"]);

export class RunFollower {
  readonly #hand: (event: BoughEvent) => void;
  readonly #leaving = new AbortController();
  readonly #texts = new Map<string, string>();
  #held: BoughEvent[] | undefined = [];
  #runId: string | undefined;
  #isEnded = false;
  #isRunOver = false;
  /** The run has ended as parked, and that was not handled yet. */
  #hasParked = false;
  #settle: (end: Close) => void = () => {};
  #fail: (error: unknown) => void = () => {};
  #stir: () => void = () => {};
  /** The turn that the run works on, once that is known. */
  turnId: string | undefined;
  /** The turn's open questions. */
  readonly #asks = new Set<string>();
  /** The fact that closes the turn; rejects when the branch can't be read any more. */
  readonly ended: Promise<Close>;

  constructor(hand: (event: BoughEvent) => void) {
    this.#hand = hand;
    this.ended = new Promise((resolve, reject) => {
      this.#settle = resolve;
      this.#fail = reject;
    });
    this.ended.catch(() => {});
  }

  /** Aborts when nothing is followed any more. */
  get over(): AbortSignal {
    return this.#leaving.signal;
  }

  get mayBeParked(): boolean {
    return this.turnId !== undefined && this.#asks.size > 0 && !this.#isEnded;
  }

  /** Resolves when whatever happens from now on will be heard. */
  listen(subscribe: (options: SubscribeOptions) => Subscription, after: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const subscription = subscribe({
        after,
        signal: this.over,
        onEvent: (event) => this.#event(event),
        onSnapshot: (message) => this.#snapshot(message),
        onReady: () => {
          resolve();
          this.#stir();
        },
      });
      void subscription.ended.then(({ error }) => {
        const failure = error ?? new BoughError("aborted", "The connection was closed.");
        reject(failure);
        this.#fail(failure);
      });
    });
  }

  /** The run is known, and the turn that it takes up, if it begins none. */
  started(runId: string, resumed?: { readonly turnId: string; readonly asks: readonly string[] }): void {
    this.#runId = runId;
    this.turnId = resumed?.turnId;
    for (const id of resumed?.asks ?? []) this.#asks.add(id);
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const event of held) this.#event(event);
  }

  close(): void {
    this.#leaving.abort();
    this.#stir();
  }

  /** Waits for the live event that ends the run, which follows the turn's last fact unless it is lost. */
  async runEnd(clock: Clock, ms: number): Promise<void> {
    if (!this.#isRunOver) await this.quiet(clock, ms);
  }

  /** Resolves after a time, when the run has parked or ended, or when the connection is new. */
  async quiet(clock: Clock, ms: number): Promise<void> {
    if (this.#hasParked) {
      this.#hasParked = false;
      return;
    }
    const over = new AbortController();
    const stirred = new Promise<void>((resolve) => {
      this.#stir = resolve;
    });
    await Promise.race([stirred, clock.sleep(ms, AbortSignal.any([this.over, over.signal]))]);
    over.abort();
  }

  #event(event: BoughEvent): void {
    if (this.#held) return void this.#held.push(event);
    if (this.#isRunOver && this.#isEnded) return;
    this.#recognise(event);
    const isOurs = event.seq === undefined ? event.runId === this.#runId || this.#isOfTurn(event) : this.#isBegun;
    if (!isOurs) return;
    this.#note(event);
    this.#hand(event);
    if (closes.has(event.type) && this.#isOfTurn(event)) {
      this.#isEnded = true;
      this.#settle(event as unknown as Close);
    }
  }

  /** The turn begins with the run, or is taken up by it. */
  #recognise(event: BoughEvent): void {
    if (event.type === "turn.started" && event.runId === this.#runId) this.turnId = event.id;
    if (event.type === "turn.resumed" && event.runId === this.#runId) this.turnId = event.turnId;
  }

  get #isBegun(): boolean {
    return this.turnId !== undefined && !this.#isEnded;
  }

  #isOfTurn(event: BoughEvent): boolean {
    return this.turnId !== undefined && event.turnId === this.turnId;
  }

  #note(event: BoughEvent): void {
    if (event.type === "text-delta") this.#add(event.messageId, event.text);
    if (event.type === "message.added") this.#texts.delete(event.id);
    if (event.type === "interaction.opened") this.#asks.add(event.id);
    if (event.type === "interaction.answered" || event.type === "interaction.expired")
      this.#asks.delete(event.interactionId);
    if (event.type !== "run-end") return;
    if (event.status === "parked") this.#hasParked = true;
    else this.#isRunOver = true;
    this.#stir();
  }

  /** RunFollower-2. */
  #snapshot({ messageId, text, turnId, runId, sessionId, branchId }: MessageSnapshot): void {
    if (this.#held || !this.#isBegun || (turnId !== undefined && turnId !== this.turnId)) return;
    const known = this.#texts.get(messageId) ?? "";
    const rest = text.startsWith(known) ? text.slice(known.length) : "";
    if (rest === "") return;
    this.#add(messageId, rest);
    // Written out: the definitions of events would bring a validator into every page.
    const address = {
      version: 1,
      channel: "streaming",
      direction: "down",
      sessionId,
      branchId,
      at: Date.now(),
    } as const;
    const ids = { messageId, ...(turnId && { turnId }), ...(runId && { runId }) };
    this.#hand({ ...address, type: "text-delta", ...ids, text: rest });
  }

  #add(messageId: string, text: string): void {
    this.#texts.set(messageId, (this.#texts.get(messageId) ?? "") + text);
  }
}
