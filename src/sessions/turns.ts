// Turns: the only way messages get onto a branch. A turn is begun with its input, grows fact by fact, and closes once.
//
//   T1. Every fact of a turn is appended by the holder of the branch's run slot, under its epoch.
//   T2. Beginning claims the slot and closing gives it back in the same append: a turn without tools is two appends.
//   T3. A turn that was left open is closed before the next one begins, so that the log reads on legally.
//   T4. After it closed, or after another took the branch over, a writer writes nothing.

import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { checkOptions, optionKeys } from "../base/options.ts";
import type { Draft, Fact, NewMessage, ToolOutput, ToolResultPart, TurnRequest } from "../events/index.ts";
import { type AppendOptions, type BranchRef, type RunClaim, refuse } from "../log/index.ts";
import { isAboutQuestions, turnPatch } from "../projection/header.ts";
import type { BranchView } from "../projection/index.ts";
import { resolveBranch } from "./branches.ts";
import { clearTurnCheckpoints } from "./checkpoints.ts";
import { appendClaiming, defaultLeaseMs, whileFree } from "./claims.ts";
import type { Context, Scope } from "./context.ts";
import type { Retention } from "./retention.ts";
import type { Expected } from "./views.ts";

export interface TurnOptions {
  readonly runId?: string;
  readonly agentId?: string;
  readonly metadata?: JsonObject;
  /** How long the branch is held without a sign of life (default 30 s). */
  readonly leaseMs?: number;
  /** Clears the checkpoints taken inside the turn when it is committed, unless they are kept for time travel. */
  readonly retention?: Retention;
}

/** How a turn closed. */
export interface TurnClose {
  readonly usage?: JsonObject;
  readonly iterations?: number;
  readonly reason?: string;
  /** A merge patch of the branch-scoped state that takes effect with the close. */
  readonly state?: JsonObject;
}

const turn = { runId: true, agentId: true, metadata: true, leaseMs: true, retention: true } as const;
const beginTurnKeys = optionKeys<TurnOptions>(turn);
const close = { usage: true, iterations: true, reason: true, state: true } as const;
const appendTurnKeys = optionKeys<TurnClose & TurnOptions>({ ...turn, ...close });

/** A turn being written; whoever has it holds the branch. */
export interface TurnWriter {
  readonly ref: BranchRef;
  readonly turnId: string;
  readonly runId: string;
  readonly claim: RunClaim;
  /** Appends messages in one step; a tool message becomes one fact for each of its results. */
  add(...messages: NewMessage[]): Promise<readonly Fact[]>;
  /** Appends one tool's result as it arrives. */
  toolReturned(result: ToolReturn): Promise<Fact>;
  /** Appends facts of any kind in one step. */
  append(...drafts: Draft[]): Promise<readonly Fact[]>;
  /** Closes the turn, with its last messages, in one append. */
  commit(close?: TurnClose & { messages?: readonly NewMessage[] }): Promise<readonly Fact[]>;
  /** Completes the turn but leaves it for the caller to save (saveBranch). */
  stage(close?: TurnClose & { messages?: readonly NewMessage[] }): Promise<readonly Fact[]>;
  /** Closes the turn unfinished; partial text that was seen may be kept as messages. */
  end(close: TurnClose & TurnFailure): Promise<readonly Fact[]>;
  /** Keeps the branch held. */
  renew(leaseMs?: number): Promise<void>;
  /** Gives the branch back and leaves the turn open, to be resumed later. */
  release(): Promise<void>;
}

export interface ToolReturn {
  readonly callId: string;
  readonly toolName: string;
  readonly output: ToolOutput;
  readonly providerOptions?: JsonObject;
}

export interface TurnFailure {
  readonly status: "interrupted" | "failed";
  readonly error?: { message: string; code?: string };
  readonly messages?: readonly NewMessage[];
}

