// LazyStore: a store that is opened when it is first used, since every operation waits anyway.
//   LazyStore-1. A store that can't be opened is tried again by the next operation; one that was closed stays closed, opened or not.
//   LazyStore-2. Once it is open, it has the parts that the store behind it has. Before that its parts are unknown: its content can be asked for
//       and opens it; segments and live, which nothing depends on, are missing.

import type { Clock } from "../base/clock.ts";
import type { JsonObject } from "../base/json.ts";
import type { ByteRange, ContentStore } from "../log/content.ts";
import { needContent } from "../log/need-content.ts";
import { refuse } from "../log/refusals.ts";
import type {
  Appended,
  AppendOptions,
  BranchRef,
  LiveChannel,
  NewBranch,
  NewEvent,
  OpenQuery,
  ReadOptions,
  RunQuery,
  SegmentCache,
  Store,
  StoreSessionQuery,
} from "../log/store.ts";
import { openStore } from "./open-store.ts";

/** The store meant by an option: an object as it is, everything else opened when it is first used. */
export function lazyStore(store: Store | string | undefined, options: { clock?: Clock }): Store {
  return typeof store === "object" && store !== null ? store : new LazyStore(() => openStore(store, options));
}

class LazyStore implements Store {
  readonly #open: () => Promise<Store>;
  #opened: Store | undefined;
  #opening: Promise<Store> | undefined;
  #isClosed = false;

  constructor(open: () => Promise<Store>) {
    this.#open = open;
  }

  get kind(): string {
    return this.#opened?.kind ?? "unopened";
  }

  get segments(): SegmentCache | undefined {
    return this.#opened?.segments;
  }

  get content(): ContentStore | undefined {
    return this.#opened ? this.#opened.content : this.#unopenedContent;
  }

  get live(): LiveChannel | undefined {
    return this.#opened?.live;
  }

  /** LazyStore-2. */
  readonly #unopenedContent: ContentStore = {
    write: (ref) => this.#content((content) => content.write(ref)),
    get: (ref, contentId) => this.#content((content) => content.get(ref, contentId)),
    read: (ref, contentId, range) => this.#readContent(ref, contentId, range),
    list: (ref) => this.#content((content) => content.list(ref)),
    update: (ref, contentId, info) => this.#content((content) => content.update(ref, contentId, info)),
    delete: (ref, contentId) => this.#content((content) => content.delete(ref, contentId)),
    usage: (sessionId) => this.#content((content) => content.usage(sessionId)),
    url: (ref, contentId, options) => this.#content(async (content) => content.url?.(ref, contentId, options)),
  };

  #content<T>(operation: (content: ContentStore) => Promise<T>): Promise<T> {
    return this.#use((store) => operation(needContent(store)));
  }

  async *#readContent(ref: BranchRef, contentId: string, range: ByteRange | undefined): AsyncGenerator<Uint8Array> {
    yield* await this.#content(async (content) => content.read(ref, contentId, range));
  }

  createSession(session: { id: string; metadata: JsonObject; state: JsonObject; branch: NewBranch }) {
    return this.#use((store) => store.createSession(session));
  }

  getSession(sessionId: string) {
    return this.#use((store) => store.getSession(sessionId));
  }

  updateSession(
    sessionId: string,
    patch: { metadata?: JsonObject; state?: JsonObject },
    options?: { expectedVersion?: number },
  ) {
    return this.#use((store) => store.updateSession(sessionId, patch, options));
  }

  listSessions(query?: StoreSessionQuery) {
    return this.#use((store) => store.listSessions(query));
  }

  deleteSession(sessionId: string) {
    return this.#use((store) => store.deleteSession(sessionId));
  }

  createBranch(sessionId: string, branch: NewBranch & { parent?: { branchId: string; seq: number } }) {
    return this.#use((store) => store.createBranch(sessionId, branch));
  }

  getBranch(ref: BranchRef) {
    return this.#use((store) => store.getBranch(ref));
  }

  listBranches(sessionId: string) {
    return this.#use((store) => store.listBranches(sessionId));
  }

  deleteBranch(ref: BranchRef, options?: { recursive?: boolean }) {
    return this.#use((store) => store.deleteBranch(ref, options));
  }

  append(ref: BranchRef, events: readonly NewEvent[], options?: AppendOptions): Promise<Appended> {
    return this.#use((store) => store.append(ref, events, options));
  }

  read(ref: BranchRef, options?: ReadOptions) {
    return this.#use((store) => store.read(ref, options));
  }

  renewRun(ref: BranchRef, claim: { epoch: number; leaseMs: number }) {
    return this.#use((store) => store.renewRun(ref, claim));
  }

  releaseRun(ref: BranchRef, claim: { epoch: number }) {
    return this.#use((store) => store.releaseRun(ref, claim));
  }

  listRuns(query?: RunQuery) {
    return this.#use((store) => store.listRuns(query));
  }

  listOpen(query?: OpenQuery) {
    return this.#use((store) => store.listOpen(query));
  }

  saveCheckpoint(ref: BranchRef, checkpoint: { id: string; seq: number; data: JsonObject }) {
    return this.#use((store) => store.saveCheckpoint(ref, checkpoint));
  }

  listCheckpoints(ref: BranchRef) {
    return this.#use((store) => store.listCheckpoints(ref));
  }

  deleteCheckpoints(ref: BranchRef, ids: readonly string[]) {
    return this.#use((store) => store.deleteCheckpoints(ref, ids));
  }

  watch(ref: BranchRef, after: number, signal: AbortSignal) {
    return this.#use((store) => store.watch(ref, after, signal));
  }

  maintain() {
    return this.#use((store) => store.maintain());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const store = await this.#opening?.catch(() => undefined);
    await store?.close();
  }

  /** An opened store is called at once: calls are decided in the order in which they are made. */
  #use<T>(operation: (store: Store) => Promise<T>): Promise<T> {
    return this.#opened ? operation(this.#opened) : this.#ready().then(operation);
  }

  /** LazyStore-1. */
  async #ready(): Promise<Store> {
    if (this.#isClosed) throw refuse.closed();
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    this.#opened = await this.#opening;
    return this.#opened;
  }
}
