// Feed: the stream of one branch, for all its readers. Kept events come from this process's journals or from the log, live
// ones from the agents of this process, or from another that runs the branch; it owns the order between them.
//   Feed-1. Every kept event after a reader's cursor is sent once, in log order, whichever process wrote it.
//   Feed-2. A live event is sent after the kept events that were emitted before it, and before those after it.
//   Feed-3. Live events of a message are sent before the message's fact, or not at all.
//   Feed-4. A reader that joins gets snapshots of the messages in progress, as of the position where it joins.
//   Feed-5. A fact that this process wrote is not read from the log, and becomes the same frame as if it had been.

import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { BoughEvent } from "../events/index.ts";
import { isDraftEvent, LiveReceiver, RunningMessages } from "../live/index.ts";
import type { NewFacts } from "../log/journal.ts";
import type { BranchRef, LiveChannel, ReadOptions } from "../log/store.ts";
import { addressFact, type LogEvent, type LogFact } from "../sessions/history.ts";
import type { Frame, MessageSnapshot } from "../wire/index.ts";
import { Encoded, Reader } from "./reader.ts";
import { problemOf } from "./refusal.ts";

export interface FeedSource {
  /** A page of the branch's log. */
  read(options: ReadOptions): Promise<LogEvent[]>;
  /** Resolves when there may be more. */
  watch(after: number, signal: AbortSignal): Promise<void>;
  /** Resolves when the feed has received what this process is writing on the branch. */
  settle(): Promise<unknown>;
}

type Step =
  | { readonly upTo: number }
  | { readonly live: BoughEvent; readonly isFar?: boolean }
  | { readonly whole: readonly MessageSnapshot[] }
  | { readonly child: BoughEvent };

/** A run of this process emits its facts itself; the feed waits this long for it, so that deltas come first (Feed-2). */
const graceMs = 20;
/** The same for a run of another process, whose events take longer to arrive. */
const farGraceMs = 200;
/** How many facts are held in memory; others are read from the log. */
const mostInHand = 1000;
const pageSize = 500;
/** How many are read at once that others wrote; nothing is known of their size. */
const aheadSize = 50;
/** The first page for a new reader: the size of its branch's events is not known yet. */
const firstPageSize = 20;

export class Feed {
  readonly #ref: BranchRef;
  readonly #source: FeedSource;
  readonly #running: RunningMessages;
  readonly #clock: Clock;
  readonly #readers = new Set<Reader>();
  readonly #over = new AbortController();
  /** The newest kept event that was sent. */
  #head: number;
  #steps: Step[] = [];
  #isDraining = false;
  /** The last work on the steps. */
  #drained: Promise<void> | undefined;
  /** Read from the log and not sent yet, the next one last. */
  #ahead: LogEvent[] = [];
  /** Written by this process and not sent yet, by position (Feed-5). */
  readonly #inHand = new Map<number, LogFact>();
  /** The newest fact that a run of this process wrote. */
  #writtenByRuns = 0;
  /** Messages whose facts were sent recently (Feed-3). */
  #told: string[] = [];
  readonly #localRuns = new Set<string>();
  /** Messages in progress of a run in another process, while this feed listens to it. */
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

  /** Takes an event of an agent of this process, in the order of emission. */
  emitted(event: BoughEvent): void {
    if (event.runId !== undefined) {
      if (event.type === "run-end") this.#localRuns.delete(event.runId);
      else this.#localRuns.add(event.runId);
    }
    this.#push(event.seq === undefined ? { live: event } : { upTo: event.seq });
  }

