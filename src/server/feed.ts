// Feed: the stream of one branch, for all who read it. Kept events come from the log, live ones from the agents of this
// process, or from another that runs the branch; it owns the order between them.
//   F1. Every kept event after a reader's cursor comes once, in the order of the log, whoever wrote it.
//   F2. A live event comes after the kept events that were emitted before it, and before those after it.
//   F3. What shows a message in the making comes before the message's fact, or not at all.
//   F4. A reader that joins is shown the messages in the making as they are at the place where it joins.

import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { BoughEvent } from "../events/index.ts";
import { isDraftEvent, LiveReceiver, RunningMessages } from "../live/index.ts";
import type { BranchRef, LiveChannel, ReadOptions } from "../log/store.ts";
import type { LogEvent } from "../sessions/index.ts";
import type { Frame, MessageSnapshot } from "../wire/index.ts";
import { Encoded, Reader } from "./reader.ts";
import { problemOf } from "./refusal.ts";

export interface FeedSource {
  /** A page of the branch's log. */
  read(options: ReadOptions): Promise<LogEvent[]>;
  /** Resolves when there may be more. */
  watch(after: number, signal: AbortSignal): Promise<void>;
}

type Step =
  | { readonly upTo: number }
  | { readonly live: BoughEvent; readonly isFar?: boolean }
  | { readonly whole: readonly MessageSnapshot[] }
  | { readonly child: BoughEvent };

