// Emit: the only exit of a run. What happens leaves through here, with its address: to whoever iterates the run, to
// the agent's subscribers, and to other processes.
//   E1. Kept events are emitted after the store has acknowledged them, in the order of the log.
//   E2. Nothing is built for nobody: without a reader, without subscribers and without other processes that could ask, a
//       live event costs three comparisons.
//   E3. run-end is the last live event: work that was abandoned shows nothing any more. Facts still come through.

import type { Clock } from "../base/clock.ts";
import type { Mailbox } from "../base/mailbox.ts";
import { hexOf } from "../base/trace.ts";
import {
  type BoughEvent,
  type Fact,
  keptEvent,
  type LiveDraft,
  type LiveEvent,
  type LiveType,
  liveEvent,
  type Routing,
  type UnknownFact,
} from "../events/index.ts";
import type { Hub, LiveSender } from "../live/index.ts";

/** A stretch of a run in its trace. */
export interface Span {
  readonly spanId: string;
  readonly parentSpanId?: string;
}

/** What a stretch is while nobody listens. */
const unseen: Span = { spanId: "0".repeat(16) };

export class Emitter {
  readonly #mailbox: Mailbox<BoughEvent>;
  readonly #hub: Hub;
  readonly #clock: Clock;
  #routing: Routing & { turnId?: string };
  #spans = 0;
  /** The last live event, if it was a delta. */
  #delta: { event: LiveEvent; span: Span | undefined } | undefined;
  #isOver = false;
  /** Where other processes can see the run. */
  #sender: LiveSender | undefined;

  constructor(options: { mailbox: Mailbox<BoughEvent>; hub: Hub; clock: Clock; routing: Routing }) {
    this.#mailbox = options.mailbox;
    this.#hub = options.hub;
    this.#clock = options.clock;
    this.#routing = options.routing;
  }

  /** From here on other processes are shown what happens, too. */
  sendTo(sender: LiveSender): void {
    this.#sender = sender;
  }

  /** The turn is known: from here on events carry its id, and its trace. */
  enterTurn(turnId: string): void {
    this.#routing = { ...this.#routing, turnId };
    if (this.isHeard) this.#trace();
  }

  /** Trace and span of the turn; made when somebody is there to see them. */
  #trace(): void {
    const { turnId = "", runId = turnId } = this.#routing;
    this.#routing = { ...this.#routing, traceId: hexOf(turnId, 32), spanId: hexOf(runId, 16) };
  }

  /** A stretch below another one; below the turn's own by default. */
  span(parent?: Span): Span {
    const number = ++this.#spans;
    if (!this.isHeard) return unseen;
    if (!this.#routing.traceId) this.#trace();
    const { runId = "", spanId } = this.#routing;
    const parentSpanId = parent?.spanId ?? spanId;
    return { spanId: hexOf(`${runId}.${number}`, 16), ...(parentSpanId && { parentSpanId }) };
  }

  /** Whether the end of the run was shown. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get isHeard(): boolean {
    return !this.#mailbox.isLeft || this.#hub.isHeard || this.#sender !== undefined;
  }

  /** Whether somebody reads such events now: what is dear to make is not made for those who may come later. */
  isWatched(type: LiveType): boolean {
    return (this.#mailbox.isTaken && !this.#mailbox.isLeft) || this.#hub.hears(type);
  }

  live(draft: LiveDraft, span?: Span): void {
    if (this.#isOver || !this.isHeard) return;
    const at = this.#clock.now();
    const next = "text" in draft ? this.#nextDelta(draft, at, span) : undefined;
    if (next) {
      this.#send(next);
      return;
    }
    const routing = span ? { ...this.#routing, ...span } : this.#routing;
    const event = liveEvent(draft, { ...routing, at });
    // Its own, because it is what the next ones are made of.
    this.#delta = "text" in draft ? { event: { ...event }, span } : undefined;
    this.#send(event);
  }

  /** A delta like the one before it, but for its text: there are thousands, and copying one is cheaper than making it. */
  #nextDelta(draft: Extract<LiveDraft, { text: string }>, at: number, span: Span | undefined): LiveEvent | undefined {
    const { event, span: before } = this.#delta ?? {};
    if (event?.type !== draft.type || event.messageId !== draft.messageId || before !== span) return undefined;
    if ("callId" in draft && (!("callId" in event) || event.callId !== draft.callId)) return undefined;
    return { ...event, at, text: draft.text } as LiveEvent;
  }

  /** The end of the run (E3). */
  end(draft: LiveDraft<"run-end">): void {
    this.live(draft);
    this.#isOver = true;
  }

  kept(facts: readonly (Fact | UnknownFact)[], span?: Span): void {
    if (!this.isHeard) return;
    const { turnId, ...address } = this.#routing;
    const routing = span ? { ...address, ...span } : address;
    for (const fact of facts) {
      // Answers and ends of tasks name what they belong to, which is of this turn; others' facts are of none.
      const isOurs = "interactionId" in fact || "taskId" in fact;
      this.#send(keptEvent(fact, isOurs && turnId ? { ...routing, turnId } : routing));
    }
  }

  #send(event: BoughEvent): void {
    // E3: a task that ends later is told to subscribers only.
    if (!this.#isOver || event.type === "run-end") this.#mailbox.push(event);
    if (this.#hub.isHeard) this.#hub.publish(event);
    // Kept until it is sent.
    this.#sender?.note({ ...event });
  }
}
