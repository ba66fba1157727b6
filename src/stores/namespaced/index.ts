// Namespaces: a store as one tenant sees it. Everything a request does goes through one of these, so that no handler can
// forget whose session it asks for.
//   Namespaced-1. The session ids of a namespace begin with its prefix inside the store, and nowhere else: neither answers, nor
//       errors, nor cursors show it, and nothing a client says can leave the prefix.
//   Namespaced-2. Ids with a leading "~" are the server's own. The plain namespace ("") holds all others and sees none of them.
//   Namespaced-3. A namespace is a space of the store (log/store.ts, StoreSessionQuery), by which it lists and searches. Sessions made by earlier
//       versions have a metadata key for that, which no client can read or write.

import { BoughError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import type { ByteRange, ContentStore, ContentUrlOptions, ContentWriter } from "../../log/content.ts";
import { decodeCursor, decodeOpenCursor, encodeCursor, encodeOpenCursor } from "../../log/cursor.ts";
import { notePart } from "../../log/parts.ts";
import { refuse } from "../../log/refusals.ts";
import { listShown, reservedMark as ownMark, spaceOf } from "../../log/reserved.ts";
import type {
  AppendOptions,
  BranchRecord,
  BranchRef,
  DeleteOptions,
  LiveChannel,
  MaintenanceReport,
  NewBranch,
  NewEvent,
  OpenPage,
  OpenQuery,
  ReadOptions,
  RunClaim,
  RunQuery,
  SegmentCache,
  SessionPage,
  SessionRecord,
  Store,
  StoreSessionQuery,
} from "../../log/store.ts";

const namespaceKey = "~namespace";
const lastCharacter = String.fromCodePoint(0x10ffff);

/** A name from its parts; different parts never give the same name. */
export function namespaceOf(...parts: readonly string[]): string {
  return parts.map((part) => part.replace(/[^A-Za-z0-9_-]/gu, (c) => `.${c.codePointAt(0)!.toString(16)}.`)).join("/");
}

/** The namespace of a tenant's sessions; the plain one for the tenant that has no name. */
export function sessionsOf(tenant: string): string {
  return tenant === "" ? "" : namespaceOf("sessions", tenant);
}

/** Whose session an id inside the store is; nothing for what is no tenant's. */
export function placeOf(innerId: string): { readonly tenant: string; readonly sessionId: string } | undefined {
  if (!innerId.startsWith(ownMark)) return { tenant: "", sessionId: innerId };
  const [, name, sessionId] = /^~sessions\/([^~]+)~(.+)$/s.exec(innerId) ?? [];
  if (name === undefined || sessionId === undefined) return undefined;
  const tenant = name.replace(/\.([0-9a-f]+)\./g, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)));
  return { tenant, sessionId };
}

export class NamespacedStore implements Store {
  readonly #store: Store;
  readonly #prefix: string;

