// Following: a stream over as many connections as it takes. It owns the state of the connection; what the stream means is its heirs'.
//   Following-1. It ends once: closed by its owner, or failed for good.
//   Following-2. A connection without data or heartbeats for too long counts as lost.

import type { Clock } from "../base/clock.ts";
import {
  type Backoff,
  type ClientConnection,
  type ConnectionInput,
  type ConnectionState,
  delayMs,
  idleConnection,
  step,
} from "./connection.ts";
import { isRemoteError, RemoteError } from "./errors.ts";

export interface FollowingOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly backoff: Backoff;
  /** A connection without data or heartbeats for this long is reconnected. */
  readonly silenceMs: number;
  /** Closes it. */
  readonly signal?: AbortSignal;
  onConnection?(connection: ClientConnection): void;
}

/** What a handler threw. */
export class HandlerFailure {
  readonly error: unknown;
  constructor(error: unknown) {
    this.error = error;
  }
}

const over: ReadonlySet<ConnectionState> = new Set(["closed", "failed"]);

export abstract class Following {
  readonly #following: FollowingOptions;
  readonly #closing = new AbortController();
  #connection: ClientConnection = idleConnection;
  /** The minimum delay that the server asked for. */
  protected retryMs = 0;
  /** Resolves when it ends: closed, or failed with its error. Never rejects. */
  readonly ended: Promise<ClientConnection>;

  constructor(options: FollowingOptions) {
    this.#following = options;
    options.signal?.addEventListener("abort", () => this.close(), { once: true, signal: this.#closing.signal });
    this.ended = Promise.resolve().then(() => this.#run());
  }

  get connection(): ClientConnection {
    return this.#connection;
  }

  /** Ends it without waiting for a handler that is running. */
  close(): void {
    this.input("close");
    this.#closing.abort();
  }

  /** One connection: resolves when it was ended in order, rejects when it broke. */
  protected abstract read(signal: AbortSignal): Promise<void>;

  /** What it means that a connection broke. */
  protected abstract settle(error: unknown): void;

  async #run(): Promise<ClientConnection> {
    if (this.#following.signal?.aborted) this.close();
    this.input("start");
    while (!over.has(this.#connection.state)) {
      if (this.#connection.state === "waiting") await this.#wait();
      else await this.#connect();
    }
    this.#closing.abort();
    return this.#connection;
  }

  async #wait(): Promise<void> {
    const { clock, random, backoff } = this.#following;
    const { losses, error } = this.#connection;
    const asked = Math.max(this.retryMs, isRemoteError(error) ? (error.retryAfterMs ?? 0) : 0);
    await clock.sleep(delayMs(losses, backoff, random(), asked), this.#closing.signal);
    this.input("due");
  }

  async #connect(): Promise<void> {
    const leaving = new AbortController();
    const leave = () => leaving.abort();
    this.#closing.signal.addEventListener("abort", leave, { once: true });
    try {
      await this.read(leaving.signal);
      this.input("lost");
    } catch (error) {
      this.settle(error);
    } finally {
      leave();
      this.#closing.signal.removeEventListener("abort", leave);
    }
  }

  /** Not any more once it was closed. */
  protected get isReading(): boolean {
    const { state } = this.#connection;
    return state === "replaying" || state === "live";
  }

  /** The work's result, unless nothing comes for too long (Following-2). */
  protected async alive<T>(work: Promise<T>): Promise<T> {
    const { clock, silenceMs } = this.#following;
    const came = new AbortController();
    const silence = clock.sleep(silenceMs, came.signal).then(() => {
      if (!came.signal.aborted) throw new RemoteError("unreachable", `Nothing came for ${silenceMs} ms.`);
      return work;
    });
    work.catch(() => {});
    try {
      return await Promise.race([work, silence]);
    } finally {
      came.abort();
    }
  }

  protected async hand(handle: () => unknown): Promise<void> {
    try {
      await handle();
    } catch (error) {
      throw new HandlerFailure(error);
    }
  }

  protected input(input: ConnectionInput, error?: unknown): void {
    const before = this.#connection;
    this.#connection = step(before, input, error);
    if (this.#connection.state !== before.state) this.#following.onConnection?.(this.#connection);
  }
}