  /** Takes facts that this process wrote. They are sent when their run emits them (Feed-2); those without a run, at the store's hint. */
  written({ facts, isOfRun }: NewFacts): void {
    for (const fact of facts) {
      if (fact.seq > this.#head && this.#inHand.size < mostInHand) this.#inHand.set(fact.seq, fact);
    }
    if (isOfRun) this.#writtenByRuns = facts.at(-1)!.seq;
  }

  /** Takes an event of a child branch. */
  emittedByChild(event: BoughEvent): void {
    this.#push({ child: event });
  }

  /** A reader of everything after a cursor. */
  join(
    after: number,
    { bufferBytes, events = "tree", onLeft }: { bufferBytes: number; events?: "own" | "tree"; onLeft?: () => void },
  ): Reader {
    const reader: Reader = new Reader(after, {
      bufferBytes,
      events,
      onLeft: () => {
        this.#readers.delete(reader);
        onLeft?.();
      },
    });
    if (after < this.#head) void this.#catchUp(reader, after, bufferBytes);
    else this.#attach(reader, after);
    return reader;
  }

  /** Resolves when everything that is now in the log was sent. */
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
    // Readers that join later still need the messages in progress.
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

  /** Sends page after page of the log, each when the previous one was read. */
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

  /** Nothing is awaited between the last event sent and this, so that nothing is missed or sent twice (Feed-4). */
  #attach(reader: Reader, cursor: number): void {
    this.#readers.add(reader);
    for (const message of [...this.#running.of(this.#ref), ...this.#far.of(this.#ref)]) {
      if (!this.#told.includes(message.messageId)) reader.push(new Encoded({ type: "snapshot", message }));
    }
    reader.push(new Encoded({ type: "ready", seq: cursor }));
    if (this.#over.signal.aborted) reader.end("closing");
  }

  /** Facts that no run of this process emits: those of other processes, and of commands. */
  async #follow(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      const before = this.#head;
      await this.#source.watch(before, signal);
      await this.#source.settle();
      if (signal.aborted) return;
      if (this.#head === before) await this.#untilTold();
      // If there is more than what was sent meanwhile, the next hint comes at once.
      if (this.#head > before) continue;
      await this.#push({ upTo: Number.POSITIVE_INFINITY });
      // There may be any number of spurious hints.
      if (this.#head === before) await this.#clock.sleep(graceMs, signal);
    }
  }

  /** Gives the run that wrote the hinted facts time to emit them (Feed-2). A command's facts are sent from memory. */
  async #untilTold(): Promise<void> {
    const { signal } = this.#over;
    if (this.#localRuns.size > 0 || this.#writtenByRuns > this.#head) await this.#clock.sleep(graceMs, signal);
    else if (this.#inHand.has(this.#head + 1)) await this.#push({ upTo: this.#lastInHand() });
    else if (this.#receiver?.isInStep) await this.#clock.sleep(farGraceMs, signal);
    else this.#receiver?.stir();
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
    while (this.#head < seq && !this.#over.signal.aborted) {
      const next = this.#next();
      if (next) this.#tellKept(next);
      else {
        this.#ahead = (await this.#source.read({ after: this.#head, limit: aheadSize })).reverse();
        if (this.#ahead.length === 0) return;
      }
    }
  }

  /** The fact after the newest one sent, if it is in memory. */
  #next(): LogEvent | undefined {
    const seq = this.#head + 1;
    while (this.#ahead.length > 0 && this.#ahead.at(-1)!.seq < seq) this.#ahead.pop();
    const fact = this.#inHand.get(seq);
    return fact ? addressFact(this.#ref, fact) : this.#ahead.at(-1);
  }

  /** The last position that is in memory without a gap. */
  #lastInHand(): number {
    let seq = this.#head;
    while (this.#inHand.has(seq + 1)) seq++;
    return seq;
  }

  #tellKept(event: LogEvent): void {
    this.#head = event.seq;
    this.#inHand.delete(event.seq);
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

  /** Sends the messages in progress of a run in another process as new snapshots. */
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
    for (const reader of this.#readers) if (reader.takesChildren || frame.type !== "child") reader.push(encoded);
  }

  /** Ends all readers: the branch was deleted, or the store failed. */
  #fail(error: unknown): void {
    for (const reader of this.#readers) dismiss(reader, error);
    this.#over.abort();
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }
}

/** How many events of this size may be queued for a reader. */
function nextPageSize(page: readonly Encoded[], bufferBytes: number): number {
  const size = page.reduce((sum, { json }) => sum + json.length, 0) / page.length;
  return Math.max(1, Math.min(pageSize, Math.floor(bufferBytes / size)));
}

/** The last frame when the log can't be read: a deleted branch can't be resumed; any other failure can, on any node. */
function dismiss(reader: Reader, error: unknown): void {
  const isGone = BoughError.is(error, "branch_not_found") || BoughError.is(error, "session_not_found");
  if (isGone) reader.finish({ type: "reset", problem: problemOf(error) });
  else reader.end("closing");
}
