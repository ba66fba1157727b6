// Sessions: everything in memory. Loads sessions and branches when they are first touched, keeps the list of sessions, and
// knows which documents on the disk are behind.
//
//   FileSessions-1. Which sessions and branches exist is known without loading them, by their names.
//   FileSessions-2. What is in memory is what is on the disk plus what is decided; loading never sees more than was durable, because
//       an operation loads what it changes before it changes it.
//   FileSessions-3. A session is forgotten only when nothing of it is in memory alone: no claim, no activity to be written.

import type { Clock } from "../../base/clock.ts";
import {
  type BranchRecord,
  type BranchRef,
  isOpenHeader,
  refuse,
  type SessionRecord,
  type StoreProblem,
  Watchers,
} from "../../log/index.ts";
import { BranchFiles } from "./branch-files.ts";
import type { Change } from "./change.ts";
import type { Disk } from "./disk.ts";
import { inSession, paths } from "./layout.ts";
import { loadBranch } from "./load-branch.ts";
import { encodeSession, loadSession, readSessionDocument } from "./load-session.ts";
import { isName, nameOf } from "./names.ts";
import { type BranchState, corruptFile, type SessionState } from "./state.ts";

const sessionsInMemory = 2000;

export class Sessions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly watchers = new Watchers();
  /** Has branches of sessions in memory only: a forgotten one may have been deleted since. */
  readonly branchFiles: BranchFiles;
  /** Found while loading, until maintain() tells. */
  readonly problems: StoreProblem[];
  /** The directory names of all sessions. */
  readonly names: Set<string>;
  /** What a listing needs of every session, by id; undefined until the first one. */
  listed: Map<string, ListedSession> | undefined;
  /** Branches that may be open; undefined until they are first asked for. */
  open: OpenBranches | undefined;
  /** Sessions with a claim. */
  readonly claimed = new Set<SessionState>();
  /** By id, the least recently used first. */
  readonly #loaded = new Map<string, SessionState>();
  readonly #byPath = new Map<string, SessionState>();
  /** Their session.json has an old activity time. */
  readonly #active = new Set<SessionState>();

  constructor(disk: Disk, clock: Clock, problems: StoreProblem[], whenDurable: (write: () => void) => Promise<void>) {
    this.disk = disk;
    this.branchFiles = new BranchFiles(disk, whenDurable);
    this.clock = clock;
    this.problems = problems;
    this.names = new Set(disk.list(paths.sessions).filter(isName));
  }

  pathOf(sessionId: string): string {
    return `${paths.sessions}/${nameOf(sessionId)}`;
  }

  /** Throws `store_corrupt` when it is there and can't be read. */
  find(sessionId: string): SessionState | undefined {
    const known = this.#loaded.get(sessionId);
    if (known) {
      this.#loaded.delete(sessionId);
      this.#loaded.set(sessionId, known);
      return known;
    }
    if (!this.names.has(nameOf(sessionId))) return undefined;
    const session = this.loadByPath(this.pathOf(sessionId));
    if (session.record.id === sessionId) return session;
    throw corruptFile(this.disk.absolute(session.path), `belongs to session "${session.record.id}"`, { sessionId });
  }

  /** The session in this directory. Throws `store_corrupt`. */
  loadByPath(path: string): SessionState {
    const known = this.#byPath.get(path);
    if (known) return known;
    const session = loadSession(this.disk, path, this.clock, this.problems);
    this.#keep(session);
    if (session.claims.size > 0) this.claimed.add(session);
    return session;
  }

  /** The record of the session in this directory, without loading the rest. Throws `store_corrupt`. */
  recordAt(path: string): SessionRecord {
    return (this.#byPath.get(path) ?? readSessionDocument(this.disk, path)).record;
  }

  get(sessionId: string): SessionState {
    const session = this.find(sessionId);
    if (!session) throw refuse.sessionNotFound(sessionId);
    return session;
  }

  /** Throws `store_corrupt` when it is there and nothing of it can be read; a damaged log is for the caller to look at. */
  findBranch(ref: BranchRef): BranchState | undefined {
    const session = this.find(ref.sessionId);
    return session && this.branchOf(session, ref.branchId);
  }

  getBranch(ref: BranchRef): BranchState {
    const branch = this.findBranch(ref);
    if (!branch) throw refuse.branchNotFound(ref);
    return branch;
  }

  branchOf(session: SessionState, branchId: string): BranchState | undefined {
    const known = session.branches.get(branchId);
    if (known) return known;
    const name = nameOf(branchId);
    return session.branchNames.has(name) ? this.loadByName(session, name, branchId) : undefined;
  }

  /** The branch in this directory; `branchId`, when known, must be the one it is about. */
  loadByName(session: SessionState, name: string, branchId?: string): BranchState {
    const known = session.branches.get(session.branchNames.get(name) ?? "");
    if (known && known.record.branchId === (branchId ?? known.record.branchId)) return known;
    const branch = loadBranch(this.disk, session, name, this.problems);
    const { record } = branch;
    const sessionId = session.record.id;
    if (
      record.sessionId !== sessionId ||
      nameOf(record.branchId) !== name ||
      record.branchId !== (branchId ?? record.branchId)
    ) {
      const whose = `belongs to branch "${record.branchId}" of session "${record.sessionId}"`;
      throw corruptFile(this.disk.absolute(branch.path), whose, { sessionId, branchId });
    }
    session.branchNames.set(name, record.branchId);
    session.branches.set(record.branchId, branch);
    const isCurrent = this.#byPath.get(session.path) === session;
    if (isCurrent && branch.shownTo < branch.log.end.offset) this.branchFiles.note(branch);
    return branch;
  }

  parentOf(branch: BranchState): BranchState | undefined {
    const { parent, sessionId } = branch.record;
    return parent && this.getBranch({ sessionId, branchId: parent.branchId });
  }

  add(session: SessionState, change: Change): void {
    const name = nameOf(session.record.id);
    this.names.add(name);
    this.#keep(session);
    change.undo.push(() => {
      this.names.delete(name);
      this.#forget(session);
    });
    this.#list(session.record, change);
  }

  /** `session` is what is known of it: nothing when it is damaged. */
  remove(sessionId: string, session: SessionState | undefined, change: Change): void {
    const name = nameOf(sessionId);
    const listed = this.listed?.get(sessionId);
    this.names.delete(name);
    this.listed?.delete(sessionId);
    if (session) this.#forget(session);
    change.undo.push(() => {
      this.names.add(name);
      if (listed) this.listed?.set(sessionId, listed);
      if (session) this.#keep(session);
    });
    if (!session) return;
    change.done.push(() => {
      this.#active.delete(session);
      this.claimed.delete(session);
      for (const branch of session.branches.values()) this.branchFiles.forget(branch);
    });
  }

  /** Replaces the session's record; the caller makes the change durable. */
  setRecord(session: SessionState, record: SessionRecord, change: Change): void {
    const before = session.record;
    session.record = record;
    change.undo.push(() => {
      session.record = before;
    });
    this.#list(record, change);
  }

  /** Notes that something happened in the session; session.json follows at the next checkpoint. */
  touch(session: SessionState, now: number, change: Change): void {
    this.setRecord(session, { ...session.record, activeAt: now }, change);
    change.operations.push({ kind: "active", path: session.path, at: now });
    this.#active.add(session);
  }

  /** Notes a branch that is open now, once that is asked for (open-branches.ts, FileOpenBranches-1). */
  noteOpen({ sessionId, branchId, header }: BranchRecord): void {
    if (!this.open || !isOpenHeader(header)) return;
    const known = this.open.get(sessionId);
    if (known) known.add(branchId);
    else this.open.set(sessionId, new Set([branchId]));
  }

  /** Puts what only memory knows into the change: activity times, and documents of branches that went on. */
  snapshot(change: Change): void {
    for (const session of this.#active) change.write(inSession.document(session.path), encodeSession(session));
    this.#active.clear();
    this.branchFiles.writeAll(change);
  }

  /** Forgets sessions that were not used for long (FileSessions-3). */
  shrink(): void {
    for (const session of this.#loaded.values()) {
      if (this.#loaded.size <= sessionsInMemory) return;
      if (session.claims.size > 0 || this.#active.has(session)) continue;
      this.#forget(session);
      for (const branch of session.branches.values()) this.branchFiles.forget(branch);
    }
  }

  #keep(session: SessionState): void {
    this.#loaded.set(session.record.id, session);
    this.#byPath.set(session.path, session);
  }

  #forget(session: SessionState): void {
    this.#loaded.delete(session.record.id);
    this.#byPath.delete(session.path);
  }

  #list({ id, activeAt, metadata }: SessionRecord, change: Change): void {
    const { listed } = this;
    if (!listed) return;
    const before = listed.get(id);
    listed.set(id, { id, activeAt, metadata });
    change.undo.push(() => {
      if (before) listed.set(id, before);
      else listed.delete(id);
    });
  }
}

/** Ids of branches by the id of their session. */
export type OpenBranches = Map<string, Set<string>>;

/** What a listing looks at. */
export type ListedSession = Pick<SessionRecord, "id" | "activeAt" | "metadata">;