/** Begins a turn with its input; a turn that was left open is closed first. */
export async function beginTurn(
  context: Context,
  scope: Scope,
  input: string | readonly NewMessage[],
  options: TurnOptions = {},
): Promise<TurnWriter> {
  checkOptions("The options of beginTurn", options, beginTurnKeys);
  const ref = await resolveBranch(context, scope);
  const { runId = context.ids.next() } = options;
  const turn = { ...options, runId, turnId: context.ids.next(), messages: toMessages(input), onCached: true };
  return await holdTurn(context, ref, turn, (view) => openingOf(context, view, turn));
}

/** Takes up the turn that was left open: after a crash, or after release(). */
export async function resumeTurn(context: Context, scope: Scope, options: TurnOptions = {}): Promise<TurnWriter> {
  checkOptions("The options of resumeTurn", options, beginTurnKeys);
  const ref = await resolveBranch(context, scope);
  const by = { ...options, runId: options.runId ?? context.ids.next() };
  return holdTurn(context, ref, by, (view) => {
    const opening = resumption(context, view, by);
    if (opening) return opening;
    throw new BoughError("nothing_to_resume", `Branch "${ref.branchId}" has no turn to resume.`, { data: { ...ref } });
  });
}

/** A whole turn in one append: for imports, and for whoever has the answer already. */
export async function appendTurn(
  context: Context,
  scope: Scope,
  messages: readonly NewMessage[],
  close: TurnClose & TurnOptions = {},
): Promise<{ turnId: string; facts: readonly Fact[] }> {
  checkOptions("The options of appendTurn", close, appendTurnKeys);
  const ref = await resolveBranch(context, scope);
  const turnId = context.ids.next();
  const written = await whileFree(context, ref, (view) => {
    const { drafts } = openingOf(context, view, { ...close, turnId, messages });
    checkNew(context, ref, view, drafts);
    const committed = { ...completed(context, turnId, close), type: "turn.committed" } as const;
    return [...drafts, ...closeDrafts(context, turnId, close), committed];
  });
  return { turnId, facts: written?.facts ?? [] };
}

/** Commits the complete turns that wait on the branch and returns their ids; an empty list when none waits. */
export async function saveBranch(context: Context, scope: Scope): Promise<readonly string[]> {
  const ref = await resolveBranch(context, scope);
  const written = await whileFree(context, ref, (view) =>
    view.staged.map(({ id: turnId }) => ({ ...stamp(context), type: "turn.committed", turnId }) as const),
  );
  return (written?.facts ?? []).flatMap((fact) => (fact.type === "turn.committed" ? [fact.turnId] : []));
}

/**
 * Decides the first facts on the newest view and appends them together with the claim of the run slot; when something
 * else was written in between, decides again. `onCached` tries the cached view first, which the store need not be asked
 * about: for a decision that holds on any view.
 */
export async function holdTurn(
  context: Context,
  ref: BranchRef,
  { runId, leaseMs = defaultLeaseMs, retention, onCached }: TurnOptions & { runId: string; onCached?: boolean },
  decide: (view: BranchView) => Opening | Promise<Opening>,
): Promise<HeldTurn> {
  const { views } = context;
  for (let cached = onCached ? views.cachedToAppend(ref) : undefined; ; cached = undefined) {
    const { view, expected } = cached ?? (await loadToAppend(context, ref));
    const opening = decide(view);
    const { turnId, drafts } = opening instanceof Promise ? await opening : opening;
    checkNew(context, ref, view, drafts);
    const { expectedSeq, expectedHeader } = expected;
    const header = turnPatch(view, drafts);
    try {
      const step = { expectedSeq, expectedHeader, header, claim: { runId, leaseMs } };
      const { claim, facts } = await appendClaiming(context, ref, drafts, step);
      return new HeldTurn(context, ref, { turnId, claim: claim!, facts, retention });
    } catch (error) {
      // A cached view of a branch that is gone: loading it says what is gone.
      const isStale = BoughError.is(error, "sequence_conflict") || (cached && BoughError.is(error, "branch_not_found"));
      if (!isStale) throw error;
    }
  }
}

