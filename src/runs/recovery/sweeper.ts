// Sweeper: searches repeatedly for open turns without an active run, and offers them to be resumed. It owns what it knows
// of other processes' claims.
//   Sweeper-1. It only offers: the claim of the branch decides who gets a turn, so any number of processes may sweep.
//   Sweeper-2. A claim is offered when its owner is dead, when its lease is over, or when it has not changed for as long as a lease
//       lasts: the last holds whatever the clocks of this process and of the store say.
//       A claim under which a turn sleeps is offered when its lease is over, and not before.
//   Sweeper-3. The same claim is offered again a lease later at the earliest.
//   Sweeper-4. A look takes the claims that all sweepers of the process share (lookout.ts): those that end soon, and all as often as
//       turns are looked for. Turns without a claim are looked for less often, and loaded where something
//       happened since. One that waits for an answer is loaded again when its branch has changed or its time is over.
//   Sweeper-5. A clock that was set, this process's or another's, costs a look or two, never the time that it was set by.
//   Sweeper-6. At most `parallelRuns` of the turns it offered are worked on at the same time. The others wait, first come first
//       served, and are checked again when there is room: another process may have resumed them.

import { type BranchRecord, type BranchRef, branchKey, isReserved, type RunClaim } from "../../log/index.ts";
import { isAsleep, isHeld } from "../../sessions/claims.ts";
import type { Context } from "../../sessions/context.ts";
import { describeOpen, findInterrupted, type InterruptedRun, isGone, isReady } from "./find.ts";
import { type Look, type Looker, lookOut } from "./lookout.ts";

export interface SweeperOptions {
  readonly context: Context;
  readonly random: () => number;
  readonly leaseMs: number;
  readonly everyMs: number;
  readonly scanEveryMs: number;
  readonly parallelRuns: number;
  /** Whether the run is one of this process that works still. */
  isOwn(runId: string): boolean;
  /** Resumes a turn, or leaves it. The promise of a resumed turn resolves when the work on it is over; it never rejects. */
  offer(left: InterruptedRun): Promise<unknown> | undefined;
  /** Called for a branch without an open turn on which inputs wait. */
  onQueue(ref: BranchRef): void;
  /** Called for a branch with background tasks, which may have ended. Never rejects. */
  onTasks(ref: BranchRef): Promise<void>;
  /** Called for branches that can't be read, and for the first of several failed scans in a row. */
  onError(error: unknown): void;
}

interface Known {
  readonly epoch: number;
  readonly expiresAt: number;
  /** When it is offered although its lease seems to run. */
  offerAt: number;
  isOffered: boolean;
}

interface Waiting {
  /** The newest position of its branch when it was loaded. */
  readonly seq: number;
  /** When the first of its questions expires, which leaves no sign in the store; infinite if none does. */
  readonly until: number;
}

/**
 * A scan also covers sessions that were active this long before the last scan, because the writers' clocks differ.
 */
const overlapMs = 15_000;

