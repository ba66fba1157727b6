// ChangeFeed: the changes of a tenant, told to readers in this process.
//   ChangeFeed-1. A change is told after what it tells of is durable.
//   ChangeFeed-2. A reader with a cursor of this feed gets each change after it once and in order, as far back as the feed remembers;
//       any other is told that it may have missed some.
//   ChangeFeed-3. Without readers a change costs a place in a list of bounded length, and nothing is looked at.

import type { Change, ChangeFrame } from "../../wire/index.ts";
import { ChangeReader, EncodedChange } from "./reader.ts";

/** How many changes are remembered for readers that come back. */
const remembered = 1000;

export interface ChangeFeedOptions {
  /** Different for every feed of every process. */
  readonly name: string;
  /** Called when the first reader comes, and when the last one has left. */
  readonly onReaders: (isAny: boolean) => void;
}

export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  readonly #readers = new Set<ChangeReader>();
  #last: Change[] = [];
  /** The number of the newest change. */
  #count = 0;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
  }

  get hasReaders(): boolean {
    return this.#readers.size > 0;
  }

  /** The sessions that readers asked for by id. */
  get sessions(): ReadonlySet<string> {
    return new Set([...this.#readers].flatMap(({ sessionId }) => sessionId ?? []));
  }

  /** Whether a reader wants the changes of all sessions. */
  get isOfAll(): boolean {
    return [...this.#readers].some(({ sessionId }) => sessionId === undefined);
  }

  /** Never waits. */
  tell(change: Change): void {
    this.#count++;
    this.#last.push(change);
    if (this.#last.length >= 2 * remembered) this.#last = this.#last.slice(-remembered);
    if (this.#readers.size === 0) return;
    const encoded = new EncodedChange({ type: "change", cursor: this.#cursor, change });
    for (const reader of this.#readers) {
      if (!reader.wants(change)) continue;
      reader.push(encoded);
      if (change.type === "session-delete" && reader.sessionId === change.sessionId) reader.end("deleted");
    }
  }

  /** Changes were lost on the way here. */
  tellStale(): void {
    // Nobody may continue from before.
    this.#last = [];
    this.#count++;
    for (const reader of this.#readers) reader.push(this.#frame("stale"));
  }

  /** Opens a reader of a session, or of all of them; without a cursor, from now on. */
  open({ sessionId, after }: { sessionId?: string; after?: string }): ChangeReader {
    const onLeft = (left: ChangeReader) => {
      this.#readers.delete(left);
      if (this.#readers.size === 0) this.#options.onReaders(false);
    };
    const reader = new ChangeReader(this.#cursor, { onLeft, ...(sessionId !== undefined && { sessionId }) });
    const missed = after === undefined ? [] : this.#after(after);
    if (!missed) reader.push(this.#frame("stale"));
    for (const { change, number } of missed ?? []) {
      const frame: ChangeFrame = { type: "change", cursor: this.#cursorOf(number), change };
      if (reader.wants(change)) reader.push(new EncodedChange(frame));
    }
    reader.push(this.#frame("ready"));
    this.#readers.add(reader);
    if (this.#readers.size === 1) this.#options.onReaders(true);
    return reader;
  }

  close(): void {
    for (const reader of [...this.#readers]) reader.end("closing");
  }

  /** ChangeFeed-2. Undefined for a cursor of another feed, or one that is too old. */
  #after(cursor: string): { change: Change; number: number }[] | undefined {
    const [, name, digits] = /^(.+)\.(\d{1,15})$/.exec(cursor) ?? [];
    const number = Number(digits);
    const first = this.#count - this.#last.length;
    if (name !== this.#options.name || number < first || number > this.#count) return undefined;
    return this.#last.slice(number - first).map((change, i) => ({ change, number: number + i + 1 }));
  }

  #frame(type: "ready" | "stale"): EncodedChange {
    return new EncodedChange({ type, cursor: this.#cursor });
  }

  get #cursor(): string {
    return this.#cursorOf(this.#count);
  }

  #cursorOf(number: number): string {
    return `${this.#options.name}.${number}`;
  }
}
