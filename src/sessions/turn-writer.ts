// Writing a turn: what the holder of a branch appends until the turn closes (Turns-1, Turns-4 of turns.ts).

import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import {
  messagesAdded,
  stateChanged,
  type ToolReturn,
  toolReturned,
  turnCommitted,
  turnEnded,
  turnStaged,
} from "../events/drafts.ts";
import type { Draft, Fact, NewMessage } from "../events/index.ts";
import { type AppendOptions, type BranchRef, type RunClaim, refuse } from "../log/index.ts";
import { isAboutQuestions } from "../projection/header.ts";
import type { BranchView } from "../projection/index.ts";
import { clearTurnCheckpoints } from "./checkpoints.ts";
import { defaultLeaseMs } from "./claims.ts";
import type { Context } from "./context.ts";
import type { Retention } from "./retention.ts";

/** How a turn closes. */
export interface TurnClose {
  readonly usage?: JsonObject;
  /** What of it went into summaries of the history. */
  readonly summaries?: JsonObject;
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
  add(...messages: NewMessage[]): Promise<readonly Fact[]>;
  /** Appends one tool result as it arrives. */
  toolReturned(result: ToolReturn): Promise<Fact>;
  /** Appends facts of any kind in one step. */
  append(...drafts: Draft[]): Promise<readonly Fact[]>;
  /** Closes the turn, with its last messages, in one append. */
  commit(close?: TurnClose & { messages?: readonly NewMessage[] }): Promise<readonly Fact[]>;
  /** Stages the turn: complete, but left for the caller to save (saveBranch). */
  stage(close?: TurnClose & { messages?: readonly NewMessage[] }): Promise<readonly Fact[]>;
  /** Closes the turn as interrupted or failed; messages may carry the partial text. */
  end(close: TurnClose & TurnFailure): Promise<readonly Fact[]>;
  /** Renews the lease. */
  renew(leaseMs?: number): Promise<void>;
  /** Releases the branch and leaves the turn open, to be resumed later. */
  release(): Promise<void>;
}

/** How a turn ended that did not complete. */
export interface TurnFailure {
  readonly status: "interrupted" | "failed";
  readonly error?: { message: string; code?: string };
  readonly messages?: readonly NewMessage[];
}

/** How a turn closes. `drafts` are messages that were shown to hooks before: they are written as they were shown. */
type Closing = TurnClose & { readonly messages?: readonly NewMessage[]; readonly drafts?: readonly Draft[] };

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

  async add(...messages: NewMessage[]) {
    return this.#write(messagesAdded(this.#context, this.turnId, messages), {});
  }

  async toolReturned(result: ToolReturn) {
    return (await this.append(toolReturned(this.#context, this.turnId, result)))[0]!;
  }

  append(...drafts: Draft[]) {
    return this.#write(drafts, {});
  }

  async commit(close: Closing = {}) {
    const facts = await this.#close(close, () => turnCommitted(this.#context, this.turnId, close));
    if (this.#retention) await clearTurnCheckpoints(this.#context, this.ref, this.turnId, this.#retention);
    return facts;
  }

  stage(close: Closing = {}) {
    const header = { stagedBy: this.#context.staging.name };
    return this.#close(close, () => turnStaged(this.#context, this.turnId, close), header);
  }

  end(close: Closing & Omit<TurnFailure, "messages">) {
    return this.#close(close, () => turnEnded(this.#context, this.turnId, close));
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
  async #close({ drafts = [], messages = [], state }: Closing, last: () => Draft, header?: JsonObject) {
    if (this.#inFlight.size > 0) await Promise.allSettled(this.#inFlight);
    const added = messagesAdded(this.#context, this.turnId, messages);
    const all = [...drafts, ...added, ...stateChanged(this.#context, this.turnId, state), last()];
    return await this.#write(all, { release: true, ...(header && { header }) });
  }

  async #write(drafts: readonly Draft[], options: Writing): Promise<readonly Fact[]> {
    this.#checkOpen();
    const writing = this.#append(drafts, options);
    this.#inFlight.add(writing);
    try {
      return await writing;
    } finally {
      this.#inFlight.delete(writing);
    }
  }

  async #append(drafts: readonly Draft[], options: Writing): Promise<readonly Fact[]> {
    const { epoch } = this.claim;
    const facts = drafts.some(isAboutQuestions)
      ? await this.#appendOnNewest(drafts, { ...options, epoch })
      : await this.#appendOn(this.#cachedView() ?? (await this.view()), drafts, { ...options, epoch });
    this.#seq = Math.max(this.#seq, facts.at(-1)!.seq);
    if (options.release) {
      this.#closed = true;
      this.#hold(0);
    }
    return facts;
  }

  /** Others answer meanwhile, and which questions are open stands in the header: such an append is held to what it saw. */
  async #appendOnNewest(drafts: readonly Draft[], options: AppendOptions): Promise<readonly Fact[]> {
    for (;;) {
      const { view } = await this.#context.views.loadForRun(this.ref);
      try {
        return await this.#appendOn(view, drafts, { ...options, expectedSeq: view.seq });
      } catch (error) {
        if (!BoughError.is(error, "sequence_conflict")) throw error;
      }
    }
  }

  async #appendOn(view: BranchView, drafts: readonly Draft[], options: AppendOptions): Promise<readonly Fact[]> {
    if (view.open?.id !== this.turnId) throw refuse.epochStale(this.ref, this.claim.epoch);
    const checking = checkNew(this.#context, this.ref, view, drafts);
    if (checking) await checking;
    return (await this.#context.views.append(this.ref, view, drafts, options)).facts;
  }

  #checkOpen() {
    if (this.#closed) throw refuse.epochStale(this.ref, this.claim.epoch);
  }
}

/** `header` has keys of the branch's row beside those that the facts change. */
type Writing = { readonly release?: true; readonly header?: JsonObject };

/**
 * Refuses a message whose id the branch has from its parent: the store tells only the branch's own facts apart. A promise only
 * when all messages have to be looked at and some are not held.
 */
export function checkNew(
  { views, ids }: Context,
  ref: BranchRef,
  view: BranchView,
  drafts: readonly Draft[],
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
