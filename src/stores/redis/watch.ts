// Waiting for news of a branch. Appends and deletes publish to the branch's channel; a message is only ever a reason to
// look again, and so is time: what is not heard, because the connection was away, is seen at the next look.
//
//   RedisWatch-1. A branch is looked at after its channel is listened to, or events in between would be missed.
//   RedisWatch-2. A look costs the same however many wait: it goes round the branches, a few at a time. When the connection was
//       away and is back, all are looked at.
//   RedisWatch-3. Nothing here rejects: who can't look is woken, and the read that follows says what is wrong.

import { type BranchRef, Watchers } from "../../log/index.ts";
import type { RedisClient } from "./client.ts";
import type { Connection } from "./connection.ts";
import { newsChannel } from "./keys.ts";
import { headOf } from "./log.ts";

interface Channel {
  readonly ref: BranchRef;
  waiting: number;
  /** Polls since the last waiter: the channel stays subscribed for a while, for a reader that comes back soon. */
  idleLooks: number;
}

const branchesPerLook = 256;

export class News {
  readonly #redis: Connection;
  readonly #pollMs: number;
  readonly #watchers = new Watchers();
  /** In the order in which they are looked at (RedisWatch-2). */
  readonly #channels = new Map<string, Channel>();
  #listener: RedisClient | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(redis: Connection, pollMs: number) {
    this.#redis = redis;
    this.#pollMs = pollMs;
  }

  tell(ref: BranchRef): void {
    this.#watchers.tell(ref);
  }

  /** Resolves when the branch has facts after `after`, is gone or can't be read, at abort, and at close. */
  async of(ref: BranchRef, after: number, signal: AbortSignal): Promise<void> {
    if (this.#closed || signal.aborted) return;
    const channel = this.#listen(ref);
    const over = new AbortController();
    const abort = () => over.abort();
    signal.addEventListener("abort", abort, { once: true });
    // A poll takes long when the server is away; a waiter whose signal has aborted does not wait for it.
    const aborted = new Promise<true>((resolve) => over.signal.addEventListener("abort", () => resolve(true)));
    try {
      while (!this.#closed && !signal.aborted) {
        // Asked for before the look, so that a message during the look is not missed.
        const told = this.#watchers.wait(ref, over.signal);
        if (await Promise.race([this.#arrived(ref, after), aborted])) return;
        await told;
      }
    } finally {
      channel.waiting -= 1;
      signal.removeEventListener("abort", abort);
      over.abort();
    }
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#watchers.tellAll();
    this.#listener?.destroy();
  }

  async #arrived(ref: BranchRef, after: number): Promise<boolean> {
    try {
      const head = await headOf(this.#redis, ref);
      return head === undefined || head > after;
    } catch {
      return true;
    }
  }

  #listen(ref: BranchRef): Channel {
    const name = newsChannel(this.#redis.prefix, ref.sessionId, ref.branchId);
    const known = this.#channels.get(name);
    if (known) {
      known.waiting += 1;
      return known;
    }
    const channel = { ref, waiting: 1, idleLooks: 0 };
    this.#channels.set(name, channel);
    this.#timer ??= setInterval(() => this.#look(), this.#pollMs).unref();
    const tell = () => this.#watchers.tell(ref);
    // Told once it listens (RedisWatch-1); when it can't, the looks have to do.
    this.listener()
      .subscribe(name, tell)
      .then(tell, () => {});
    return channel;
  }

  #look(): void {
    for (const [name, channel] of this.#channels) {
      channel.idleLooks = channel.waiting > 0 ? 0 : channel.idleLooks + 1;
      if (channel.idleLooks < 2) continue;
      this.#channels.delete(name);
      this.#listener?.unsubscribe(name).catch(() => {});
    }
    this.#goRound();
    if (this.#channels.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** RedisWatch-2. */
  #goRound(): void {
    const next = [...this.#channels].slice(0, branchesPerLook);
    for (const [name, channel] of next) {
      this.#channels.delete(name);
      this.#channels.set(name, channel);
      if (channel.waiting > 0) this.#watchers.tell(channel.ref);
    }
  }

  /** A connection that listens can do nothing else. Its subscriptions wait for it, and come back with it. */
  listener(): RedisClient {
    if (this.#listener) return this.#listener;
    const listener = this.#redis.client.duplicate({ disableOfflineQueue: false });
    this.#listener = listener;
    listener.on("error", () => {});
    listener.on("ready", () => this.#watchers.tellAll());
    listener.connect().catch(() => {});
    return listener;
  }
}
