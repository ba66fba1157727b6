// LiveSender: what a run shows, sent to processes that want to see it. It owns what waits to be sent and the messages that
// are being written, for readers that join later.
//   Sender-1. note() never waits and never throws; what can't be sent in time is left out, and the reader sees that it was.
//   Sender-2. Nothing is sent, but for one sign of life, unless a reader asked for it recently.
//   Sender-3. What is sent comes in the order in which the run emitted it, facts named between the live events (Feed-2).

import type { Clock } from "../base/clock.ts";
import type { BoughEvent, LiveEvent } from "../events/index.ts";
import type { BranchRef, LiveChannel } from "../log/store.ts";
import { deltaMerge } from "./hub.ts";
import { draftsOf, newsTexts, readPacket, type Step, stampedDraft, wholeTexts } from "./packet.ts";
import { RunningMessages } from "./running-messages.ts";

/** Runs that are over by then cost nothing. */
const beginAfterMs = 100;
/** How long events are gathered before they are sent together. */
const gatherMs = 50;
/** How long a request holds; a reader that wants more repeats it. */
export const wishMs = 12_000;
/** How much may wait, in characters; also the longest message that is sent from its beginning. */
const mostWaiting = 64 * 1024;

export interface LiveSenderOptions {
  readonly channel: LiveChannel;
  readonly ref: BranchRef;
  readonly runId: string;
  readonly clock: Clock;
}

export class LiveSender {
  readonly #options: LiveSenderOptions;
  readonly #running = new RunningMessages();
  readonly #over = new AbortController();
  #gathering: AbortController | undefined;
  /** Live events, and the numbers of facts between them. */
  #waiting: (number | LiveEvent)[] = [];
  #size = 0;
  /** The newest fact that was emitted, and a live event to take the address from. */
  #seq = 0;
  #address: LiveEvent | undefined;
  #sent = 0;
  #wantedUntil = Number.NEGATIVE_INFINITY;
  /** A reader needs all messages in progress. */
  #isWholeDue = false;
  #isPumping = false;

  constructor(options: LiveSenderOptions) {
    this.#options = options;
    void this.#begin();
  }

  /** Takes what the run emits, in its order. */
  note(event: BoughEvent): void {
    this.#running.note(event);
    if (event.seq === undefined) this.#address = event;
    else this.#seq = event.seq;
    if (!this.#isWanted) return;
    if (event.seq === undefined) this.#push(event);
    else {
      this.#waiting.push(event.seq);
      // Readers wait with the fact for the deltas that come before it.
      this.#gathering?.abort();
    }
    void this.#pump();
  }

  /** The run is over: what waits is sent. */
  close(): void {
    this.#over.abort();
    this.#gathering?.abort();
  }

  get #isWanted(): boolean {
    return this.#options.clock.now() < this.#wantedUntil;
  }

  async #begin(): Promise<void> {
    const { channel, ref, clock } = this.#options;
    const { signal } = this.#over;
    await clock.sleep(beginAfterMs, signal);
    if (signal.aborted) return;
    await channel.hear(ref, (text) => this.#hear(text), signal);
    if (signal.aborted || this.#sent > 0) return;
    await channel.send(ref, this.#texts([this.#seq])[0]!);
  }

  #hear(text: string): void {
    const packet = readPacket(text);
    if (!packet || !("want" in packet)) return;
    const wasWanted = this.#isWanted;
    this.#wantedUntil = this.#options.clock.now() + wishMs;
    if (!wasWanted) this.#skip();
    else if (packet.want === "begin") this.#isWholeDue = true;
    // Shows readers that a run is active, so that they ask for more.
    else this.#waiting.push(this.#seq);
    void this.#pump();
  }

  #push(event: LiveEvent): void {
    const last = this.#waiting.at(-1);
    const merged = typeof last === "object" ? deltaMerge(last, event) : undefined;
    if (merged) this.#waiting[this.#waiting.length - 1] = merged as LiveEvent;
    else this.#waiting.push(event);
    this.#size += "text" in event ? event.text.length : 100;
    if (this.#size > mostWaiting) this.#skip();
  }

  /** Leaves out what waits: the number that is missing says so, and all that is being written is sent again. */
  #skip(): void {
    this.#waiting = [];
    this.#size = 0;
    this.#sent++;
    this.#isWholeDue = true;
  }

  async #pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    const { channel, ref, clock } = this.#options;
    while (this.#waiting.length > 0 || this.#isWholeDue) {
      this.#gathering = new AbortController();
      if (!this.#over.signal.aborted) await clock.sleep(gatherMs, this.#gathering.signal);
      const texts = this.#take();
      if (texts.length === 0) break;
      for (const text of texts) await channel.send(ref, text);
    }
    this.#isPumping = false;
  }

  /** What waits, and after it all that is being written, if that is due and not too much. */
  #take(): string[] {
    const steps = this.#waiting.map((each) => (typeof each === "number" ? each : stampedDraft(each)));
    this.#waiting = [];
    this.#size = 0;
    const texts = this.#texts(steps);
    const messages = this.#isWholeDue ? this.#running.of(this.#options.ref) : [];
    const drafts = draftsOf(messages, this.#options.clock.now());
    const length = drafts.reduce((sum, draft) => sum + ("text" in draft ? draft.text.length : 0), 0);
    if (!this.#isWholeDue || length > mostWaiting) return texts;
    this.#isWholeDue = false;
    return [...texts, ...this.#texts([this.#seq, ...drafts], wholeTexts)];
  }

  #texts(steps: readonly Step[], write = newsTexts): string[] {
    const { agent, traceId, turnId } = this.#address ?? {};
    const of = { ...(turnId && { turnId }), ...(agent && { agent }), ...(traceId && { traceId }) };
    const texts = write({ run: this.#options.runId, of }, steps, this.#sent + 1);
    this.#sent += texts.length;
    return texts;
  }
}
