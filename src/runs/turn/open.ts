// Opening: a run begins a turn, resumes the open one, or continues from an earlier position.

import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import { type JsonObject, mergePatch } from "../../base/json.ts";
import type { Fact, NewMessage, UnknownFact } from "../../events/index.ts";
import { type BranchRef, refuse } from "../../log/index.ts";
import type { StateBag, TurnContext } from "../../middleware/index.ts";
import type { BranchView, OpenTurn, TurnRecord } from "../../projection/index.ts";
import { messagesOfInput } from "../../projection/queue.ts";
import { askedOf, resumedWith } from "../../projection/records.ts";
import { stateOf } from "../../projection/view.ts";
import { findHolder } from "../../sessions/claims.ts";
import type { Context } from "../../sessions/context.ts";
import { type InputMessage, storeMessages } from "../../sessions/files.ts";
import { isOver } from "../../sessions/interactions.ts";
import { draftOpening, draftResumption, draftTaking, holdTurn, type Opening } from "../../sessions/turn-opening.ts";
import type { HeldTurn } from "../../sessions/turn-writer.ts";
import { askedTogether, inputsToTake } from "../../sessions/turns.ts";
import type { AskedBy } from "../../tools/index.ts";
import { forgetAudio, transcribeAudio } from "../audio/transcribe.ts";
import type { ChildOpening } from "../children/port.ts";
import type { RunPlan } from "../config.ts";
import type { Emitter } from "../emit.ts";
import { notBegun, Parked } from "../endings.ts";
import { fetchingOf } from "../files/fetching.ts";
import { pathOf, stickyPath } from "../handoffs.ts";
import { endChildren } from "../interrupt.ts";
import { stateBag } from "./active-turn.ts";
import { factsOf } from "./facts-of.ts";

export interface OpenedTurn extends Omit<Decision, "opening"> {
  readonly held: HeldTurn;
  readonly resumed: boolean;
  /** The turn's facts from before this run. */
  readonly earlier: readonly (Fact | UnknownFact)[];
}

/** What was decided on a view of the branch; it holds once its opening is in the log. */
interface Decision {
  readonly opening: Opening;
  readonly plan: RunPlan;
  readonly asked: AskedBy;
  readonly state: StateBag;
  /** Where the resumed turn begins; undefined for a new one. */
  readonly from?: number;
  /** Why it ends before it has its input: what a hook threw that was to see that first. */
  readonly refusal?: Refusal;
  /** Content that the turn doesn't need any more. */
  readonly spent?: readonly string[];
  /** The turn before whose steps count as this one's. */
  readonly carries?: string | undefined;
}

type TurnContinues = NonNullable<OpenTurn["continues"]>;

interface Refusal {
  readonly cause: unknown;
}

/** How a turn that is to go on was asked. */
export type KeptTurn = Pick<OpenTurn, "request" | "by" | "metadata">;

export interface OpenRequest {
  readonly context: Context;
  readonly ref: BranchRef;
  readonly runId: string;
  readonly agentId: string | undefined;
  readonly leaseMs: number;
  /** Nothing: resume. */
  readonly input: readonly InputMessage[] | undefined;
  /**
   * `"queue"`: begins a turn with what is next in the queue. `"free"`: begins one with the input only if no turn is open and no
   * input waits; `turn_open` otherwise.
   */
  readonly takes?: "queue" | "free" | undefined;
  readonly emitter: Emitter;
  readonly signal: AbortSignal;
  /** How the turn begins, if the run that this one works for says so. */
  readonly opening?: ChildOpening | undefined;
  /** What every turn that is begun has in its metadata. */
  readonly stamp?: JsonObject | undefined;
  /** Whether code works on the turn: then one that goes on from a cut one has what that recorded. */
  readonly isCode?: boolean;
  /** The run's plan: for a new turn, or for one that goes on as it was asked. */
  readonly planFor: (kept?: KeptTurn, path?: readonly string[]) => Promise<RunPlan>;
}

