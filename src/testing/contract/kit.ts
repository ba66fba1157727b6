// What the cases of the contract suite share: a fresh store per case, small builders, and how a refusal is looked at.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { Clock } from "../../base/clock.ts";
import { BoughError, type ErrorCode } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import type { BranchRef, ClaimOptions, NewEvent, RunClaim, Store } from "../../log/store.ts";
import { checkLogs } from "../check-log.ts";
import { type ManualClock, manualClock } from "../clock.ts";

/** A store for the suite's exclusive use. */
export interface StoreUnderTest {
  store: Store;
  /** Closes and opens the same data again. */
  reopen?(): Promise<Store>;
  /** Opens another handle on the same data, as another process would. */
  second?(): Promise<Store>;
  /** Closes what is open and removes the data. */
  dispose(): Promise<void>;
}

/** The parts of the port that a store may leave out (log/store.ts). */
export const optionalParts = ["segments", "content", "live"] as const;

export type Ability = "reopen" | "secondHandle" | (typeof optionalParts)[number];

/** Opens the stores that the suite tests. */
export interface StoreHarness {
  /** Opens a new, empty store with this clock. */
  open(options: { clock: Clock }): Promise<StoreUnderTest>;
  /**
   * What the store can't do or omits, each with its reason. Matching cases are skipped and print the reason. A store that
   * omits an undeclared part, or has a declared one, fails.
   */
  lacks?: Partial<Record<Ability, string>>;
}

/** Sizes of the larger cases. */
export interface ContractSizes {
  /** Branches in a chain of forks (default 300). */
  chain: number;
  /** Concurrent writers (default 20). */
  writers: number;
}

/** What a case gets. */
export interface Case {
  store: Store;
  clock: ManualClock;
  sizes: ContractSizes;
  reopen(): Promise<Store>;
  second(): Promise<Store>;
}

type Run = (given: Case) => Promise<void>;

/** Registers cases; each runs on a store of its own, and what it leaves behind must be legal logs. */
export class Contract {
  readonly #harness: StoreHarness;
  readonly #sizes: ContractSizes;

  constructor(harness: StoreHarness, sizes: ContractSizes) {
    this.#harness = harness;
    this.#sizes = sizes;
  }

  test(name: string, run: Run): void {
    test(name, () => this.#run(run));
  }

  /** A case for stores that can do this; for the others it is skipped, with their reason in its name. */
  testWith(ability: Ability, name: string, run: Run): void {
    const reason = this.#harness.lacks?.[ability];
    if (reason === undefined) this.test(name, run);
    else test.skip(`${name} [no ${ability}: ${reason}]`, () => {});
  }

  /** Whether the harness declares that the store can't do this. */
  lacks(ability: Ability): boolean {
    return this.#harness.lacks?.[ability] !== undefined;
  }

  async #run(run: Run): Promise<void> {
    const clock = manualClock();
    const under = await this.#harness.open({ clock });
    let store = under.store;
    try {
      await run({
        store,
        clock,
        sizes: this.#sizes,
        reopen: async () => {
          store = await must(under.reopen, "reopen").call(under);
          return store;
        },
        second: () => must(under.second, "secondHandle").call(under),
      });
      expect(await problemsOf(store)).toEqual([]);
    } finally {
      await under.dispose();
    }
  }
}

function must<T>(method: T | undefined, ability: Ability): T {
  if (method) return method;
  throw new Error(`The harness has no way to do "${ability}" and does not say in lacks why.`);
}

async function problemsOf(store: Store): Promise<string[]> {
  try {
    return await checkLogs(store);
  } catch (error) {
    if (BoughError.is(error, "store_closed")) return [];
    throw error;
  }
}

/** `n` facts with ids `${prefix}${from}` … and data of their own. */
export function facts(prefix: string, n: number, from = 1): NewEvent[] {
  return Array.from({ length: n }, (_, i) => ({
    id: `${prefix}${from + i}`,
    data: JSON.stringify({ from: prefix, n: from + i }),
  }));
}

/** The facts as a log shows them, numbered from `first`. */
export function stored(events: readonly NewEvent[], first = 1) {
  return events.map(({ id, data }, i) => ({ seq: first + i, id, data }));
}

/** Creates a session with one branch and returns that branch. */
export async function givenSession(
  store: Store,
  options: {
    id?: string;
    branchId?: string;
    events?: readonly NewEvent[];
    metadata?: JsonObject;
    header?: JsonObject;
  } = {},
): Promise<BranchRef> {
  const { id = "s", branchId = "main", events = [], metadata = {}, header = {} } = options;
  await store.createSession({ id, metadata, state: {}, branch: { id: branchId, header, events } });
  return { sessionId: id, branchId };
}

/** Forks a branch at a position and returns the child. */
export async function givenFork(
  store: Store,
  parent: BranchRef,
  branchId: string,
  seq: number,
  events: readonly NewEvent[] = [],
): Promise<BranchRef> {
  await store.createBranch(parent.sessionId, {
    id: branchId,
    header: {},
    events,
    parent: { branchId: parent.branchId, seq },
  });
  return { sessionId: parent.sessionId, branchId };
}

let claims = 0;

/** Claims the branch's run slot. Claims ride on appends, so the log has a fact more afterwards. */
export async function claimSlot(store: Store, ref: BranchRef, claim: ClaimOptions): Promise<RunClaim> {
  return (await store.append(ref, [claimFact()], { claim })).claim!;
}

/** A fact that was never appended before. */
function claimFact(): NewEvent {
  return { id: `claim.${++claims}`, data: "{}" };
}

/** Content as a caller hands it in: its id is the SHA-256 of its bytes. */
export function contentOf(text: string, mediaType = "text/plain") {
  const bytes = new TextEncoder().encode(text);
  return { id: createHash("sha256").update(bytes).digest("hex"), bytes, mediaType };
}

/** The promise must be refused with this code and, where given, exactly this data. */
export async function refused(
  promise: Promise<unknown>,
  code: ErrorCode,
  data?: Record<string, unknown>,
): Promise<BoughError> {
  const outcome = await promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in outcome) expect.fail(`expected ${code}, but it resolved with ${JSON.stringify(outcome.value)}`);
  const { error } = outcome;
  if (!BoughError.is(error)) throw error;
  expect(error.code, error.message).toBe(code);
  if (data) expect(error.data).toEqual(data);
  return error;
}

/** Splits what became of promises; anything but success or a refusal with this code fails the test. */
export async function settle<T>(promises: readonly Promise<T>[], code: ErrorCode) {
  const won: T[] = [];
  const lost: BoughError[] = [];
  for (const outcome of await Promise.allSettled(promises)) {
    if (outcome.status === "fulfilled") won.push(outcome.value);
    else if (BoughError.is(outcome.reason, code)) lost.push(outcome.reason);
    else throw outcome.reason;
  }
  return { won, lost };
}

/** Lets everything else have its turn; a loop that only awaits answers from memory would keep files and timers waiting. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export function range(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i);
}
