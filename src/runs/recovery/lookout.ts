// Lookout: the one that looks at a store for all sweepers of this process, whatever the number of its agents and tenants. It owns the
// rhythm of looks; what a claim means is the sweepers' (sweeper.ts).
//   Lookout-1. A look costs one list of the claims that end soon; all are listed as often as turns are looked for. Each sweeper gets those of its part of the store; one that has none, knew of none and has
//       nothing else to do is not called.
//       Nor does a look for turns without a claim ask for each part: which parts have any is asked once for all.
//   Lookout-2. A sweeper that is still at work on an earlier look is left out of this one: it holds up nobody.
//   Lookout-3. It looks while there are sweepers. Who joins looks at once, and who leaves has its last look awaited.

import type { Clock } from "../../base/clock.ts";
import { partOf, type RunClaim, type Store, spaceOf } from "../../log/index.ts";

/** What a look found in a sweeper's part of the store. */
export interface Look {
  readonly claims: readonly RunClaim[];
  /** Claims whose lease ends later were not asked for. */
  readonly endsBefore: number;
  /** Whether there may be open branches. */
  mayBeOpen(): Promise<boolean>;
}

/** A sweeper, as a lookout knows it. */
export interface Looker {
  readonly store: Store;
  readonly leaseMs: number;
  readonly scanEveryMs: number;
  /** Whether it wants a look although there is no claim in its part. */
  isDue(now: number): boolean;
  /** Never rejects. */
  look(look: Look): Promise<void>;
  /** Called for the first of several failed looks in a row. */
  onFailure(error: unknown): void;
}

export interface Rhythm {
  readonly clock: Clock;
  readonly everyMs: number;
  readonly random: () => number;
}

const lookouts = new WeakMap<Store, Set<Lookout>>();

/** Has the looker look in this rhythm until the returned function is called, which resolves when its last look is over. */
export function lookOut(looker: Looker, rhythm: Rhythm): () => Promise<void> {
  const { whole } = partOf(looker.store);
  let known = lookouts.get(whole);
  if (!known) {
    known = new Set();
    lookouts.set(whole, known);
  }
  let lookout = [...known].find((each) => each.hasRhythm(rhythm));
  if (!lookout) {
    lookout = new Lookout(whole, rhythm, (gone) => known.delete(gone));
    known.add(lookout);
  }
  return lookout.join(looker);
}

class Lookout {
  readonly #whole: Store;
  readonly #rhythm: Rhythm;
  readonly #onEmpty: (lookout: Lookout) => void;
  readonly #over = new AbortController();
  /** With the space of each one's part. */
  readonly #lookers = new Map<Looker, string>();
  /** Those at work, and the end of it. */
  readonly #looking = new Map<Looker, Promise<void>>();
  #isFailing = false;
  /** When all claims were listed. */
  #allAt = Number.NEGATIVE_INFINITY;
  /** The spaces that had open branches a moment ago. */
  #open: { readonly at: number; readonly spaces: Promise<ReadonlySet<string>> } | undefined;

  constructor(whole: Store, rhythm: Rhythm, onEmpty: (lookout: Lookout) => void) {
    this.#whole = whole;
    this.#rhythm = rhythm;
    this.#onEmpty = onEmpty;
  }

  hasRhythm({ clock, everyMs }: Rhythm): boolean {
    return this.#rhythm.clock === clock && this.#rhythm.everyMs === everyMs;
  }

  join(looker: Looker): () => Promise<void> {
    const isFirst = this.#lookers.size === 0;
    this.#lookers.set(looker, partOf(looker.store).space);
    if (isFirst) void this.#keepLooking();
    else void this.#lookAlone(looker);
    return () => this.#leave(looker);
  }

  async #leave(looker: Looker): Promise<void> {
    this.#lookers.delete(looker);
    if (this.#lookers.size === 0) {
      this.#onEmpty(this);
      this.#over.abort();
    }
    await this.#looking.get(looker);
  }

  async #keepLooking(): Promise<void> {
    const { clock, everyMs, random } = this.#rhythm;
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#look();
      // Spread, so that many processes don't look at the same moment.
      await clock.sleep(everyMs * (0.8 + 0.4 * random()), signal);
    }
  }

  async #look(): Promise<void> {
    try {
      const endsBefore = this.#nextBound();
      const claims = bySpace(await this.#whole.listRuns(Number.isFinite(endsBefore) ? { endsBefore } : {}));
      const now = this.#rhythm.clock.now();
      for (const [looker, space] of this.#lookers) {
        const own = claims.get(space);
        if (own || looker.isDue(now)) this.#tell(looker, own ?? [], endsBefore);
      }
      if (!Number.isFinite(endsBefore)) this.#allAt = now;
      this.#isFailing = false;
    } catch (error) {
      // One of them says it: it is the same store for all.
      const [first] = this.#lookers.keys();
      if (!this.#isFailing) first?.onFailure(error);
      this.#isFailing = true;
    }
  }

  /** Up to when claims have to end for this look to ask for them. */
  #nextBound(): number {
    const now = this.#rhythm.clock.now();
    let [scanEvery, lease] = [Number.POSITIVE_INFINITY, 0];
    for (const { scanEveryMs, leaseMs } of this.#lookers.keys()) {
      scanEvery = Math.min(scanEvery, scanEveryMs);
      lease = Math.max(lease, leaseMs);
    }
    const isTimeForAll = now < this.#allAt || now - this.#allAt >= scanEvery;
    return isTimeForAll ? Number.POSITIVE_INFINITY : now + 2 * lease;
  }

  async #lookAlone(looker: Looker): Promise<void> {
    try {
      const claims = await looker.store.listRuns();
      if (this.#lookers.has(looker)) this.#tell(looker, claims, Number.POSITIVE_INFINITY);
    } catch {
      // The next look of all finds the same, and says so.
    }
  }

  /** Lookout-2. */
  #tell(looker: Looker, claims: readonly RunClaim[], endsBefore: number): void {
    if (this.#looking.has(looker)) return;
    const looking = looker
      .look({ claims, endsBefore, mayBeOpen: () => this.#mayBeOpen(looker) })
      .finally(() => this.#looking.delete(looker));
    this.#looking.set(looker, looking);
  }

  async #mayBeOpen(looker: Looker): Promise<boolean> {
    // One alone would ask twice.
    if (this.#lookers.size < 2) return true;
    const { clock, everyMs } = this.#rhythm;
    const now = clock.now();
    if (!this.#open || now < this.#open.at || now - this.#open.at > everyMs * sharedLooks) {
      this.#open = { at: now, spaces: openSpaces(this.#whole) };
      this.#open.spaces.catch(() => {
        this.#open = undefined;
      });
    }
    return (await this.#open.spaces).has(partOf(looker.store).space);
  }
}

/** So many looks share one list of open branches. */
const sharedLooks = 16;

async function openSpaces(store: Store): Promise<ReadonlySet<string>> {
  const spaces = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await store.listOpen({ limit: 500, ...(cursor !== undefined && { cursor }) });
    for (const { sessionId } of page.branches) spaces.add(spaceOf(sessionId));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return spaces;
}

/** The claims of each space, under the ids that its part of the store gives them. */
function bySpace(claims: readonly RunClaim[]): Map<string, RunClaim[]> {
  const found = new Map<string, RunClaim[]>();
  for (const claim of claims) {
    const space = spaceOf(claim.sessionId);
    const own = space === "" ? claim : { ...claim, sessionId: claim.sessionId.slice(space.length) };
    const known = found.get(space);
    if (known) known.push(own);
    else found.set(space, [own]);
  }
  return found;
}
