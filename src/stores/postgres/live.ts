// Texts between handles, by NOTIFY. Nothing is written, so no disk is waited for; any role that may connect to the database may
// also listen. One statement is under way at a time, with all that waits: notifying commits hold a lock of the whole server,
// and appends must find connections.

import { type BranchRef, type LiveChannel, liveTextBytes, Subscribers } from "../../log/index.ts";
import type { Database } from "./database.ts";
import type { Listener } from "./listener.ts";
import { keyOf } from "./watch.ts";

interface Waiting {
  readonly payload: string;
  readonly done: () => void;
}

/** How many texts may wait; those of a run wait one by one, so that is as many runs. */
const mostWaiting = 1000;
const textsPerStatement = 100;

export class LiveTexts implements LiveChannel {
  readonly #database: Database;
  readonly #listener: Listener;
  readonly #channel: string;
  /** Tells this handle's texts from others'. */
  readonly #handle: string;
  readonly #pollMs: number;
  readonly #hearers = new Subscribers();
  #waiting: Waiting[] = [];
  #isSending = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(database: Database, listener: Listener, options: { handle: string; pollMs: number }) {
    this.#database = database;
    this.#listener = listener;
    this.#channel = `${database.schema}_live`;
    this.#handle = options.handle;
    this.#pollMs = options.pollMs;
    listener.on(this.#channel, (payload) => this.#hear(payload));
  }

  async send(ref: BranchRef, text: string): Promise<void> {
    if (this.#isClosed || Buffer.byteLength(text) > liveTextBytes) return;
    if (this.#waiting.length >= mostWaiting) return;
    const payload = `${this.#handle} ${keyOf(ref)} ${text}`;
    const sent = new Promise<void>((done) => this.#waiting.push({ payload, done }));
    if (!this.#isSending) void this.#sendAll();
    await sent;
  }

  async hear(ref: BranchRef, onText: (text: string) => void, signal: AbortSignal): Promise<void> {
    if (this.#isClosed) return;
    this.#hearers.add(keyOf(ref), onText, signal);
    this.#timer ??= setInterval(() => this.#stay(), this.#pollMs).unref();
    await this.#listener.ready();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, textsPerStatement);
      const payloads = group.map(({ payload }) => payload);
      await this.#database.hint("SELECT pg_notify($1, t) FROM unnest($2::text[]) AS t", this.#channel, payloads);
      for (const { done } of group) done();
    }
    this.#isSending = false;
  }

  /** Reconnects only while there are listeners. */
  #stay(): void {
    if (this.#hearers.size > 0) return void this.#listener.ready();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #hear(payload: string): void {
    const [handle, key] = payload.split(" ", 2);
    if (handle === this.#handle || !key) return;
    this.#hearers.tell(key, payload.slice(handle!.length + key.length + 2));
  }
}