export async function beginOrResume(request: OpenRequest): Promise<OpenedTurn> {
  const { context, ref, runId, leaseMs, input, takes } = request;
  const decide = await decider(request);
  const hold = { runId, leaseMs };
  const onCached = input !== undefined;
  const opened = await holdTurn(context, ref, { ...hold, onCached }, decide).catch(async (error) => {
    if (!BoughError.is(error, "turn_open") || takes) throw error;
    const claim = await findHolder(context, ref);
    if (claim) throw refuse.runActive(claim);
    // The cached view may not have the answer yet.
    return holdTurn(context, ref, hold, decide);
  });
  failpoint("run.turn.begun");
  if (takes === "queue") failpoint("run.input.taken");
  const { held, decision } = opened;
  const { from } = decision;
  if (decision.spent) await forgetAudio(context, ref, decision.spent);
  const [first] = held.opening;
  if (first?.type === "turn.ended") await endChildren(context, ref, first.turnId, first.reason);
  const own = from === undefined ? [] : await factsOf(context, ref, { from, before: held.opening[0]!.seq });
  const carried = request.isCode ? await carriedFacts(context, ref, decision.carries) : [];
  return { ...decision, held, resumed: from !== undefined, earlier: [...carried, ...own] };
}

type Decide = (view: BranchView) => Decision | Promise<Decision>;

async function decider(request: OpenRequest): Promise<Decide> {
  const { input, takes } = request;
  if (takes === "queue") return taker(request);
  return input ? await beginWith(request, input) : (view) => goOn(request, view);
}

/** How a turn with this input is begun on a view, however often that is decided. */
async function beginWith(request: OpenRequest, given: readonly InputMessage[]): Promise<Decide> {
  const { context, ref, planFor, opening } = request;
  const plan = await planFor();
  const { emitter, signal } = request;
  const { files, audio, redact } = plan;
  const { fetching } = fetchingOf({ files, redact, clock: context.clock, signal, emitter });
  const door = { context, ref, isChecked: true, origin: "input", ...(fetching && { fetching }) };
  const stored = await storeMessages(door, given);
  const listening = { context, ref, emitter, signal, audio, redact };
  const { messages: input, spent } = await transcribeAudio(listening, stored);
  const rewrite = rewriter(request);
  const beginOn = (view: BranchView, plan: RunPlan) => {
    const state = bagOf(request, view, plan);
    if (!plan.pipeline.beforeTurn) return { ...begin(request, view, { plan, state, messages: input }), spent };
    const asked = { plan, asked: askedBy(plan), state, input };
    return rewrite(view, asked).then((rewritten) => ({ ...begin(request, view, { plan, ...rewritten }), spent }));
  };
  return (view) => {
    opening?.check(view);
    if (request.takes === "free") refuseBusy(ref, view);
    if (request.isCode) refuseOpen(ref, view);
    if (plan.ifWaiting === "refuse") refuseWaiting(context, ref, view);
    const path = stickyPath(view);
    return path.length === 0 ? beginOn(view, plan) : planFor(undefined, path).then((sticky) => beginOn(view, sticky));
  };
}

/** Begins a turn with what is next in the queue, as that was asked. */
function taker(request: OpenRequest): Decide {
  const { context, ref, runId, agentId, planFor } = request;
  const rewrite = rewriter(request);
  return async (view) => {
    const inputs = inputsToTake(ref, view);
    const { agentId: _agentId, ...kept } = askedTogether(inputs);
    const plan = await planFor(kept, stickyPath(view));
    const { by, metadata: ofInputs } = kept;
    const metadata = { ...request.stamp, ...ofInputs };
    const asked = { ...askedBy(plan), ...(by !== undefined && { by }), metadata };
    const state = bagOf(request, view, plan);
    const input = inputs.flatMap(messagesOfInput);
    const given = { plan, asked, state, input, queued: inputs.map(({ id, editedAt = 0 }) => `${id} ${editedAt}`) };
    const made: Rewritten = plan.pipeline.beforeTurn ? await rewrite(view, given) : { state, messages: input };
    const { wholeRequest } = plan;
    const stamp = Object.keys(metadata).length > 0 && { metadata };
    const begun = { runId, agentId, request: wholeRequest, turnId: context.ids.next(), input: made.messages };
    const turn = { ...kept, ...begun, ...stamp };
    const opening = draftTaking(context, inputs, turn);
    return { opening, plan, asked, state: made.state, ...(made.refusal && { refusal: made.refusal }) };
  };
}

