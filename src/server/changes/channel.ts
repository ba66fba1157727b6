// ChangeChannel: changes between the nodes of a tenant, where the store carries texts. Best effort: what is lost is found by looking.
//   ChangeChannel-1. Nothing is sent unless a node with readers asked for it recently.
//   ChangeChannel-2. A change that came from another node is not sent on.

import type { Clock } from "../../base/clock.ts";
import { type BranchRef, type LiveChannel, liveTextBytes } from "../../log/index.ts";
import type { Change } from "../../wire/index.ts";

/** How long a wish holds, and how often it is repeated while there are readers. */
const wishMs = 60_000;
const repeatMs = 20_000;
/** How many changes may wait to be sent. */
const mostWaiting = 1000;

type Packet = { readonly wish: true } | { readonly changes: readonly Change[] } | { readonly lost: true };

export interface ChangeChannelOptions {
  readonly live: LiveChannel | undefined;
  readonly ref: BranchRef;
  readonly clock: Clock;
  readonly onChange: (change: Change) => void;
  /** Changes of another node did not get here. */
  readonly onLost: () => void;
}

export class ChangeChannel {
  readonly #options: ChangeChannelOptions;
  readonly #over = new AbortController();
  #isHearing = false;
  #wantedUntil = Number.NEGATIVE_INFINITY;
  #waiting: Change[] = [];
  #isSending = false;
  #wishing: AbortController | undefined;

  constructor(options: ChangeChannelOptions) {
    this.#options = options;
  }

  /** A change of this node. Never waits. */
  send(change: Change): void {
    const { live, clock } = this.#options;
    if (!live || this.#over.signal.aborted) return;
    this.#hear(live);
    if (clock.now() >= this.#wantedUntil) return;
    if (this.#waiting.length < mostWaiting) this.#waiting.push(change);
    if (!this.#isSending) void this.#sendAll(live);
  }

  /** Whether this node has readers. */
  wish(isAny: boolean): void {
    const { live } = this.#options;
    this.#wishing?.abort();
    this.#wishing = undefined;
    if (!live || !isAny || this.#over.signal.aborted) return;
    this.#wishing = new AbortController();
    this.#hear(live);
    void this.#repeatWish(live, AbortSignal.any([this.#wishing.signal, this.#over.signal]));
  }

  close(): void {
    this.#over.abort();
  }

  async #repeatWish(live: LiveChannel, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await live.send(this.#options.ref, JSON.stringify({ wish: true } satisfies Packet));
      await this.#options.clock.sleep(repeatMs, signal);
    }
  }

  #hear(live: LiveChannel): void {
    if (this.#isHearing) return;
    this.#isHearing = true;
    void live.hear(this.#options.ref, (text) => this.#take(text), this.#over.signal);
  }

  /** ChangeChannel-2. What another version sends and this one can't read is passed over. */
  #take(text: string): void {
    const packet = readPacket(text);
    if (!packet) return;
    if ("wish" in packet) this.#wantedUntil = this.#options.clock.now() + wishMs;
    else if (!this.#wishing) return;
    else if ("lost" in packet) this.#options.onLost();
    else for (const change of packet.changes) this.#options.onChange(change);
  }

  async #sendAll(live: LiveChannel): Promise<void> {
    this.#isSending = true;
    // What comes in the same moment goes together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const isFull = this.#waiting.length >= mostWaiting;
      await live.send(this.#options.ref, JSON.stringify({ changes: this.#nextFitting() } satisfies Packet));
      if (isFull) await live.send(this.#options.ref, JSON.stringify({ lost: true } satisfies Packet));
    }
    this.#isSending = false;
  }

  #nextFitting(): Change[] {
    let size = 64;
    let count = 0;
    for (const change of this.#waiting) {
      size += Buffer.byteLength(JSON.stringify(change)) + 1;
      if (size > liveTextBytes && count > 0) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }
}

function readPacket(text: string): Packet | undefined {
  try {
    const packet = JSON.parse(text) as Packet;
    if ("changes" in packet) return Array.isArray(packet.changes) ? packet : undefined;
    return "wish" in packet || "lost" in packet ? packet : undefined;
  } catch {
    return undefined;
  }
}