  /** `namespace` is a `namespaceOf` name, or "" for the plain one. */
  constructor(store: Store, namespace: string) {
    this.#store = store;
    this.#prefix = namespace === "" ? "" : `${ownMark}${namespace}${ownMark}`;
    notePart(this, { whole: store, space: this.#prefix });
  }

  get kind(): string {
    return this.#store.kind;
  }

  createSession(session: { id: string; metadata: JsonObject; state: JsonObject; branch: NewBranch }) {
    const { id } = session;
    return this.#do(async (store) => {
      if (this.#isForeign(id))
        throw new BoughError("invalid_argument", `A session id must not start with "${ownMark}".`);
      const metadata = this.#ownKeys(session.metadata);
      return this.#record(await store.createSession({ ...session, id: this.#prefix + id, metadata }));
    });
  }

  getSession(sessionId: string) {
    return this.#do(async (store) => {
      if (this.#isForeign(sessionId)) return undefined;
      const record = await store.getSession(this.#prefix + sessionId);
      return record && this.#record(record);
    });
  }

  updateSession(
    sessionId: string,
    patch: { metadata?: JsonObject; state?: JsonObject },
    options?: { expectedVersion?: number },
  ) {
    const { metadata } = patch;
    const own = metadata ? { ...patch, metadata: this.#ownKeys(metadata) } : patch;
    return this.#do(async (store) => this.#record(await store.updateSession(this.#inner(sessionId), own, options)));
  }

  listSessions({ cursor, space, ...query }: StoreSessionQuery = {}): Promise<SessionPage> {
    return this.#do(async (store) => {
      const after = cursor === undefined ? {} : { cursor: this.#innerCursor(cursor) };
      const own = { ...query, ...after, space: this.#prefix };
      // Spaces inside a namespace are none of the store's.
      const isWanted = (innerId: string) => space === undefined || spaceOf(this.#outer(innerId)) === space;
      const page = await listShown(store, own, isWanted);
      const sessions = page.sessions.map((record) => this.#record(record));
      return { sessions, ...(page.cursor !== undefined && { cursor: this.#outerCursor(page.cursor) }) };
    });
  }

  deleteSession(sessionId: string) {
    return this.#do((store) => store.deleteSession(this.#inner(sessionId)));
  }

  createBranch(sessionId: string, branch: NewBranch & { parent?: { branchId: string; seq: number } }) {
    return this.#do(async (store) => this.#placed(await store.createBranch(this.#inner(sessionId), branch)));
  }

  getBranch(ref: BranchRef) {
    return this.#do(async (store) => {
      if (this.#isForeign(ref.sessionId)) return undefined;
      const record = await store.getBranch(this.#ref(ref));
      return record && this.#placed(record);
    });
  }

  listBranches(sessionId: string): Promise<readonly BranchRecord[]> {
    return this.#do(async (store) => {
      const records = await store.listBranches(this.#inner(sessionId));
      return records.map((record) => this.#placed(record));
    });
  }

  deleteBranch(ref: BranchRef, options?: DeleteOptions) {
    return this.#do((store) => store.deleteBranch(this.#ref(ref), options));
  }

  append(ref: BranchRef, events: readonly NewEvent[], options?: AppendOptions) {
    return this.#do(async (store) => {
      const appended = await store.append(this.#ref(ref), events, options);
      return appended.claim ? { ...appended, claim: this.#placed(appended.claim) } : appended;
    });
  }

  read(ref: BranchRef, options?: ReadOptions) {
    return this.#do((store) => store.read(this.#ref(ref), options));
  }

  renewRun(ref: BranchRef, claim: { epoch: number; leaseMs: number }) {
    return this.#do(async (store) => this.#placed(await store.renewRun(this.#ref(ref), claim)));
  }

  releaseRun(ref: BranchRef, claim: { epoch: number }) {
    return this.#do((store) => store.releaseRun(this.#ref(ref), claim));
  }

  listRuns({ sessionId, ...query }: RunQuery = {}): Promise<readonly RunClaim[]> {
    return this.#do(async (store) => {
      const own = sessionId === undefined ? {} : { sessionId: this.#inner(sessionId) };
      const claims = await store.listRuns({ ...query, ...own });
      return claims.filter((claim) => this.#holds(claim.sessionId)).map((claim) => this.#placed(claim));
    });
  }

  listOpen({ sessionId, prefix = "", cursor, ...query }: OpenQuery = {}): Promise<OpenPage> {
    return this.#do(async (store) => {
      if (sessionId !== undefined && this.#isForeign(sessionId)) return { branches: [] };
      const own = sessionId === undefined ? {} : { sessionId: this.#prefix + sessionId };
      const after = cursor === undefined ? {} : { cursor: this.#innerOpenCursor(cursor) };
      const page = await store.listOpen({ ...query, ...own, prefix: this.#prefix + prefix, ...after });
      const branches = page.branches.filter((each) => this.#holds(each.sessionId)).map((each) => this.#placed(each));
      return { branches, ...(page.cursor !== undefined && { cursor: this.#outerOpenCursor(page.cursor) }) };
    });
  }

  saveCheckpoint(ref: BranchRef, checkpoint: { id: string; seq: number; data: JsonObject }) {
    return this.#do((store) => store.saveCheckpoint(this.#ref(ref), checkpoint));
  }

  listCheckpoints(ref: BranchRef) {
    return this.#do((store) => store.listCheckpoints(this.#ref(ref)));
  }

  deleteCheckpoints(ref: BranchRef, ids: readonly string[]) {
    return this.#do((store) => store.deleteCheckpoints(this.#ref(ref), ids));
  }

  async watch(ref: BranchRef, after: number, signal: AbortSignal): Promise<void> {
    if (!this.#isForeign(ref.sessionId)) await this.#store.watch(this.#ref(ref), after, signal);
  }

  get segments(): SegmentCache | undefined {
    const { segments } = this.#store;
    return (
      segments && {
        save: (ref, segment) => this.#do(() => segments.save(this.#ref(ref), segment)),
        get: (ref, at) => this.#do(() => segments.get(this.#ref(ref), at)),
      }
    );
  }

  get content(): ContentStore | undefined {
    const { content } = this.#store;
    return content && this.#content(content);
  }

  #content(content: ContentStore): ContentStore {
    const { url } = content;
    return {
      write: async (ref) => this.#writer(await this.#do(() => content.write(this.#ref(ref)))),
      get: (ref, contentId) => this.#do(() => content.get(this.#ref(ref), contentId)),
      read: (ref, contentId, range) => this.#read(content, ref, contentId, range),
      list: (ref) => this.#do(() => content.list(this.#ref(ref))),
      update: (ref, contentId, info) => this.#do(() => content.update(this.#ref(ref), contentId, info)),
      delete: (ref, contentId) => this.#do(() => content.delete(this.#ref(ref), contentId)),
      usage: (sessionId) => this.#do(() => content.usage(this.#inner(sessionId))),
      ...(url && {
        url: (ref: BranchRef, contentId: string, options: ContentUrlOptions) =>
          this.#do(() => url.call(content, this.#ref(ref), contentId, options)),
      }),
    };
  }

  #writer(writer: ContentWriter): ContentWriter {
    return {
      add: (chunk) => this.#do(() => writer.add(chunk)),
      finish: () => this.#do(() => writer.finish()),
      commit: (row) => this.#do(() => writer.commit(row)),
      abort: () => writer.abort(),
    };
  }

  async *#read(content: ContentStore, ref: BranchRef, contentId: string, range: ByteRange | undefined) {
    const pieces = await this.#do(async () => content.read(this.#ref(ref), contentId, range)[Symbol.asyncIterator]());
    try {
      for (;;) {
        const { done, value } = await this.#do(() => pieces.next());
        if (done) return;
        yield value;
      }
    } finally {
      await pieces.return?.();
    }
  }

  get live(): LiveChannel | undefined {
    const { live } = this.#store;
    return (
      live && {
        send: (ref, text) => live.send(this.#ref(ref), text),
        hear: (ref, onText, signal) => live.hear(this.#ref(ref), onText, signal),
      }
    );
  }

  async maintain(): Promise<MaintenanceReport> {
    throw new BoughError("store_unsupported", "A namespaced store can't be maintained; maintain the whole store.");
  }

  /** Does nothing: other namespaces share the store behind it. */
  async close(): Promise<void> {}

  /** Namespaced-2: an id that this namespace can't have. */
  #isForeign(sessionId: string): boolean {
    return this.#prefix === "" && sessionId.startsWith(ownMark);
  }

  #holds(innerId: string): boolean {
    return this.#prefix === "" ? !innerId.startsWith(ownMark) : innerId.startsWith(this.#prefix);
  }

  #inner(sessionId: string): string {
    if (this.#isForeign(sessionId)) throw refuse.sessionNotFound(sessionId);
    return this.#prefix + sessionId;
  }

  #outer(innerId: string): string {
    return innerId.slice(this.#prefix.length);
  }

  #ref({ sessionId, branchId }: BranchRef): BranchRef {
    return { sessionId: this.#inner(sessionId), branchId };
  }

  #placed<T extends BranchRef>(record: T): T {
    return this.#prefix === "" ? record : { ...record, sessionId: this.#outer(record.sessionId) };
  }

  #record(record: SessionRecord): SessionRecord {
    if (this.#prefix === "") return record;
    return { ...record, id: this.#outer(record.id), metadata: this.#ownKeys(record.metadata) };
  }

  /** Namespaced-3. */
  #ownKeys(metadata: JsonObject): JsonObject {
    const { [namespaceKey]: _ours, ...own } = metadata;
    return own;
  }

  #innerCursor(cursor: string): string {
    const { activeAt, id } = decodeCursor(cursor);
    return encodeCursor({ activeAt, id: this.#prefix + id });
  }

  #outerCursor(cursor: string): string {
    const { activeAt, id } = decodeCursor(cursor);
    return encodeCursor({ activeAt, id: this.#outer(id) });
  }

  #innerOpenCursor(cursor: string): string {
    const { sessionId, branchId } = decodeOpenCursor(cursor);
    return encodeOpenCursor({ sessionId: this.#prefix + sessionId, branchId });
  }

  /** Namespaced-2: the server's own ids stand together, so what comes behind them all is where the plain namespace goes on. */
  #outerOpenCursor(cursor: string): string {
    const { sessionId, branchId } = decodeOpenCursor(cursor);
    if (this.#isForeign(sessionId)) return encodeOpenCursor({ sessionId: `${ownMark}${lastCharacter}`, branchId: "" });
    return encodeOpenCursor({ sessionId: this.#outer(sessionId), branchId });
  }

  /** Namespaced-1: a refusal names the session as the caller does. */
  async #do<T>(operation: (store: Store) => Promise<T>): Promise<T> {
    try {
      return await operation(this.#store);
    } catch (error) {
      if (this.#prefix === "" || !BoughError.is(error)) throw error;
      const { code, message, data, retryable } = error;
      const told = typeof data.sessionId === "string" ? { ...data, sessionId: this.#outer(data.sessionId) } : data;
      throw new BoughError(code, message.replaceAll(this.#prefix, ""), { data: told, retryable, cause: error });
    }
  }
}