/** An execution that sleeps or waits is no turn that was left behind: another input does not end it. */
function refuseOpen(ref: BranchRef, { open, seq }: BranchView): void {
  if (!open) return;
  const sentence = `Branch "${ref.branchId}" has an open turn; a run without an input goes on with it, an interruption ends it.`;
  throw new BoughError("turn_open", sentence, { data: { ...ref, seq, turnId: open.id } });
}

/** An input that is to wait its turn begins none before those that wait, or while a turn is open. */
function refuseBusy(ref: BranchRef, { open, queue, seq }: BranchView): void {
  if (!open && queue.length === 0) return;
  const sentence = open
    ? `Branch "${ref.branchId}" has an open turn.`
    : `Branch "${ref.branchId}" has inputs that wait before this one.`;
  throw new BoughError("turn_open", sentence, { data: { ...ref, seq, ...(open && { turnId: open.id }) } });
}

/** Resumes the open turn, or the one that a fork or a revert cut. */
async function goOn(request: OpenRequest, view: BranchView): Promise<Decision> {
  const { context, ref, runId, agentId, planFor } = request;
  const { open } = view;
  if (!open) {
    const cut = cutTurn(await withNewest(context, ref, view));
    if (!cut) throw nothingToResume(ref);
    const kept = await readRequest(context, ref, cut);
    const plan = await planFor(kept, stickyPath(view));
    const { by = kept.by } = plan;
    const metadata = mergePatch(kept.metadata ?? {}, plan.metadata ?? {});
    const asked = { ...plan, ...(by !== undefined && { by }), ...(Object.keys(metadata).length > 0 && { metadata }) };
    const goesOn = { plan: asked, state: bagOf(request, view, asked), messages: [] };
    if (!request.isCode) return begin(request, view, goesOn);
    const continues = { turnId: cut.id, steps: true };
    return { ...begin(request, view, { ...goesOn, continues }), carries: cut.id };
  }
  const plan = await planFor(open, pathOf(view));
  const { by, metadata, request: anew } = plan;
  const opening = draftResumption(context, view, { runId, agentId, by, metadata, request: anew })!;
  const first = open.by ?? by;
  const asked = {
    ...askedBy(plan),
    ...(first !== undefined && { by: first }),
    metadata: mergePatch(open.metadata ?? {}, metadata ?? {}),
  };
  const carries = open.continues?.steps ? open.continues.turnId : undefined;
  return { opening, plan, asked, state: bagOf(request, view, plan), from: open.from, carries };
}

/** The facts of a turn that another one goes on with, and of those that it went on with itself, oldest first. */
async function carriedFacts(context: Context, ref: BranchRef, turnId: string | undefined) {
  const facts: (Fact | UnknownFact)[] = [];
  for (let id = turnId; id !== undefined; ) {
    const { view } = await context.views.load(ref);
    const turn = view.turns.find((each) => each.id === id);
    if (!turn) break;
    const own = await factsOf(context, ref, { from: turn.from, before: turn.to + 1 });
    facts.unshift(...own);
    const started = own.find((fact) => fact.type === "turn.started");
    id = started?.type === "turn.started" && started.continues?.steps ? started.continues.turnId : undefined;
  }
  return facts;
}

/** Begins a turn. */
function begin(
  { context, runId, agentId, opening: given, stamp }: OpenRequest,
  view: BranchView,
  { plan, state, messages, refusal, continues }: Rewritten & { plan: RunPlan; continues?: TurnContinues },
): Decision {
  const { by, wholeRequest: request } = plan;
  const metadata = stamp ? { ...stamp, ...plan.metadata } : plan.metadata;
  const turnId = given?.turnId ?? context.ids.next();
  const turn = { runId, agentId, by, metadata, request, turnId, input: messages, continues };
  const opening = draftOpening(context, view, turn);
  return { opening, plan, asked: askedBy(plan), state, ...(refusal && { refusal }) };
}

function askedBy({ runContext, wholeRequest, by, metadata = {} }: RunPlan): AskedBy {
  const { identity = {} } = wholeRequest ?? {};
  return { context: runContext, identity, ...(by !== undefined && { by }), metadata };
}

