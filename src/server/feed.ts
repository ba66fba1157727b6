// Feed: the stream of one branch, for all who read it. Kept events come from the log, live ones from the agents of this
// process; it owns the order between them.
//   F1. Every kept event after a reader's cursor comes once, in the order of the log, whoever wrote it.
//   F2. A live event of this process comes after the kept events that were emitted before it, and before those after it.
//   F3. What shows a message in the making comes before the message's fact, or not at all.
//   F4. A reader that joins is shown the messages in the making as they are at the place where it joins.

import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { BoughEvent } from "../events/index.ts";
import type { BranchRef, ReadOptions } from "../log/store.ts";
import type { LogEvent } from "../sessions/index.ts";
import type { Frame } from "../wire/index.ts";
import { type Encoded, encode, Reader } from "./reader.ts";
import { problemOf } from "./refusal.ts";
import { isDraftEvent, type RunningMessages } from "./running-messages.ts";

/** How one stream is read. */
export interface ReadingOptions {
  /** What may wait for it. */
  readonly bufferBytes: number;
  /** Ends it without a word. */
  readonly signal: AbortSignal;
  /** Whether its reader may no longer read: looked at while it is told of the past. */
  readonly isRevoked?: () => boolean;
  /** Told when it has caught up. */
  readonly onAttached?: (reader: Reader) => void;
}

export interface FeedSource {
  /** A page of the branch's log. */
  read(options: ReadOptions): Promise<LogEvent[]>;
  /** Resolves when there may be more. */
  watch(after: number, signal: AbortSignal): Promise<void>;
}

type Step = { readonly upTo: number } | { readonly live: BoughEvent } | { readonly child: BoughEvent };

/** A run of this process tells of its facts itself; this long it is waited for, so that deltas come before them (F2). */
const graceMs = 20;
const pageSize = 500;
/** Of a reader that has just come: how large its branch's events are is not known yet. */
const firstPageSize = 20;

export class Feed {
  readonly #ref: BranchRef;
  readonly #source: FeedSource;
  readonly #running: RunningMessages;
  readonly #clock: Clock;
  readonly #readers = new Set<Reader>();
  readonly #over = new AbortController();
  /** The newest kept event told. */
  #head: number;
  #steps: Step[] = [];
  #isDraining = false;
  /** Read from the log and not yet told. */
  #ahead: LogEvent[] = [];
  /** Messages whose facts were told lately (F3). */
  #told: string[] = [];
  readonly #localRuns = new Set<string>();

  constructor(options: {
    ref: BranchRef;
    head: number;
    source: FeedSource;
    running: RunningMessages;
    clock: Clock;
  }) {
    this.#ref = options.ref;
    this.#head = options.head;
    this.#source = options.source;
    this.#running = options.running;
    this.#clock = options.clock;
    void this.#follow();
  }

  /** An event of an agent of this process, in the order in which it emits them. */
  emitted(event: BoughEvent): void {
    if (event.runId !== undefined) {
      if (event.type === "run-end") this.#localRuns.delete(event.runId);
      else this.#localRuns.add(event.runId);
    }
    this.#push(event.seq === undefined ? { live: event } : { upTo: event.seq });
  }

  /** An event of a child branch. */
  emittedByChild(event: BoughEvent): void {
    this.#push({ child: event });
  }

  /** Batches of frames after a cursor, until the signal aborts or the stream ends. */
  async *read(after: number, options: ReadingOptions): AsyncGenerator<readonly Encoded[]> {
    let cursor = after;
    let limit = firstPageSize;
    while (cursor < this.#head && !options.signal.aborted) {
      if (options.isRevoked?.()) return yield [encode({ type: "end", reason: "unauthorized", after: cursor })];
      let page: Encoded[];
      try {
        const events = await this.#source.read({ after: cursor, before: this.#head + 1, limit });
        page = events.map((event) => encode({ type: "event", event }));
      } catch (error) {
        return yield [encode(lastFrame(error, cursor))];
      }
      if (page.length === 0) break;
      cursor = page.at(-1)!.seq!;
      limit = nextPageSize(page, options.bufferBytes);
      yield page;
    }
    const reader = this.#attach(cursor, options.bufferBytes);
    const leave = () => reader.finish();
    options.signal.addEventListener("abort", leave, { once: true });
    if (options.signal.aborted) leave();
    if (options.isRevoked?.()) reader.end("unauthorized");
    options.onAttached?.(reader);
    try {
      for (let batch = await reader.take(); batch; batch = await reader.take()) yield batch;
    } finally {
      options.signal.removeEventListener("abort", leave);
      this.#readers.delete(reader);
    }
  }

