// Texts between handles, by messages on the branch's own channel; the server keeps none.

import { type BranchRef, type LiveChannel, liveTextBytes } from "../../log/index.ts";
import type { RedisClient } from "./client.ts";
import type { Connection } from "./connection.ts";
import { liveChannel } from "./keys.ts";

export class LiveTexts implements LiveChannel {
  readonly #redis: Connection;
  /** The connection that listens. */
  readonly #listener: () => RedisClient;
  /** Tells this handle's texts from others'. */
  readonly #handle: string;
  readonly #database: string;
  #isClosed = false;

  constructor(redis: Connection, options: { handle: string; database: string; listener: () => RedisClient }) {
    this.#redis = redis;
    this.#handle = options.handle;
    this.#database = options.database;
    this.#listener = options.listener;
  }

  async send(ref: BranchRef, text: string): Promise<void> {
    if (this.#isClosed || Buffer.byteLength(text) > liveTextBytes) return;
    const message = `${this.#handle} ${text}`;
    await this.#redis.client.sendCommand(["PUBLISH", this.#channel(ref), message]).catch(() => {});
  }

  async hear(ref: BranchRef, onText: (text: string) => void, signal: AbortSignal): Promise<void> {
    if (this.#isClosed || signal.aborted) return;
    const channel = this.#channel(ref);
    const listener = this.#listener();
    const hear = (message: string) => {
      const end = message.indexOf(" ");
      if (!signal.aborted && message.slice(0, end) !== this.#handle) onText(message.slice(end + 1));
    };
    signal.addEventListener("abort", () => void listener.unsubscribe(channel, hear).catch(() => {}), { once: true });
    await listener.subscribe(channel, hear).catch(() => {});
  }

  close(): void {
    this.#isClosed = true;
  }

  #channel({ sessionId, branchId }: BranchRef): string {
    return liveChannel(this.#redis.prefix, this.#database, sessionId, branchId);
  }
}