async function loadToAppend({ views }: Context, ref: BranchRef): Promise<{ view: BranchView; expected: Expected }> {
  const { view } = await views.load(ref);
  return { view, expected: { expectedSeq: view.seq } };
}

/** Who works on a turn, and how it was asked. */
interface TurnStamp {
  readonly runId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly by?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly request?: TurnRequest | undefined;
}

/** How a turn is taken up: the first facts, of the turn named. */
export interface Opening {
  readonly turnId: string;
  readonly drafts: readonly Draft[];
}

/** The drafts that begin a turn: those that close one left open, then its own. */
export function openingOf(
  context: Context,
  { open }: Pick<BranchView, "open">,
  turn: { turnId: string; messages: readonly NewMessage[] } & TurnStamp,
): Opening {
  const { turnId, messages } = turn;
  const drafts: Draft[] = open ? [interrupted(context, open.id)] : [];
  drafts.push({
    id: turnId,
    at: context.clock.now(),
    type: "turn.started",
    runId: turn.runId || undefined,
    agentId: turn.agentId || undefined,
    by: turn.by,
    metadata: turn.metadata || undefined,
    request: turn.request,
  });
  addMessages(drafts, context, turnId, messages);
  return { turnId, drafts };
}

/** The draft that takes up the turn left open; undefined when there is none. */
export function resumption(
  context: Context,
  { open }: Pick<BranchView, "open">,
  { runId, agentId, by, metadata, request }: TurnStamp,
): Opening | undefined {
  if (!open) return undefined;
  const how = { runId: runId || undefined, agentId: agentId || undefined, by, metadata, request };
  return { turnId: open.id, drafts: [{ ...stamp(context), type: "turn.resumed", turnId: open.id, ...how }] };
}

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
  /** The facts it was taken up with. */
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

  /** The branch as it is now; T1: nobody else adds to this turn, so the view at its last fact has all of it. */
  async view(): Promise<BranchView> {
    const cached = this.#cachedView();
    if (cached) return cached;
    const { view } = await this.#context.views.load(this.ref);
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
    const drafts: Draft[] = [];
    addMessages(drafts, this.#context, this.turnId, messages);
    return this.#write(drafts, {});
  }

  async toolReturned(returned: ToolReturn) {
    return (await this.append(resultDraft(this.#context, this.turnId, returned)))[0]!;
  }

  append(...drafts: Draft[]) {
    return this.#write(drafts, {});
  }

  async commit(close: TurnClose & { messages?: readonly NewMessage[] } = {}) {
    const { turnId } = this;
    const facts = await this.#close(close, { ...completed(this.#context, turnId, close), type: "turn.committed" });
    if (this.#retention) await clearTurnCheckpoints(this.#context, this.ref, turnId, this.#retention);
    return facts;
  }

  stage(close: TurnClose & { messages?: readonly NewMessage[] } = {}) {
    const last = { ...completed(this.#context, this.turnId, close), type: "turn.staged" } as const;
    return this.#close(close, last, { stagedBy: this.#context.staging.name });
  }

  end(close: TurnClose & TurnFailure) {
    const { status, error } = close;
    const ended = { ...completed(this.#context, this.turnId, close), type: "turn.ended", status };
    return this.#close(close, (error ? { ...ended, error } : ended) as Draft);
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
  async #close(close: TurnClose & { messages?: readonly NewMessage[] }, last: Draft, header?: JsonObject) {
    if (this.#inFlight.size > 0) await Promise.allSettled(this.#inFlight);
    const drafts: Draft[] = [];
    addMessages(drafts, this.#context, this.turnId, close.messages ?? []);
    drafts.push(...closeDrafts(this.#context, this.turnId, close), last);
    return await this.#write(drafts, { release: true, ...(header && { header }) });
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
      const { view } = await this.#context.views.load(this.ref);
      try {
        return await this.#appendOn(view, drafts, { ...options, expectedSeq: view.seq });
      } catch (error) {
        if (!BoughError.is(error, "sequence_conflict")) throw error;
      }
    }
  }

  async #appendOn(view: BranchView, drafts: readonly Draft[], options: AppendOptions): Promise<readonly Fact[]> {
    if (view.open?.id !== this.turnId) throw refuse.epochStale(this.ref, this.claim.epoch);
    checkNew(this.#context, this.ref, view, drafts);
    const header = options.header ? { ...turnPatch(view, drafts), ...options.header } : turnPatch(view, drafts);
    return (await this.#context.journal.append(this.ref, drafts, { ...options, header })).facts;
  }

  #checkOpen() {
    if (this.#closed) throw refuse.epochStale(this.ref, this.claim.epoch);
  }
}

/** `header` has keys of the branch's row beside those that the facts change. */
type Writing = { readonly release?: true; readonly header?: JsonObject };

/** Refuses a message whose id the branch has from its parent: the store tells only the branch's own facts apart. */
function checkNew({ views }: Context, ref: BranchRef, view: BranchView, drafts: readonly Draft[]): void {
  if (!view.fork) return;
  for (const { type, id } of drafts) {
    const at = type === "message.added" ? views.indexOf(ref, view).messages.get(id) : undefined;
    if (at !== undefined && at < view.fork.messages) throw refuse.eventConflict(ref, id);
  }
}

function toMessages(input: string | readonly NewMessage[]): readonly NewMessage[] {
  return typeof input === "string" ? [{ role: "user", content: input }] : input;
}

function addMessages(drafts: Draft[], context: Context, turnId: string, messages: readonly NewMessage[]): void {
  for (const message of messages) {
    if (message.role === "tool") drafts.push(...resultDrafts(context, turnId, message));
    else drafts.push(messageDraft(context, turnId, message));
  }
}

function messageDraft(context: Context, turnId: string, message: NewMessage): Draft {
  const { id = context.ids.next(), role, content, partial, providerOptions } = message;
  const parts = role === "system" || typeof content !== "string" ? content : [{ type: "text", text: content } as const];
  const draft = { id, at: context.clock.now(), type: "message.added", turnId, role, content: parts };
  if (!partial && !providerOptions) return draft as Draft;
  return { ...draft, ...(partial && { partial }), ...(providerOptions && { providerOptions }) } as Draft;
}

function resultDrafts(context: Context, turnId: string, { content }: NewMessage): Draft[] {
  const results =
    typeof content === "string" ? [] : content.filter((part): part is ToolResultPart => part.type === "tool-result");
  // Anything else has no fact of its own, and would be lost.
  if (results.length === 0 || results.length < content.length) {
    throw new BoughError("invalid_argument", "A tool message holds tool-result parts and nothing else.");
  }
  return results.map(({ toolCallId: callId, ...result }) => resultDraft(context, turnId, { callId, ...result }));
}

function resultDraft(context: Context, turnId: string, returned: ToolReturn): Draft {
  const { callId, toolName, output, providerOptions } = returned;
  const optional = providerOptions && { providerOptions };
  return { ...stamp(context), type: "tool.returned", turnId, callId, toolName, output, ...optional } as Draft;
}

function closeDrafts(context: Context, turnId: string, { state }: TurnClose): Draft[] {
  if (!state || Object.keys(state).length === 0) return [];
  return [{ ...stamp(context), type: "state.changed", turnId, set: state }];
}

function interrupted(context: Context, turnId: string): Draft {
  return { ...stamp(context), type: "turn.ended", turnId, status: "interrupted", reason: "superseded" };
}

/** What the facts that close a turn have in common. */
function completed({ ids, clock }: Context, turnId: string, { usage, iterations, reason }: TurnClose) {
  return { id: ids.next(), at: clock.now(), turnId, usage, iterations, reason };
}

function stamp({ ids, clock }: Context): { id: string; at: number } {
  return { id: ids.next(), at: clock.now() };
}
