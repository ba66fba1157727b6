// Subscription: the events of a branch, over as many connections as it takes. It owns the cursor.
//   Subscription-1. A kept event is handed on once, in the order of the log: the next one after the cursor, or none.
//   Subscription-2. The cursor moves when the handler is done with an event, and not when it fails: then the event comes again.
//   Subscription-3. One thing is handled at a time; while it is, nothing more is read.
//   Subscription-4. It ends once: closed by its owner, or failed for good. After that no handler is called.

import { optionKeys } from "../base/options.ts";
import type { BoughEvent } from "../events/index.ts";
import type { MessageSnapshot } from "../wire/frames.ts";
import type { ClientConnection } from "./connection.ts";
import { isRemoteError, problemError } from "./errors.ts";
import { Following, type FollowingOptions, HandlerFailure } from "./following.ts";
import type { Arrival, Transport } from "./transport.ts";

/** Options and handlers of a subscription. Handlers may be asynchronous; the next call waits for them. */
export interface SubscribeOptions<Event = BoughEvent> {
  /**
   * The cursor: delivers events after it (default 0: all of them). A function is called before the first connection, and again
   * if the branch no longer has that position.
   */
  readonly after?: number | ((signal: AbortSignal) => Promise<number>);
  /** An event of the branch: kept (it has `seq`), or live and best effort. */
  onEvent(event: Event): unknown;
  /** An event of a subagent's branch. */
  onChild?(event: BoughEvent): unknown;
  /** A message that is being streamed, as it is now; replaces its earlier deltas. */
  onSnapshot?(message: MessageSnapshot): unknown;
  /** All past events have arrived; what follows is live. */
  onReady?(seq: number): unknown;
  /** The connection has changed. */
  onConnection?(connection: ClientConnection): void;
  /** How many consecutive failures of a handler end the subscription (default 3). */
  readonly attempts?: number;
  /** Closes the subscription. */
  readonly signal?: AbortSignal;
}

export const subscribeKeys = optionKeys<SubscribeOptions>({
  after: true,
  onEvent: true,
  onChild: true,
  onSnapshot: true,
  onReady: true,
  onConnection: true,
  attempts: true,
  signal: true,
});

export interface SubscriptionOptions extends SubscribeOptions, Omit<FollowingOptions, keyof SubscribeOptions> {
  readonly transport: Transport;
}

/** A subscription to the events of a branch. */
export class Subscription extends Following {
  readonly #options: SubscriptionOptions;
  #cursor: number | undefined;
  #failures = 0;

  /** Use `subscribe` of a branch. */
  constructor(options: SubscriptionOptions) {
    super(options);
    this.#options = options;
    if (typeof options.after !== "function") this.#cursor = options.after ?? 0;
  }

  /** The position of the last handled event, from which a later subscription can continue. */
  get cursor(): number {
    return this.#cursor ?? 0;
  }

  protected async read(signal: AbortSignal): Promise<void> {
    const { transport, after } = this.#options;
    if (this.#cursor === undefined && typeof after === "function") this.#cursor = await this.alive(after(signal));
    const batches = (await this.alive(transport.open(this.cursor, signal)))[Symbol.asyncIterator]();
    this.input("opened");
    try {
      while (this.isReading) {
        const next = await this.alive(batches.next());
        if (next.done) return;
        for (const arrival of next.value) {
          if (!this.isReading || (await this.#take(arrival)) === "end") return;
        }
      }
    } finally {
      // Not waited for: what hangs is dropped by the signal.
      void batches.return?.()?.catch(() => {});
    }
  }

  async #take(arrival: Arrival): Promise<"end" | undefined> {
    const { onEvent, onChild, onSnapshot, onReady } = this.#options;
    if (arrival.type === "event") return this.#event(arrival.event, onEvent);
    if (arrival.type === "child") await this.hand(() => onChild?.(arrival.event));
    else if (arrival.type === "snapshot") await this.hand(() => onSnapshot?.(arrival.message));
    else if (arrival.type === "ready") {
      this.input("ready");
      await this.hand(() => onReady?.(arrival.seq));
    } else if (arrival.type === "retry") this.retryMs = arrival.ms;
    else if (arrival.type === "reset") throw problemError(arrival.problem);
    else if (arrival.type === "end") return "end";
    return undefined;
  }

  async #event(event: BoughEvent, onEvent: SubscribeOptions["onEvent"]): Promise<"end" | undefined> {
    const { seq } = event;
    if (seq !== undefined) {
      if (seq <= this.cursor) return undefined;
      // Subscription-1: something is missing, so this is not the stream it should be; the next one begins at the cursor.
      if (seq !== this.cursor + 1) return "end";
    }
    await this.hand(() => onEvent(event));
    if (seq === undefined) return undefined;
    this.#cursor = seq;
    this.#failures = 0;
    this.input("advanced");
    return undefined;
  }

  protected settle(error: unknown): void {
    const { after, attempts = 3 } = this.#options;
    if (error instanceof HandlerFailure) {
      this.#failures++;
      this.input(this.#failures >= attempts ? "refused" : "lost", error.error);
    } else if (isRemoteError(error, "position_not_on_branch") && typeof after === "function") {
      this.#cursor = undefined;
      this.input("lost", error);
    } else {
      // What is not the server's refusal is a broken line, or a frame cut in the middle.
      this.input(isRemoteError(error) && !error.retryable ? "refused" : "lost", error);
    }
  }
}