export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #over = new AbortController();
  readonly #leave: () => Promise<void>;
  #claims = new Map<string, Known>();
  /** What is to be offered when there is room. */
  readonly #due = new Map<string, BranchRef>();
  #offering: Promise<void> | undefined;
  /** How many of the offered turns are active. */
  #taken = 0;
  /** Turns that wait for an answer, by branch (Sweeper-4). */
  #waiting: ReadonlyMap<string, Waiting> = new Map();
  #activeSince = 0;
  #scanAt = 0;
  #lookedAt = 0;
  #isFailing = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    const { context, everyMs, random } = options;
    const looker: Looker = {
      store: context.store,
      leaseMs: options.leaseMs,
      scanEveryMs: options.scanEveryMs,
      isDue: (now) => this.#isDue(now),
      look: (look) => this.#look(look),
      onFailure: (error) => this.#say(error),
    };
    this.#leave = lookOut(looker, { clock: context.clock, everyMs, random });
  }

  /** Resolves when it looks no more. */
  async stop(): Promise<void> {
    this.#over.abort();
    await this.#leave();
    await this.#offering;
  }

  /** Whether it has scanned everything once, and nothing that it found is pending or active. */
  get isIdle(): boolean {
    return this.#scanAt > 0 && this.#due.size + this.#taken === 0;
  }

  /** When the first waiting question expires; infinite if none does. */
  get nextDeadline(): number {
    return [...this.#waiting.values()].reduce((first, { until }) => Math.min(first, until), Number.POSITIVE_INFINITY);
  }

  #isDue(now: number): boolean {
    return this.#claims.size + this.#due.size > 0 || now < this.#lookedAt || now >= this.#scanAt;
  }

  async #look(look: Look): Promise<void> {
    try {
      await this.#lookAt(look);
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#say(error);
      this.#isFailing = true;
    }
  }

  #say(error: unknown): void {
    if (!this.#over.signal.aborted) this.#options.onError(error);
  }

  async #lookAt({ claims, endsBefore, mayBeOpen }: Look): Promise<void> {
    const { context, scanEveryMs } = this.#options;
    const now = context.clock.now();
    if (now < this.#lookedAt) this.#setBack(now);
    this.#lookedAt = now;
    for (const claim of this.#left(claims, { now, endsBefore })) this.#due.set(branchKey(claim), claim);
    await this.#offerDue();
    if (now < this.#scanAt) return;
    // The first scan is its own: it may be there for a turn that was opened since.
    const isNeeded = this.#scanAt === 0 || this.#waiting.size > 0 || (await mayBeOpen());
    for (const left of isNeeded ? await this.#scan() : []) this.#due.set(branchKey(left), left);
    this.#scanAt = now + scanEveryMs;
    await this.#offerDue();
  }

  /** Sweeper-5: what was to happen at a time that is far off now. */
  #setBack(now: number): void {
    const { leaseMs } = this.#options;
    this.#scanAt = now;
    this.#activeSince = Math.min(this.#activeSince, now - overlapMs);
    for (const known of this.#claims.values()) known.offerAt = Math.min(known.offerAt, now + leaseMs);
  }

  /** The claims to offer now (Sweeper-2, Sweeper-3). */
  #left(claims: readonly RunClaim[], { now, endsBefore }: { now: number; endsBefore: number }): RunClaim[] {
    const { leaseMs, isOwn } = this.#options;
    const before = this.#claims;
    // Those that were not asked for are as they were.
    this.#claims = new Map([...before].filter(([, { expiresAt }]) => expiresAt >= endsBefore));
    return claims.filter((claim) => {
      if (isReserved(claim.sessionId) || isAsleep(claim, now)) return false;
      const { epoch, expiresAt, runId } = claim;
      const key = branchKey(claim);
      const last = before.get(key);
      const isSame = last?.epoch === epoch && last.expiresAt === expiresAt;
      const known = isSame ? last : { epoch, expiresAt, offerAt: now + leaseMs, isOffered: false };
      this.#claims.set(key, known);
      if (!isSame) this.#due.delete(key);
      const isOver = !known.isOffered && !isHeld(claim, now);
      if (isOwn(runId) || !(isOver || known.offerAt <= now)) return false;
      known.isOffered = true;
      known.offerAt = now + leaseMs;
      return true;
    });
  }

  #offerDue(): Promise<void> {
    this.#offering ??= this.#offerWhileFree().finally(() => {
      this.#offering = undefined;
    });
    return this.#offering;
  }

  /** Sweeper-6. */
  async #offerWhileFree(): Promise<void> {
    const { parallelRuns, offer } = this.#options;
    for (const [key, ref] of this.#due) {
      if (this.#taken >= parallelRuns) return;
      this.#due.delete(key);
      const left = await this.#describe(ref);
      if (this.#over.signal.aborted) return;
      const over = left && offer(left);
      if (!over) continue;
      this.#taken++;
      void over.then(() => {
        this.#taken--;
        return this.#offerDue();
      });
    }
  }

  /** Nothing for a branch that can't be read: the others shall not wait for it. */
  #describe({ sessionId, branchId }: BranchRef): Promise<InterruptedRun | undefined> {
    return describeOpen(this.#options.context, { sessionId, branchId }).catch((error) => this.#skip(error));
  }

  #skip(error: unknown): undefined {
    if (!isGone(error) && !this.#over.signal.aborted) this.#options.onError(error);
  }

  /** Turns that were given back: to wait for an answer that is there by now, or waited for in vain. */
  async #scan(): Promise<readonly InterruptedRun[]> {
    const { context, onQueue, onTasks } = this.#options;
    const now = context.clock.now();
    const [newest] = (await context.store.listSessions({ limit: 1 })).sessions;
    const onError = (error: unknown) => this.#skip(error);
    const positions = new Map<string, number>();
    const waiting = new Map<string, Waiting>();
    const isWanted = (branch: BranchRecord): boolean => {
      const key = branchKey(branch);
      const known = this.#waiting.get(key);
      positions.set(key, branch.seq);
      if (known?.seq !== branch.seq) return known !== undefined || branch.activeAt >= this.#activeSince;
      waiting.set(key, known);
      return known.until <= now;
    };
    const tasksOn: BranchRef[] = [];
    const found = await findInterrupted(context, { isWanted, onError, onQueue, onTasks: (ref) => tasksOn.push(ref) });
    for (const ref of tasksOn) await onTasks(ref);
    // Sweeper-5: what a process wrote whose clock is ahead must not hide what others write.
    this.#activeSince = Math.max(this.#activeSince, Math.min(newest?.activeAt ?? 0, now) - overlapMs);
    for (const left of found) {
      const key = branchKey(left);
      if (isReady(left, now)) waiting.delete(key);
      else waiting.set(key, { seq: positions.get(key)!, until: firstDeadline(left) });
    }
    this.#waiting = waiting;
    return found;
  }
}

/** When the first of its questions expires, or when it wakes; infinite if neither happens by itself. */
function firstDeadline({ waitingFor, asleep }: InterruptedRun): number {
  const wakes = asleep?.until ?? Number.POSITIVE_INFINITY;
  return Math.min(wakes, ...waitingFor.map(({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt));
}