/** A run of this process tells of its facts itself; this long it is waited for, so that deltas come before them (F2). */
const graceMs = 20;
/** The same for a run of another process, whose events are on their way longer. */
const farGraceMs = 200;
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
  /** The last work on the steps. */
  #drained: Promise<void> | undefined;
  /** Read from the log and not yet told. */
  #ahead: LogEvent[] = [];
  /** Messages whose facts were told lately (F3). */
  #told: string[] = [];
  readonly #localRuns = new Set<string>();
  /** What a run of another process is writing; known for as long as this feed listens to it. */
  #far = new RunningMessages();
  readonly #receiver: LiveReceiver | undefined;

  constructor(options: {
    ref: BranchRef;
    head: number;
    source: FeedSource;
    running: RunningMessages;
    clock: Clock;
    live?: LiveChannel | undefined;
  }) {
    this.#ref = options.ref;
    this.#head = options.head;
    this.#source = options.source;
    this.#running = options.running;
    this.#clock = options.clock;
    this.#receiver = options.live && this.#receive(options.live);
    void this.#follow();
  }

  get sessionId(): string {
    return this.#ref.sessionId;
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

  /** A reader of everything after a cursor. */
  join(after: number, { bufferBytes, onLeft }: { bufferBytes: number; onLeft?: () => void }): Reader {
    const reader: Reader = new Reader(after, {
      bufferBytes,
      onLeft: () => {
        this.#readers.delete(reader);
        onLeft?.();
      },
    });
    if (after < this.#head) void this.#catchUp(reader, after, bufferBytes);
    else this.#attach(reader, after);
    return reader;
  }

  /** Resolves when all that is in the log by now was told. */
  async settle(): Promise<void> {
    this.#push({ upTo: Number.POSITIVE_INFINITY });
    await this.#drained;
  }

  /** Ends the feed and every stream of it. */
  close(reason?: "closing"): void {
    this.#over.abort();
    for (const reader of this.#readers) {
      if (reason) reader.end(reason);
      else reader.finish();
    }
    // Whoever joins later still finds what was said meanwhile.
    for (const step of this.#steps) if ("live" in step && !step.isFar) this.#running.note(step.live);
    this.#steps = [];
  }

  #receive(channel: LiveChannel): LiveReceiver {
    return new LiveReceiver({
      ...{ channel, ref: this.#ref, clock: this.#clock, signal: this.#over.signal },
      onStep: (step) => void this.#push(typeof step === "number" ? { upTo: step } : { live: step, isFar: true }),
      onMessages: (whole) => void this.#push({ whole }),
    });
  }

  /** Page after page of the log, each when the one before is taken. */
  async #catchUp(reader: Reader, after: number, bufferBytes: number): Promise<void> {
    let cursor = after;
    let limit = firstPageSize;
    try {
      while (cursor < this.#head && !reader.isEnded) {
        const events = await this.#source.read({ after: cursor, before: this.#head + 1, limit });
        if (events.length === 0) break;
        cursor = events.at(-1)!.seq;
        const page = events.map((event) => new Encoded({ type: "event", event }));
        limit = nextPageSize(page, bufferBytes);
        await reader.fill(page);
      }
      if (!reader.isEnded) this.#attach(reader, cursor);
    } catch (error) {
      dismiss(reader, error);
    }
  }

  /** Nothing is waited for between the last event told and this, so that nothing is missed or told twice (F4). */
  #attach(reader: Reader, cursor: number): void {
    this.#readers.add(reader);
    for (const message of [...this.#running.of(this.#ref), ...this.#far.of(this.#ref)]) {
      if (!this.#told.includes(message.messageId)) reader.push(new Encoded({ type: "snapshot", message }));
    }
    reader.push(new Encoded({ type: "ready", seq: cursor }));
    if (this.#over.signal.aborted) reader.end("closing");
  }

  /** Facts that others write: other processes, and commands that no run makes. */
  async #follow(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#source.watch(this.#head, signal);
      if (signal.aborted) return;
      if (this.#localRuns.size > 0) await this.#clock.sleep(graceMs, signal);
      else if (this.#receiver?.isInStep) await this.#clock.sleep(farGraceMs, signal);
      else this.#receiver?.stir();
      const before = this.#head;
      await this.#push({ upTo: Number.POSITIVE_INFINITY });
      // A hint may come for nothing, over and over.
      if (this.#head === before) await this.#clock.sleep(graceMs, signal);
    }
  }

  #push(step: Step): Promise<void> | undefined {
    if (this.#over.signal.aborted) return undefined;
    this.#steps.push(step);
    if (this.#isDraining) return undefined;
    this.#drained = this.#drain();
    return this.#drained;
  }

  async #drain(): Promise<void> {
    this.#isDraining = true;
    try {
      for (let step = this.#steps.shift(); step; step = this.#steps.shift()) {
        if ("live" in step) this.#tellLive(step.live, step.isFar ? this.#far : this.#running);
        else if ("whole" in step) this.#tellWhole(step.whole);
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
    this.#far.note(event);
    this.#tell({ type: "event", event });
  }

  #tellLive(event: BoughEvent, running: RunningMessages): void {
    if (isDraftEvent(event) && event.messageId !== undefined && this.#told.includes(event.messageId)) return;
    running.note(event);
    this.#tell({ type: "event", event });
  }

  /** What a run of another process is writing, as far as it is: readers are shown it anew. */
  #tellWhole(messages: readonly MessageSnapshot[]): void {
    this.#far = new RunningMessages();
    for (const message of messages) {
      if (this.#told.includes(message.messageId)) continue;
      this.#far.take(message);
      this.#tell({ type: "snapshot", message });
    }
  }

  #tell(frame: Frame): void {
    if (this.#readers.size === 0) return;
    const encoded = new Encoded(frame);
    for (const reader of this.#readers) reader.push(encoded);
  }

  /** The branch is gone, or the store fails: nobody can be told anything more. */
  #fail(error: unknown): void {
    for (const reader of this.#readers) dismiss(reader, error);
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
function dismiss(reader: Reader, error: unknown): void {
  const isGone = BoughError.is(error, "branch_not_found") || BoughError.is(error, "session_not_found");
  if (isGone) reader.finish({ type: "reset", problem: problemOf(error) });
  else reader.end("closing");
}
