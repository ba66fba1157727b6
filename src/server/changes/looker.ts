// Looker: what other processes changed, found by the activity of sessions. It needs nothing of the store but its list of sessions.
//   Looker-1. A change by another process is told at least once, as `session-change`: at once, if nobody told of the session since the
//       last look; otherwise when a look finds it quiet.
//   Looker-2. A look costs what changed: the newest sessions, as far as they are newer than at the last look.

import type { SessionRecord, Store } from "../../log/store.ts";
import type { Change } from "../../wire/index.ts";

export interface LookerOptions {
  readonly store: Pick<Store, "listSessions" | "getSession">;
  /** The sessions that readers asked for, and whether one wants all. */
  readonly wanted: () => { readonly isOfAll: boolean; readonly sessions: ReadonlySet<string> };
  readonly tell: (change: Change) => void;
  readonly tellStale: () => void;
}

const pageSize = 50;
/** From so many pages on, a reader reads its lists again anyway. */
const mostPages = 10;
/** How many sessions are known, and how many of those asked for by id are looked at in one look. */
const mostKnown = 2000;
const sessionsPerLook = 64;

export class Looker {
  readonly #options: LookerOptions;
  /** What the last look found. */
  readonly #known = new Map<string, string>();
  /** Sessions of which something was told since the last look. */
  #told = new Set<string>();
  /** Sessions whose last change may not have been the one that was told (Looker-1). */
  readonly #doubted = new Set<string>();
  #newest = Number.NEGATIVE_INFINITY;
  #turn = 0;

  constructor(options: LookerOptions) {
    this.#options = options;
  }

  /** Something was told of a session: a look that finds it changed need not tell it at once. */
  heard({ type, sessionId }: Change): void {
    this.#told.add(sessionId);
    if (type === "session-delete") this.#forget(sessionId);
  }

  /** From now on, changes of the session are found. */
  know(record: SessionRecord): void {
    if (!this.#known.has(record.id)) this.#known.set(record.id, markOf(record));
  }

  /** From now on, changes of all sessions are found. */
  async begin(): Promise<void> {
    if (this.#newest === Number.NEGATIVE_INFINITY) await this.#seeNewest((change) => this.#tell(change));
  }

  /** One look. */
  async look(): Promise<void> {
    const told = this.#told;
    this.#told = new Set();
    const changed = new Set<string>();
    await this.#see((change, isSettled) => {
      changed.add(change.sessionId);
      if (told.has(change.sessionId) || !isSettled) this.#doubted.add(change.sessionId);
      if (!told.has(change.sessionId)) this.#tell(change);
    });
    for (const sessionId of [...this.#doubted]) {
      if (told.has(sessionId) || changed.has(sessionId)) continue;
      this.#doubted.delete(sessionId);
      this.#tell({ type: "session-change", sessionId });
    }
  }

  /** It is not heard of: it is this looker's own. */
  #tell(change: Change): void {
    this.#options.tell(change);
  }

  async #see(onChange: (change: Change, isSettled: boolean) => void): Promise<void> {
    const { isOfAll, sessions } = this.#options.wanted();
    if (!isOfAll) this.#newest = Number.NEGATIVE_INFINITY;
    if (isOfAll) await this.#seeNewest(onChange);
    else await this.#seeSome([...sessions], onChange);
    for (const id of [...this.#known.keys()].slice(0, Math.max(0, this.#known.size - mostKnown)))
      this.#known.delete(id);
  }

  /** Looker-2. */
  async #seeNewest(onChange: (change: Change, isSettled: boolean) => void): Promise<void> {
    const since = this.#newest;
    const seen = new Set<string>();
    let cursor: string | undefined;
    let oldest = Number.POSITIVE_INFINITY;
    for (let page = 0; ; page++) {
      const after = cursor === undefined ? {} : { cursor };
      const found = await this.#options.store.listSessions({ limit: pageSize, ...after });
      for (const record of found.sessions) {
        seen.add(record.id);
        oldest = Math.min(oldest, record.activeAt);
        this.#newest = Math.max(this.#newest, record.activeAt);
        this.#compare(record, since, onChange);
      }
      cursor = found.cursor;
      if (cursor === undefined) oldest = Number.NEGATIVE_INFINITY;
      if (cursor === undefined || oldest < since || since === Number.NEGATIVE_INFINITY) break;
      if (page === mostPages) return this.#options.tellStale();
    }
    await this.#seeMissing(seen, oldest, onChange);
  }

  /** Sessions that should have been on the page, and were not. */
  async #seeMissing(seen: ReadonlySet<string>, oldest: number, onChange: (change: Change, isSettled: boolean) => void) {
    for (const [sessionId, mark] of [...this.#known]) {
      if (seen.has(sessionId) || activityIn(mark) <= oldest) continue;
      if (await this.#options.store.getSession(sessionId)) continue;
      this.#forget(sessionId);
      onChange({ type: "session-delete", sessionId }, true);
    }
  }

  async #seeSome(sessions: readonly string[], onChange: (change: Change, isSettled: boolean) => void): Promise<void> {
    const first = this.#turn % Math.max(sessions.length, 1);
    this.#turn = first + sessionsPerLook;
    const chosen = [...sessions.slice(first), ...sessions.slice(0, first)].slice(0, sessionsPerLook);
    for (const sessionId of chosen) {
      const record = await this.#options.store.getSession(sessionId);
      if (record) this.#compare(record, Number.NEGATIVE_INFINITY, onChange);
      else if (this.#known.delete(sessionId)) onChange({ type: "session-delete", sessionId }, true);
    }
  }

  #compare(record: SessionRecord, since: number, onChange: (change: Change, isSettled: boolean) => void): void {
    const { id: sessionId, activeAt, createdAt } = record;
    const before = this.#known.get(sessionId);
    const mark = markOf(record);
    // Newest at the end, so that the oldest go first.
    this.#known.delete(sessionId);
    this.#known.set(sessionId, mark);
    if (before === mark) return;
    // Of a session that was not known, only what is newer than the last look is news.
    if (before === undefined && (activeAt < since || since === Number.NEGATIVE_INFINITY)) return;
    const isNew = before === undefined && createdAt >= since;
    // Another change in the same millisecond would not be seen.
    onChange({ type: isNew ? "session-create" : "session-change", sessionId }, activeAt < this.#newest);
  }

  #forget(sessionId: string): void {
    this.#known.delete(sessionId);
    this.#doubted.delete(sessionId);
  }
}

function markOf({ activeAt, version }: SessionRecord): string {
  return `${activeAt} ${version}`;
}

function activityIn(mark: string): number {
  return Number.parseInt(mark, 10);
}