function bagOf({ context, ref, emitter }: OpenRequest, view: BranchView, plan: RunPlan): StateBag {
  return stateBag(context, { sessionId: ref.sessionId, branch: stateOf(view), plan, emitter });
}

/** A turn that waits for an answer is ended by a new one only if that is wanted. */
function refuseWaiting({ clock }: Context, ref: BranchRef, { open, interactions, seq }: BranchView): void {
  const now = clock.now();
  const asked = interactions.filter((each) => open && each.turnId === open.id && !isOver(each, now));
  if (!open || asked.length === 0) return;
  const { runId } = open.runs.at(-1)!;
  const sentence = `Branch "${ref.branchId}" is waiting for an answer; answer the question, or interrupt the turn.`;
  const interactionIds = asked.map(({ id }) => id);
  throw new BoughError("turn_open", sentence, { data: { ...ref, turnId: open.id, runId, interactionIds, seq } });
}

interface ToRewrite {
  readonly plan: RunPlan;
  readonly asked: AskedBy;
  readonly state: StateBag;
  readonly input: readonly NewMessage[];
  /** The queued inputs that it is of, as they are now. */
  readonly queued?: readonly string[];
}

interface Rewritten {
  readonly messages: readonly NewMessage[];
  readonly state: StateBag;
  readonly refusal?: Refusal;
}

/**
 * The input after the hooks that may rewrite it. When one throws, none of it is written: it may be what they were to take out.
 * They are called once, also when something else is written on the branch
 * meanwhile (by one of them, perhaps), and again only when another turn came in between: then they decided on old ground.
 */
function rewriter({ context: store, ref, signal }: OpenRequest) {
  let made: { ground: string; rewritten: Rewritten } | undefined;
  return async (view: BranchView, { plan, asked, state, input, queued }: ToRewrite): Promise<Rewritten> => {
    const ground = JSON.stringify([view.skippedTurns + view.turns.length, view.staged.length, view.open?.id, queued]);
    if (made?.ground === ground) return made.rewritten;
    const context: TurnContext = { ...ref, ...asked, agent: plan.stamp, signal, state, input };
    const refusal = await plan.pipeline.beforeTurn?.(context).then(nothing, (cause: unknown) => ({ cause }));
    // Without its input, a turn that is left open could not be resumed.
    if (refusal?.cause instanceof Parked) throw notBegun();
    // A hook may have put files into it.
    const messages = refusal
      ? []
      : await storeMessages({ context: store, ref, isChecked: false, origin: "input" }, context.input);
    made = { ground, rewritten: { messages, state, ...(refusal && { refusal }) } };
    return made.rewritten;
  };
}

function nothing(): undefined {}

/** The view with the newest message and turn, which one that holds what a model sees may not have. */
async function withNewest({ views }: Context, ref: BranchRef, view: BranchView): Promise<BranchView> {
  const isHeld = view.skipped === 0 || (view.messages.length > 0 && view.turns.length > 0);
  return isHeld ? view : (await views.load(ref)).view;
}

/** The turn that a fork or a revert cut and the branch ends with: a run without input goes on from it. */
function cutTurn({ turns, messages }: BranchView): TurnRecord | undefined {
  const last = turns.at(-1);
  const isInside = last?.status === "interrupted" && (last.reason === "forked" || last.reason === "reverted");
  return isInside && messages.at(-1)?.turnId === last.id ? last : undefined;
}

function nothingToResume(ref: BranchRef): BoughError {
  return new BoughError("nothing_to_resume", `Branch "${ref.branchId}" has no turn to resume.`, { data: { ...ref } });
}

/** How a closed turn was asked, by its facts: views keep that of open ones only. */
async function readRequest(context: Context, ref: BranchRef, { from, to }: TurnRecord): Promise<KeptTurn> {
  let kept: KeptTurn = {};
  for (const fact of await factsOf(context, ref, { from, before: to + 1 })) {
    if (fact.type === "turn.started") kept = askedOf(fact);
    if (fact.type === "turn.resumed") kept = resumedWith(kept, fact);
  }
  return kept;
}
