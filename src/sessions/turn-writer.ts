// Writing a turn: what the holder of a branch appends until the turn closes (Turns-1, Turns-4 of turns.ts).

import type { JsonObject } from "../base/json.ts";
import type { AnyDraft } from "../events/codec.ts";
import {
  messagesAdded,
  stateChanged,
  type ToolReturn,
  toolReturned,
  turnCommitted,
  turnEnded,
  turnParked,
  turnStaged,
} from "../events/drafts.ts";
import type { Draft, Fact, NewMessage, QueuedInput, ToolOutput } from "../events/index.ts";
import { type AppendOptions, type BranchRef, type RunClaim, refuse } from "../log/index.ts";
import { needsNewest } from "../projection/header.ts";
import type { BranchView } from "../projection/index.ts";
import { steeringInputs } from "../projection/queue.ts";
import { clearTurnCheckpoints } from "./checkpoints.ts";
import { asleepOwner, defaultLeaseMs } from "./claims.ts";
import type { Context } from "./context.ts";
import { type FileDoor, hasFiles, type InputMessage, storeMessages, storeOutput } from "./files.ts";
import type { Retention } from "./retention.ts";
import { isOutdated, takenMessages } from "./taken-messages.ts";

/** How a turn closes. */
export interface TurnClose {
  readonly usage?: JsonObject;
  /** What of it went into summaries of the history. */
  readonly summaries?: JsonObject;
  /** What the turn's children used; not part of `usage`. */
  readonly children?: JsonObject;
  /** What the last model call was sent and answered, in tokens. */
  readonly context?: { inputTokens: number; outputTokens: number; model?: string | undefined };
  readonly iterations?: number;
  readonly reason?: string;
  /** A merge patch for the branch-scoped state, applied with the close. */
  readonly state?: JsonObject;
}

/** Writes an open turn. Its owner holds the branch. */
export interface TurnWriter {
  readonly ref: BranchRef;
  readonly turnId: string;
  readonly runId: string;
  readonly claim: RunClaim;
  /** Appends messages in one step; a tool message becomes one fact for each of its results. */
  add(...messages: InputMessage[]): Promise<readonly Fact[]>;
  /** Appends one tool result as it arrives. */
  toolReturned(result: ToolReturn): Promise<Fact>;
  /** Appends facts of any kind in one step. */
  append(...drafts: AnyDraft[]): Promise<readonly Fact[]>;
  /** Adds the queued inputs that steer this turn, each once; an empty list when none waits. */
  steer(): Promise<readonly Fact[]>;
  /** Closes the turn, with its last messages, in one append. */
  commit(close?: TurnClose & { messages?: readonly InputMessage[] }): Promise<readonly Fact[]>;
  /** Stages the turn: complete, but left for the caller to save (saveBranch). */
  stage(close?: TurnClose & { messages?: readonly InputMessage[] }): Promise<readonly Fact[]>;
  /** Closes the turn as interrupted or failed; messages may carry the partial text. */
  end(close: TurnClose & TurnFailure): Promise<readonly Fact[]>;
  /** Renews the lease. */
  renew(leaseMs?: number): Promise<void>;
  /** Releases the branch and leaves the turn open, to be resumed later. */
  release(): Promise<void>;
}

/** How a turn falls asleep: until a time, or until something is written on its branch. */
interface Rest {
  readonly until?: number | undefined;
  readonly reason: string;
}

/** How a turn ended that did not complete. */
export interface TurnFailure {
  readonly status: "interrupted" | "failed";
  readonly error?: { message: string; code?: string };
  readonly messages?: readonly InputMessage[];
}

/** How a turn closes. `drafts` are messages that were shown to hooks before: they are written as they were shown. */
type Closing = TurnClose & {
  readonly messages?: readonly InputMessage[];
  readonly drafts?: readonly AnyDraft[];
  /** What begins the turn that follows, in the same append. Whoever resumes that has the branch. */
  readonly next?: readonly AnyDraft[] | undefined;
};

interface Hold extends Pick<TurnWriter, "turnId" | "claim"> {
  readonly facts: readonly Fact[];
  readonly retention: Retention | undefined;
}

export class HeldTurn implements TurnWriter {
  readonly ref: BranchRef;
  readonly turnId: string;
  readonly claim: RunClaim;
  readonly #context: Context;
  readonly #inFlight = new Set<Promise<unknown>>();
  /** Where this turn's facts ended when it last wrote. */
  #seq: number;
  readonly #retention: Retention | undefined;
  #closed = false;
  /** The facts that began or resumed it. */
  readonly opening: readonly Fact[];

  constructor(context: Context, ref: BranchRef, held: Hold) {
    const { turnId, claim, facts, retention } = held;
    this.#context = context;
    this.ref = ref;
    this.turnId = turnId;
    this.claim = claim;
    this.#seq = facts.at(-1)!.seq;
    this.opening = facts;
    this.#retention = retention;
    this.#hold(claim.expiresAt);
  }