  /** Ends the feed and every stream of it. */
  close(reason?: "closing"): void {
    this.#over.abort();
    for (const reader of this.#readers) {
      if (reason) reader.end(reason);
      else reader.finish();
    }
    // Whoever joins later still finds what was said meanwhile.
    for (const step of this.#steps) if ("live" in step) this.#running.note(step.live);
    this.#steps = [];
  }

  /** Nothing is waited for between the last event told and this, so that nothing is missed or told twice (F4). */
  #attach(cursor: number, bufferBytes: number): Reader {
    const reader = new Reader(cursor, { bufferBytes });
    this.#readers.add(reader);
    for (const message of this.#running.of(this.#ref)) {
      if (!this.#told.includes(message.messageId)) reader.push(encode({ type: "snapshot", message }));
    }
    reader.push(encode({ type: "ready", seq: cursor }));
    if (this.#over.signal.aborted) reader.end("closing");
    return reader;
  }

  /** Facts that others write: other processes, and commands that no run makes. */
  async #follow(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#source.watch(this.#head, signal);
      if (signal.aborted) return;
      if (this.#localRuns.size > 0) await this.#clock.sleep(graceMs, signal);
      const before = this.#head;
      await this.#push({ upTo: Number.POSITIVE_INFINITY });
      // A hint may come for nothing, over and over.
      if (this.#head === before) await this.#clock.sleep(graceMs, signal);
    }
  }

  #push(step: Step): Promise<void> | undefined {
    if (this.#over.signal.aborted) return undefined;
    this.#steps.push(step);
    return this.#isDraining ? undefined : this.#drain();
  }

  async #drain(): Promise<void> {
    this.#isDraining = true;
    try {
      for (let step = this.#steps.shift(); step; step = this.#steps.shift()) {
        if ("live" in step) this.#tellLive(step.live);
        else if ("child" in step) this.#tell({ type: "child", event: step.child });
        else if (step.upTo > this.#head) await this.#tellUpTo(step.upTo);
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isDraining = false;
    }
  }

  async #tellUpTo(seq: number): Promise<void> {
    while (this.#head < seq) {
      if (this.#ahead.length === 0) this.#ahead = await this.#source.read({ after: this.#head, limit: pageSize });
      if (this.#ahead.length === 0 || this.#over.signal.aborted) return;
      let told = 0;
      for (const event of this.#ahead) {
        if (event.seq > seq) break;
        this.#tellKept(event);
        told++;
      }
      this.#ahead = this.#ahead.slice(told);
    }
  }

  #tellKept(event: LogEvent): void {
    this.#head = event.seq;
    if (event.type === "message.added") {
      this.#told = [...this.#told.slice(-31), event.id];
      this.#running.note(event);
    }
    this.#tell({ type: "event", event });
  }

  #tellLive(event: BoughEvent): void {
    if (isDraftEvent(event) && event.messageId !== undefined && this.#told.includes(event.messageId)) return;
    this.#running.note(event);
    this.#tell({ type: "event", event });
  }

  #tell(frame: Frame): void {
    if (this.#readers.size === 0) return;
    const encoded = encode(frame);
    for (const reader of this.#readers) reader.push(encoded);
  }

  /** The branch is gone, or the store fails: nobody can be told anything more. */
  #fail(error: unknown): void {
    const last = lastFrame(error, 0);
    for (const reader of this.#readers) {
      if (last.type === "reset") reader.finish(last);
      else reader.end("closing");
    }
    this.#over.abort();
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }
}

/** How many events like these a reader may let wait. */
function nextPageSize(page: readonly Encoded[], bufferBytes: number): number {
  const size = page.reduce((sum, { json }) => sum + json.length, 0) / page.length;
  return Math.max(1, Math.min(pageSize, Math.floor(bufferBytes / size)));
}

/** What a reader is told when the log can't be read: a branch that is gone can't be resumed, everything else elsewhere. */
function lastFrame(error: unknown, after: number): Frame {
  const isGone = BoughError.is(error, "branch_not_found") || BoughError.is(error, "session_not_found");
  return isGone ? { type: "reset", problem: problemOf(error) } : { type: "end", reason: "closing", after };
}
