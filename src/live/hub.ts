// Hub: hands events to subscribers. It owns one mailbox for each, and knows nothing of runs or the log.
//   Hub-1. publish() never waits and never throws: a slow subscriber loses live events, a failing one is reported.
//   Hub-2. A subscriber gets events in the order of publication, one at a time.
//   Hub-3. Kept events are never dropped for a subscriber; live ones are, oldest first, and it gets their number. One that
//       wants events of a single type gets nothing else, so it is not told.

import { Mailbox } from "../base/mailbox.ts";
import type { BoughEvent } from "../events/index.ts";

/** Called for each event; the next one waits until it is done. */
export type Subscriber<E extends BoughEvent = BoughEvent> = (event: E) => void | Promise<void>;

interface Subscription {
  readonly type: string;
  readonly mailbox: Mailbox<BoughEvent>;
}

export class Hub {
  readonly #subscriptions = new Set<Subscription>();
  readonly #onError: (error: unknown) => void;

  constructor({ onError }: { onError: (error: unknown) => void }) {
    this.#onError = onError;
  }

  /** Whether there is any subscriber. */
  get isHeard(): boolean {
    return this.#subscriptions.size > 0;
  }

  /** Whether there is a subscriber for events of this type. */
  hears(type: BoughEvent["type"]): boolean {
    for (const { type: wanted } of this.#subscriptions) if (wanted === "*" || wanted === type) return true;
    return false;
  }

  publish(event: BoughEvent): void {
    for (const { type, mailbox } of this.#subscriptions) {
      // Each gets its own: what one does to it is seen by no other.
      if (type === "*" || type === event.type) mailbox.push({ ...event });
    }
  }

  /** Returns a function that unsubscribes; events still waiting for the subscriber are then dropped. */
  subscribe(type: string, subscriber: Subscriber): () => void {
    const mailbox = eventMailbox(type);
    const subscription = { type, mailbox };
    this.#subscriptions.add(subscription);
    void this.#deliver(mailbox, subscriber);
    return () => {
      this.#subscriptions.delete(subscription);
      mailbox.leave();
    };
  }

  async #deliver(mailbox: Mailbox<BoughEvent>, subscriber: Subscriber): Promise<void> {
    for await (const event of mailbox) {
      try {
        await subscriber(event);
      } catch (error) {
        this.#onError(error);
      }
    }
  }
}

/** A reader's own queue: deltas that wait together become one, live events may be lost, and the reader gets their number (Hub-3). */
export function eventMailbox(type = "*"): Mailbox<BoughEvent> {
  return new Mailbox({ merge: deltaMerge, droppable: isLive, ...(type === "*" && { notice: dropNotice }) });
}

/** Two deltas of one message in one: nothing is lost. */
export function deltaMerge(before: BoughEvent, after: BoughEvent): BoughEvent | undefined {
  if (before.type !== after.type || !("text" in before) || !("text" in after)) return undefined;
  if (before.messageId !== after.messageId || before.runId !== after.runId) return undefined;
  if ("callId" in before && "callId" in after && before.callId !== after.callId) return undefined;
  return { ...before, text: `${before.text}${after.text}` } as BoughEvent;
}

/** Live events may be lost; kept ones are in the log, but a reader must get them in order. */
function isLive(event: BoughEvent): boolean {
  return event.seq === undefined;
}

/** Tells a reader, in place of the next event, how many it missed. */
function dropNotice(next: BoughEvent, count: number): BoughEvent {
  const { sessionId, branchId, at } = next;
  const address = { version: 1, channel: "control", direction: "down", sessionId, branchId, at } as const;
  return { ...address, type: "events-drop", count };
}
