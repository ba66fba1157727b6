// ChangeSubscription: the changes of a tenant or a session, over as many connections as it takes. It owns the cursor.
//   Changes-1. A change is handed on once for each time that the server tells it, in its order; one thing is handled at a time.
//   Changes-2. Whoever may have missed something is told so: `onStale` is called before anything that came later.
//   Changes-3. It ends once: closed by its owner, because the session was deleted, or failed for good.

import type { Change, ChangeFrame } from "../wire/changes.ts";
import { SseReader } from "../wire/sse.ts";
import type { ClientConnection } from "./connection.ts";
import { isRemoteError } from "./errors.ts";
import { Following, type FollowingOptions, HandlerFailure } from "./following.ts";
import { type Http, path } from "./http.ts";

/** Options and handlers of a subscription to changes. Handlers may be asynchronous; the next call waits for them. */
export interface ChangesOptions {
  /** Only changes of this session (default: of all). */
  readonly sessionId?: string;
  /** The cursor of an earlier subscription. */
  readonly after?: string;
  /** Something has changed: read it again if it is shown. */
  onChange(change: Change): unknown;
  /** Changes may have been missed: read everything again that is shown. */
  onStale?(): unknown;
  /** What was missed has arrived; what follows is live. */
  onReady?(): unknown;
  onConnection?(connection: ClientConnection): void;
  /** Closes the subscription. */
  readonly signal?: AbortSignal;
}

/** A subscription to changes. */
export class ChangeSubscription extends Following {
  readonly #http: Http;
  readonly #options: ChangesOptions;
  #cursor: string | undefined;

  /** Use `changes` of a client. */
  constructor(source: Omit<FollowingOptions, keyof ChangesOptions> & { readonly http: Http }, options: ChangesOptions) {
    const { clock, random, backoff, silenceMs, http } = source;
    super({ ...options, clock, random, backoff, silenceMs });
    this.#http = http;
    this.#options = options;
    this.#cursor = options.after;
  }

  /** The cursor of the last change that was handled; undefined before the first connection. */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  protected async read(signal: AbortSignal): Promise<void> {
    const { sessionId } = this.#options;
    const route = sessionId === undefined ? "/events/live" : path`/sessions/${sessionId}/events/live`;
    const query = { after: this.#cursor };
    const headers = { accept: "text/event-stream" };
    const response = await this.alive(this.#http.send("GET", route, { query, headers, signal }));
    this.input("opened");
    const reader = response.body!.getReader();
    const decoder = new TextDecoder();
    const sse = new SseReader();
    try {
      while (this.isReading) {
        const { done, value } = await this.alive(reader.read());
        if (done) return;
        for (const { data } of sse.read(decoder.decode(value, { stream: true }))) {
          if (!this.isReading || (await this.#take(JSON.parse(data) as ChangeFrame)) === "end") return;
        }
        this.retryMs = sse.retryMs ?? this.retryMs;
      }
    } finally {
      void reader.cancel().catch(() => {});
    }
  }

  async #take(frame: ChangeFrame): Promise<"end" | undefined> {
    const { onChange, onStale, onReady } = this.#options;
    if (frame.type === "change") await this.hand(() => onChange(frame.change));
    else if (frame.type === "stale") await this.hand(() => onStale?.());
    else if (frame.type === "ready") {
      this.input("ready");
      await this.hand(() => onReady?.());
    } else if (frame.type === "end") {
      this.#cursor = frame.cursor;
      if (frame.reason === "deleted") this.close();
      return "end";
    }
    // A frame of a newer server is passed over, but not its cursor.
    this.#cursor = frame.cursor ?? this.#cursor;
    return undefined;
  }

  /** What a handler throws is its owner's, and what is no refusal is a broken line. */
  protected settle(error: unknown): void {
    if (error instanceof HandlerFailure) this.input("refused", error.error);
    else this.input(isRemoteError(error) && !error.retryable ? "refused" : "lost", error);
  }
}
