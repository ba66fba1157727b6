// LiveReceiver: what a run of another process shows on a branch. It owns how far it has followed that run.
//   Receiver-4. Live events are handed on without a gap: after one, nothing comes before the messages in the making were told anew.
//   Receiver-5. A run that another has followed is heard no more, whatever it still says.
//   Receiver-6. Nothing is requested while nothing happens on the branch.

import type { Clock } from "../base/clock.ts";
import { type LiveEvent, liveEvent } from "../events/index.ts";
import type { BranchRef, LiveChannel } from "../log/store.ts";
import type { MessageSnapshot } from "../wire/index.ts";
import { type News, readPacket, type Step, wantText } from "./packet.ts";
import { RunningMessages } from "./running-messages.ts";
import { wishMs } from "./sender.ts";

/** How often a reader in step says that it wants more. */
const wishEveryMs = wishMs / 3;
/** How often at most a reader out of step asks for everything. */
const askEveryMs = 500;
/** Runs that were followed by another. */
const mostPast = 32;

export interface LiveReceiverOptions {
  readonly channel: LiveChannel;
  readonly ref: BranchRef;
  readonly clock: Clock;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** The number of the newest fact so far, or a live event that comes after it. */
  onStep(step: number | LiveEvent): void;
  /** All messages being written; replaces what was received of them. */
  onMessages(messages: readonly MessageSnapshot[]): void;
}

export class LiveReceiver {
  readonly #options: LiveReceiverOptions;
  #run: string | undefined;
  #past: string[] = [];
  #n = 0;
  #isInStep = false;
  /** While all that is being written comes in parts. */
  #whole: RunningMessages | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #heardAt = 0;
  #isWishing = false;

  constructor(options: LiveReceiverOptions) {
    this.#options = options;
    void this.#begin();
  }

  /** Whether a run of another process is followed, so that its facts come with its live events. */
  get isInStep(): boolean {
    return this.#isInStep;
  }

  /** Something happens on the branch: perhaps a run that was not heard of. */
  stir(): void {
    if (!this.#isInStep) this.#ask();
  }

  async #begin(): Promise<void> {
    const { channel, ref, signal } = this.#options;
    await channel.hear(ref, (text) => this.#hear(text), signal);
    if (!signal.aborted) this.#ask();
  }

  #ask(): void {
    const { channel, ref, clock, signal } = this.#options;
    const now = clock.now();
    if (signal.aborted || Math.abs(now - this.#askedAt) < askEveryMs) return;
    this.#askedAt = now;
    void channel.send(ref, wantText({ want: "begin" }));
  }

  #hear(text: string): void {
    const packet = readPacket(text);
    if (!packet || "want" in packet || this.#past.includes(packet.run)) return;
    if (packet.run !== this.#run) this.#follow(packet.run);
    this.#heardAt = this.#options.clock.now();
    if (packet.n !== this.#n + 1) {
      this.#isInStep = false;
      this.#whole = undefined;
    }
    this.#n = packet.n;
    if (this.#isInStep) {
      if (!packet.part) for (const step of packet.steps) this.#tell(packet, step);
    } else if (packet.part) this.#gather(packet, packet.part);
    else this.#ask();
  }

  #follow(run: string): void {
    if (this.#run !== undefined) this.#past = [...this.#past.slice(1 - mostPast), this.#run];
    this.#run = run;
    this.#n = 0;
    this.#isInStep = false;
    // It answers at once, unlike those who were asked before.
    this.#askedAt = Number.NEGATIVE_INFINITY;
    this.#options.onMessages([]);
  }

  /** Takes one part of all that is being written; with the last, the reader is in step. */
  #gather(packet: News, [part, parts]: readonly [number, number]): void {
    if (part === 1) this.#whole = new RunningMessages();
    if (!this.#whole) return;
    for (const step of packet.steps) {
      if (typeof step === "number") this.#options.onStep(step);
      else this.#whole.note(this.#event(packet, step));
    }
    if (part < parts) return;
    this.#options.onMessages(this.#whole.of(this.#options.ref));
    this.#whole = undefined;
    this.#isInStep = true;
    void this.#wish();
  }

  #tell(packet: News, step: Step): void {
    const event = typeof step === "number" ? step : this.#event(packet, step);
    this.#options.onStep(event);
    if (typeof event === "object" && event.type === "run-end") this.#isInStep = false;
  }

  /** The branch is the one that is listened to, whatever the packet says. */
  #event({ run, of }: News, { at, ...draft }: Exclude<Step, number>): LiveEvent {
    const { turnId, agent, traceId } = of;
    const routing = { ...(turnId && { turnId }), ...(agent && { agent }), ...(traceId && { traceId }) };
    return liveEvent(draft, { ...this.#options.ref, runId: run, at, ...routing });
  }

  /** Repeats the request from time to time, as long as it is answered. */
  async #wish(): Promise<void> {
    if (this.#isWishing) return;
    this.#isWishing = true;
    const { channel, ref, clock, signal } = this.#options;
    for (;;) {
      await clock.sleep(wishEveryMs, signal);
      if (signal.aborted || !this.#isInStep) break;
      if (clock.now() - this.#heardAt > wishMs) this.#isInStep = false;
      else await channel.send(ref, wantText({ want: "on" }));
    }
    this.#isWishing = false;
  }
}
