// Emit: the only exit of a run. What happens leaves through here, with its address: to whoever iterates the run, and to
// the agent's subscribers.
//   E1. Kept events are emitted after the store has acknowledged them, in the order of the log.
//   E2. Nothing is built for nobody: without a reader and without subscribers a live event costs two comparisons.
//   E3. run-end is the last live event: work that was abandoned shows nothing any more. Facts still come through.

import type { Clock } from "../base/clock.ts";
import type { Mailbox } from "../base/mailbox.ts";
import { hexOf } from "../base/trace.ts";
import {
  type BoughEvent,
  type Fact,
  keptEvent,
  type LiveDraft,
  liveEvent,
  type Routing,
  type UnknownFact,
} from "../events/index.ts";
import type { Hub } from "../live/index.ts";

/** A stretch of a run in its trace. */
export interface Span {
  readonly spanId: string;
  readonly parentSpanId?: string;
}

export class Emitter {
  readonly #mailbox: Mailbox<BoughEvent>;
  readonly #hub: Hub;
  readonly #clock: Clock;
  #routing: Routing & { turnId?: string };
  #spans = 0;
  #isOver = false;

  constructor(options: { mailbox: Mailbox<BoughEvent>; hub: Hub; clock: Clock; routing: Routing }) {
    this.#mailbox = options.mailbox;
    this.#hub = options.hub;
    this.#clock = options.clock;
    this.#routing = options.routing;
  }

  /** The turn is known: from here on events carry its id, and its trace. */
  enterTurn(turnId: string): void {
    const { runId = turnId } = this.#routing;
    this.#routing = { ...this.#routing, turnId, traceId: hexOf(turnId, 32), spanId: hexOf(runId, 16) };
  }

  /** A stretch below another one; below the turn's own by default. */
  span(parent?: Span): Span {
    const { runId = "", spanId } = this.#routing;
    const parentSpanId = parent?.spanId ?? spanId;
    return { spanId: hexOf(`${runId}.${++this.#spans}`, 16), ...(parentSpanId && { parentSpanId }) };
  }

  get isHeard(): boolean {
    return !this.#mailbox.isLeft || this.#hub.isHeard;
  }

  live(draft: LiveDraft, span?: Span): void {
    if (this.#isOver || !this.isHeard) return;
    const routing = span ? { ...this.#routing, ...span } : this.#routing;
    this.#send(liveEvent(draft, { ...routing, at: this.#clock.now() }));
  }

  /** The end of the run (E3). */
  end(draft: LiveDraft<"run-end">): void {
    this.live(draft);
    this.#isOver = true;
  }

  kept(facts: readonly (Fact | UnknownFact)[], span?: Span): void {
    if (!this.isHeard) return;
    const { turnId: _turn, ...address } = this.#routing;
    const routing = span ? { ...address, ...span } : address;
    for (const fact of facts) this.#send(keptEvent(fact, routing));
  }

  #send(event: BoughEvent): void {
    this.#mailbox.push(event);
    if (this.#hub.isHeard) this.#hub.publish(event);
  }
}
