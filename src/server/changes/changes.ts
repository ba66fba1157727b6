// Changes: the live feed of one tenant on one node, and where its changes come from: what this process writes, what other nodes say,
// and what a look at the store finds.

import type { Clock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import { randomIds } from "../../base/ids.ts";
import type { BoughEvent } from "../../events/index.ts";
import type { BranchRef, Store } from "../../log/index.ts";
import type { Journal, NewFacts } from "../../log/journal.ts";
import { refuse } from "../../log/refusals.ts";
import type { Context } from "../../sessions/context.ts";
import { NamespacedStore, namespaceOf } from "../../stores/namespaced/index.ts";
import type { Change } from "../../wire/index.ts";
import { ChangeChannel } from "./channel.ts";
import { ChangeFeed } from "./feed.ts";
import { Looker } from "./looker.ts";
import { changesOf } from "./of-facts.ts";
import type { ChangeReader } from "./reader.ts";
import type { Rounds } from "./rounds.ts";

export interface ChangesOptions {
  /** The tenant's name. */
  readonly name: string;
  /** The store of all tenants. */
  readonly store: Store;
  readonly clock: Clock;
  readonly rounds: Rounds;
  readonly warn: (message: string, error: unknown) => void;
}

export class Changes {
  readonly #options: ChangesOptions;
  readonly #feed: ChangeFeed;
  readonly #channel: ChangeChannel;
  readonly #journals = new Map<Journal, () => void>();
  #context: Context | undefined;
  #looker: Looker | undefined;

  constructor(options: ChangesOptions) {
    const { name, store, clock } = options;
    this.#options = options;
    this.#feed = new ChangeFeed({ name: randomIds.next(), onReaders: (isAny) => this.#onReaders(isAny) });
    this.#channel = new ChangeChannel({
      live: new NamespacedStore(store, namespaceOf("changes", name)).live,
      ref: { sessionId: "feed", branchId: "changes" },
      clock,
      onChange: (change) => this.#take(change),
      onLost: () => this.#feed.tellStale(),
    });
  }

  /** The tenant's context, once it is there. */
  hearContext(context: Context): void {
    this.#context = context;
    this.hearJournal(context.journal, context);
  }

  hearJournal(journal: Journal, { views }: Pick<Context, "views">): void {
    if (this.#journals.has(journal)) return;
    const stop = journal.onWritten((ref, written) => this.#written(ref, written, views));
    this.#journals.set(journal, stop);
  }

  /** A change that this process made. Never waits. */
  readonly tell = (change: Change): void => {
    this.#take(change);
    this.#channel.send(change);
  };

  /** An event of an agent of this process: that a run parked is in no fact. */
  emitted(event: BoughEvent): void {
    if (event.type !== "run-end" || event.status !== "parked" || event.turnId === undefined) return;
    const { sessionId, branchId, turnId } = event;
    const visibility = (event.agent?.depth ?? 0) > 0 ? { visibility: "hidden" as const } : {};
    this.tell({ type: "run-end", sessionId, branchId, ...visibility, turnId, status: "parked" });
  }

  /** Opens a reader, of one session or of all. What other processes do is looked for from before it is ready. */
  async open({ sessionId, after }: { sessionId?: string; after?: string }): Promise<ChangeReader> {
    const { store } = this.#context!;
    const session = sessionId === undefined ? undefined : await store.getSession(sessionId);
    if (sessionId !== undefined && !session) throw refuse.sessionNotFound(sessionId);
    this.#looker ??= new Looker({
      store,
      wanted: () => this.#feed,
      tell: (change) => this.#feed.tell(change),
      tellStale: () => this.#feed.tellStale(),
    });
    if (session) this.#looker.know(session);
    else await this.#looker.begin();
    return this.#feed.open({ ...(session && { sessionId: session.id }), ...(after !== undefined && { after }) });
  }

  close(): void {
    for (const stop of this.#journals.values()) stop();
    this.#journals.clear();
    this.#feed.close();
    this.#channel.close();
    this.#options.rounds.delete(this);
  }

  /** One look at what other processes did. */
  async look(): Promise<void> {
    try {
      await this.#looker?.look();
    } catch (error) {
      if (BoughError.is(error, "store_closed")) return;
      this.#options.warn("Changes by other processes could not be looked for:", error);
      this.#feed.tellStale();
    }
  }

  #onReaders(isAny: boolean): void {
    this.#channel.wish(isAny);
    const { rounds } = this.#options;
    if (isAny) rounds.add(this);
    else {
      rounds.delete(this);
      this.#looker = undefined;
    }
  }

  #written(ref: BranchRef, { facts }: NewFacts, views: Context["views"]): void {
    const { visibility } = views.cachedAt(ref, facts.at(-1)?.seq ?? 0)?.header ?? {};
    const { sessionId, branchId } = ref;
    for (const change of changesOf({ sessionId, branchId, ...(visibility && { visibility }) }, facts))
      this.tell(change);
  }

  #take(change: Change): void {
    this.#looker?.heard(change);
    this.#feed.tell(change);
  }
}
