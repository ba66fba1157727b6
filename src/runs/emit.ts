// Emit: the only exit of a run. What happens leaves through here, with its address: to the run's reader, to the
// agent's subscribers, and to other processes.
//   Emit-1. Kept events are emitted after the store has acknowledged them, in the order of the log.
//   Emit-2. Nothing is built in vain: without a reader, without subscribers and without other processes that could ask, a
//       live event costs four comparisons.
//   Emit-3. run-end is the last live event: work that was abandoned shows nothing any more. Facts still come through.
//   Emit-4. What a child run emits also reaches the readers of the run that started it, with the child's own address. Other
//       processes see it through the child's own sender.
//   Emit-5. A child's questions are the exception: their mirrors are questions of the parent itself.

import type { Clock } from "../base/clock.ts";
import type { Mailbox } from "../base/mailbox.ts";
import { hexOf } from "../base/trace.ts";
import {
  type AgentStamp,
  type BoughEvent,
  type Fact,
  keptEvent,
  type LiveDraft,
  type LiveEvent,
  type LiveType,
  liveEvent,
  type OwnEventTable,
  type Routing,
  type UnknownFact,
} from "../events/index.ts";
import { presentOwn } from "../events/present-own.ts";
import type { Hub, LiveSender } from "../live/index.ts";

/** A stretch of a run in its trace. */
export interface Span {
  readonly spanId: string;
  readonly parentSpanId?: string;
}

/** The span while nothing listens. */
const unseen: Span = { spanId: "0".repeat(16) };

export interface EmitterOptions {
  readonly mailbox: Mailbox<BoughEvent>;
  readonly hub: Hub;
  readonly clock: Clock;
  /** The event types of the program. */
  readonly events: OwnEventTable;
  readonly routing: Routing;
  /** The emitter of the run that started this one (Emit-4). */
  readonly parent?: Emitter | undefined;
  /** Whether the run's reader gets the run's own events only. */
  readonly ownOnly?: boolean | undefined;
}

export class Emitter {
  readonly #mailbox: Mailbox<BoughEvent>;
  readonly #hub: Hub;
  /** The event types of the program: an iteration of the run shows them under their own names. */
  readonly #events: OwnEventTable;
  readonly #clock: Clock;
  #routing: Routing & { turnId?: string };
  #spans = 0;
  /** The last live event, if it was a delta. */
  #delta: { event: LiveEvent; span: Span | undefined } | undefined;
  #isOver = false;
  /** Where other processes can see the run. */
  #sender: LiveSender | undefined;
  /** The emitter of the run that started this one. */
  readonly #parent: Emitter | undefined;
  readonly #ownOnly: boolean;

  constructor(options: EmitterOptions) {
    this.#events = options.events;
    this.#mailbox = options.mailbox;
    this.#hub = options.hub;
    this.#parent = options.parent;
    this.#ownOnly = options.ownOnly === true;
    this.#clock = options.clock;
    this.#routing = options.routing;
  }

  /** From here on other processes are shown what happens, too. */
  sendTo(sender: LiveSender): void {
    this.#sender = sender;
  }

  /** The turn is known, and with it the agents that it works for: from here on events carry its id, and its trace. */
  enterTurn(turnId: string, agent: AgentStamp): void {
    this.#routing = { ...this.#routing, turnId, agent };
    if (this.isHeard) this.#trace();
  }

  /** Trace and span of the turn; made when something listens. */
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
    return !this.#mailbox.isLeft || this.#hub.isHeard || this.#sender !== undefined || this.#parent?.isHeard === true;
  }

  /** Whether such events have a reader now: expensive ones are not built for readers that may come later. */
  isWatched(type: LiveType): boolean {
    const isRead = this.#mailbox.isTaken && !this.#mailbox.isLeft;
    return isRead || this.#hub.hears(type) || this.#parent?.isWatched(type) === true;
  }

  live(draft: LiveDraft, span?: Span): void {
    if (this.#isOver || !this.isHeard) return;
    const at = this.#clock.now();
    const isDelta = "text" in draft && "messageId" in draft;
    const next = isDelta ? this.#nextDelta(draft, at, span) : undefined;
    if (next) {
      this.#send(next);
      return;
    }
    const routing = span ? { ...this.#routing, ...span } : this.#routing;
    const event = liveEvent(draft, { ...routing, at });
    // Its own, because it is what the next ones are made of.
    this.#delta = isDelta ? { event: { ...event }, span } : undefined;
    this.#send(event);
  }

  /** A delta like the one before it, but for its text: there are thousands, and copying one is cheaper than making it. */
  #nextDelta(
    draft: Extract<LiveDraft, { text: string; messageId: string }>,
    at: number,
    span: Span | undefined,
  ): LiveEvent | undefined {
    const { event, span: before } = this.#delta ?? {};
    if (event?.type !== draft.type || before !== span) return undefined;
    if (!("messageId" in event) || event.messageId !== draft.messageId) return undefined;
    if ("callId" in draft && (!("callId" in event) || event.callId !== draft.callId)) return undefined;
    return { ...event, at, text: draft.text } as LiveEvent;
  }

  /** The end of the run (Emit-3). */
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

  /** Shows facts of a child that another process runs (Emit-4). */
  relay(facts: readonly (Fact | UnknownFact)[], routing: Routing): void {
    if (!this.isHeard) return;
    for (const fact of facts) this.#pass(keptEvent(fact, routing), []);
  }

  #send(event: BoughEvent): void {
    // Emit-3: a task that ends later is shown to subscribers only.
    if (!this.#isOver || event.type === "run-end") this.#mailbox.push(presentOwn(this.#events, event));
    if (this.#hub.isHeard) this.#hub.publish(event);
    // Kept until it is sent.
    this.#sender?.note({ ...event });
    if (this.#parent) this.#parent.#pass(event, [this.#hub]);
  }

  /** Emit-4. `told` are the hubs that have the event: an agent that starts itself has one for all its runs. */
  #pass(event: BoughEvent, told: Hub[]): void {
    // Emit-5.
    if (event.type.startsWith("interaction.")) return;
    // Emit-3: nothing after this run's own end. Each reader gets its own: what one does to it is seen by no other.
    if (!this.#isOver && !this.#ownOnly) this.#mailbox.push({ ...event });
    if (this.#hub.isHeard && !told.includes(this.#hub)) this.#hub.publish(event);
    if (this.#parent) this.#parent.#pass(event, [...told, this.#hub]);
  }
}