  /** The view of a branch that is worked on stays in memory; a writer that was dropped holds it no longer than its lease. */
  #hold(until: number): void {
    this.#context.views.hold(this.ref, until);
  }

  /** The branch as it is now; Turns-1: no other writer adds to this turn, so the view at its last fact has all of it. */
  async view(): Promise<BranchView> {
    const cached = this.#cachedView();
    if (cached) return cached;
    const { view } = await this.#context.views.loadForRun(this.ref);
    if (!this.#closed) this.#hold(this.#context.clock.now() + defaultLeaseMs);
    return view;
  }

  #cachedView(): BranchView | undefined {
    return this.#context.views.cachedAt(this.ref, this.#seq);
  }

  get runId(): string {
    return this.claim.runId;
  }

  async add(...messages: InputMessage[]) {
    const added = (stored: readonly NewMessage[]) => messagesAdded(this.#context, this.turnId, stored);
    if (!messages.some(hasFiles)) return this.append(...added(messages as readonly NewMessage[]));
    return this.#writeOnce(async () => added(await storeMessages(this.#door, messages)));
  }

  async toolReturned(result: ToolReturn) {
    const returned = (output: ToolOutput) => toolReturned(this.#context, this.turnId, { ...result, output });
    const facts =
      result.output?.type === "content"
        ? await this.#writeOnce(async () => [returned((await storeOutput(this.#door, result.output)) as ToolOutput)])
        : await this.append(returned(result.output));
    return facts[0]!;
  }

  /** Files are stored as part of the write: a close waits for them, and another attempt finds them stored. */
  #writeOnce(make: () => Promise<readonly AnyDraft[]>): Promise<readonly Fact[]> {
    let made: Promise<readonly AnyDraft[]> | undefined;
    const decide = () => {
      made ??= make();
      return made;
    };
    return this.#write(decide, {});
  }

  get #door(): FileDoor {
    return { context: this.#context, ref: this.ref, isChecked: true };
  }

  append(...drafts: AnyDraft[]) {
    return this.#write(() => drafts, { isChecked: drafts.some(needsNewest) });
  }

  /**
   * `before` goes before the messages, in the same append. `rewrite` may change what they say; when it returns nothing, they stay
   * as they are.
   */
  steer(
    before: readonly AnyDraft[] = [],
    rewrite: (inputs: readonly QueuedInput[]) => Promise<readonly NewMessage[] | undefined> = async () => undefined,
  ): Promise<readonly Fact[]> {
    const decide = async (view: BranchView): Promise<readonly AnyDraft[]> => {
      const inputs = steeringInputs(view);
      if (inputs.length === 0) return [];
      const messages = await rewrite(inputs);
      return [...before, ...takenMessages(this.#context, this.turnId, inputs, messages, { isSteering: true })];
    };
    return this.#write(decide, { isChecked: true, isOnNewest: true });
  }

  /** With `unless`, the turn is closed on a view of which that is not true; otherwise nothing is written, and nothing returned. */
  async commit(close: Closing = {}, unless?: Unless) {
    const facts = await this.#close(close, () => turnCommitted(this.#context, this.turnId, close), { unless });
    if (this.#retention && facts.length > 0) {
      await clearTurnCheckpoints(this.#context, this.ref, this.turnId, this.#retention);
    }
    return facts;
  }

  /** `unless` as in `commit`. */
  stage(close: Closing = {}, unless?: Unless) {
    const header = { stagedBy: this.#context.staging.name };
    return this.#close(close, () => turnStaged(this.#context, this.turnId, close), { unless, header });
  }

  end(close: Closing & Omit<TurnFailure, "messages">) {
    return this.#close(close, () => turnEnded(this.#context, this.turnId, close), {});
  }

  /**
   * Leaves the turn asleep and gives the branch back in the same append: what anybody writes afterwards finds it free. Until the
   * time it names, the claim is nobody's, and its end is what wakes it.
   */
  async sleep({ until, reason }: Rest, drafts: readonly Draft[] = []): Promise<readonly Fact[]> {
    this.#checkOpen();
    if (this.#inFlight.size > 0) await Promise.allSettled(this.#inFlight);
    const { runId, epoch } = this.claim;
    const view = this.#cachedView() ?? (await this.view());
    if (view.open?.id !== this.turnId) throw refuse.epochStale(this.ref, epoch);
    const rest = { runId, reason, asleep: true as const, ...(until !== undefined && { until }) };
    const all = [...drafts, turnParked(this.#context, this.turnId, rest)];
    const leaseMs = Math.max(0, (until ?? 0) - this.#context.clock.now());
    const claim = { runId, owner: asleepOwner, leaseMs, over: epoch };
    const how = until === undefined ? { epoch, release: true } : { claim };
    const { facts } = await this.#context.views.append(this.ref, view, all, how);
    this.#wrote(facts, { release: true });
    return facts;
  }

  async renew(leaseMs = defaultLeaseMs) {
    this.#checkOpen();
    const { expiresAt } = await this.#context.store.renewRun(this.ref, { epoch: this.claim.epoch, leaseMs });
    this.#hold(expiresAt);
  }

  async release() {
    this.#checkOpen();
    this.#closed = true;
    this.#hold(0);
    await this.#context.store.releaseRun(this.ref, { epoch: this.claim.epoch });
  }

  /** Results that are still on their way are part of what is closed. */
  async #close(
    { drafts = [], messages = [], state, next = [] }: Closing,
    last: () => Draft,
    { unless, header }: { unless?: Unless | undefined; header?: JsonObject },
  ) {
    if (this.#inFlight.size > 0) await Promise.allSettled(this.#inFlight);
    const stored = messages.some(hasFiles) ? await storeMessages(this.#door, messages) : (messages as NewMessage[]);
    const added = messagesAdded(this.#context, this.turnId, stored);
    const all = [...drafts, ...added, ...stateChanged(this.#context, this.turnId, state), last(), ...next];
    const decide = (view: BranchView) => (unless?.(view) ? [] : all);
    return await this.#write(decide, { release: true, ...(header && { header }), isChecked: unless !== undefined });
  }

  async #write(decide: Decide, writing: Writing): Promise<readonly Fact[]> {
    this.#checkOpen();
    const appending = this.#append(decide, writing);
    this.#inFlight.add(appending);
    try {
      return await appending;
    } finally {
      this.#inFlight.delete(appending);
    }
  }

  async #append(decide: Decide, { isChecked, isOnNewest, ...options }: Writing): Promise<readonly Fact[]> {
    const { views } = this.#context;
    const { epoch } = this.claim;
    let view = isOnNewest ? await this.#newest() : (this.#cachedView() ?? (await this.view()));
    for (;;) {
      // The view may grow while it is decided.
      const { seq } = view;
      if (view.open?.id !== this.turnId) throw refuse.epochStale(this.ref, epoch);
      const decided = decide(view);
      const drafts = decided instanceof Promise ? await decided : decided;
      if (drafts.length === 0) return [];
      const checking = checkNew(this.#context, this.ref, view, drafts);
      if (checking) await checking;
      try {
        const held = isChecked ? { ...options, expectedSeq: seq } : options;
        const { facts } = await views.append(this.ref, view, drafts, { ...held, epoch });
        this.#wrote(facts, options);
        return facts;
      } catch (error) {
        if (!isChecked || !(await isOutdated(this.#context, this.ref, { error, drafts, seq }))) throw error;
      }
      view = await this.#newest();
    }
  }

  async #newest(): Promise<BranchView> {
    return (await this.#context.views.loadForRun(this.ref)).view;
  }

  #wrote(facts: readonly Fact[], { release }: Pick<Writing, "release">): void {
    this.#seq = Math.max(this.#seq, facts.at(-1)!.seq);
    if (!release) return;
    this.#closed = true;
    this.#hold(0);
  }

  #checkOpen() {
    if (this.#closed) throw refuse.epochStale(this.ref, this.claim.epoch);
  }
}

/** Decides what is written on a view; nothing is written for an empty list. */
type Decide = (view: BranchView) => readonly AnyDraft[] | Promise<readonly AnyDraft[]>;

/** What keeps a turn from closing. */
type Unless = (view: BranchView) => boolean;

interface Writing extends Pick<AppendOptions, "header"> {
  readonly release?: true;
  /** It is held to the view that it was decided on: others answer and queue meanwhile. */
  readonly isChecked?: boolean;
  /** What others wrote is looked at first. */
  readonly isOnNewest?: boolean;
}

/**
 * Refuses a message whose id the branch has from its parent: the store tells only the branch's own facts apart. A promise only
 * when all messages have to be looked at and some are not held.
 */
export function checkNew(
  { views, ids }: Context,
  ref: BranchRef,
  view: BranchView,
  drafts: readonly AnyDraft[],
): Promise<void> | undefined {
  // All of them are taken, wherever they go: from then on another branch may have them.
  const given = drafts.filter(({ type, id }) => type === "message.added" && !ids.take(id));
  const { fork } = view;
  if (!fork || given.length === 0) return undefined;
  const refuseKnown = (whole: BranchView) => {
    const { ledger } = views.indexOf(ref, whole);
    for (const { id } of given)
      if ((ledger.get(id) ?? fork.messages) < fork.messages) throw refuse.eventConflict(ref, id);
  };
  if (view.skipped > 0) return views.load(ref).then((loaded) => refuseKnown(loaded.view));
  refuseKnown(view);
  return undefined;
}
