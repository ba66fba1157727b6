// Taking a branch: a run begins a turn, takes up the one that was left open, or goes on from a place in time.

import { BoughError } from "../base/errors.ts";
import { failpoint } from "../base/failpoint.ts";
import type { Fact, NewMessage, UnknownFact } from "../events/index.ts";
import { type BranchRef, refuse } from "../log/index.ts";
import type { StateBag, TurnContext } from "../middleware/index.ts";
import type { BranchView } from "../projection/index.ts";
import { stateOf } from "../projection/view.ts";
import { findHolder } from "../sessions/claims.ts";
import type { Context } from "../sessions/context.ts";
import { isOver } from "../sessions/interactions.ts";
import { type HeldTurn, holdTurn, type Opening, openingOf, resumption } from "../sessions/turns.ts";
import { stateBag } from "./active-turn.ts";
import type { RunPlan } from "./config.ts";
import type { Emitter } from "./emit.ts";
import { notBegun, Parked } from "./endings.ts";

export interface OpenedTurn {
  readonly held: HeldTurn;
  readonly resumed: boolean;
  readonly state: StateBag;
  /** The turn's facts from before this run. */
  readonly earlier: readonly (Fact | UnknownFact)[];
  /** Why it ends before it has its input: what a hook threw that was to see that first. */
  readonly refusal?: Refusal;
}

interface Refusal {
  readonly cause: unknown;
}

export interface OpenRequest {
  readonly context: Context;
  readonly plan: RunPlan;
  readonly ref: BranchRef;
  readonly runId: string;
  /** Nothing: resume. */
  readonly input: readonly NewMessage[] | undefined;
  readonly emitter: Emitter;
  readonly signal: AbortSignal;
}

export async function openTurn(request: OpenRequest): Promise<OpenedTurn> {
  const { context, plan, ref, runId, input } = request;
  const { id: agentId } = plan.stamp;
  const { leaseMs, metadata } = plan;
  const by = { runId, ...(agentId !== undefined && { agentId }) };
  const options = { ...by, leaseMs };
  let state: StateBag | undefined;
  let from: number | undefined;
  let refusal: Refusal | undefined;
  const begin = (view: BranchView, messages: readonly NewMessage[], bag: StateBag): Opening => {
    state = bag;
    const turn = { ...by, turnId: context.ids.next(), messages, ...(metadata && { metadata }) };
    return openingOf(context, view, turn);
  };
  const rewrite = plan.pipeline.beforeTurn && rewriter(request);
  const decide = (view: BranchView): Opening | Promise<Opening> => {
    const bag = stateBag(context, { sessionId: ref.sessionId, branch: stateOf(view), plan, emitter: request.emitter });
    from = undefined;
    if (input) {
      if (plan.ifWaiting === "refuse") refuseWaiting(context, ref, view);
      if (!rewrite) return begin(view, input, bag);
      return rewrite(view, bag, input).then((rewritten) => {
        refusal = rewritten.refusal;
        return begin(view, rewritten.messages, rewritten.state);
      });
    }
    const opening = resumption(context, view, by);
    if (!opening) return begin(view, [], isCut(view) ? bag : nothingToResume(ref));
    state = bag;
    from = view.open!.from;
    return opening;
  };
  const held = await holdTurn(context, ref, { ...options, onCached: input !== undefined }, decide).catch(
    async (error) => {
      if (!BoughError.is(error, "turn_open")) throw error;
      const claim = await findHolder(context, ref);
      if (claim) throw refuse.runActive(claim);
      // The cached view may not have the answer yet.
      return holdTurn(context, ref, options, decide);
    },
  );
  failpoint("run.turn.begun");
  const resumed = from !== undefined;
  const earlier = resumed ? await factsFrom(context, held, from!) : [];
  return { held, resumed, state: state!, earlier, ...(refusal && { refusal }) };
}

/** A turn that waits for an answer is ended by a new one only if that is wanted. */
function refuseWaiting({ clock }: Context, ref: BranchRef, { open, interactions, seq }: BranchView): void {
  const now = clock.now();
  const asked = interactions.filter((each) => open && each.turnId === open.id && !isOver(each, now));
  if (!open || asked.length === 0) return;
  const { runId } = open.runs.at(-1)!;
  const sentence = `Branch "${ref.branchId}" waits for an answer; answer it, or interrupt the turn.`;
  const interactionIds = asked.map(({ id }) => id);
  throw new BoughError("turn_open", sentence, { data: { ...ref, turnId: open.id, runId, interactionIds, seq } });
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
function rewriter({ plan, ref, signal }: OpenRequest) {
  let made: { ground: string; rewritten: Rewritten } | undefined;
  return async (view: BranchView, state: StateBag, input: readonly NewMessage[]): Promise<Rewritten> => {
    const ground = JSON.stringify([view.turns.length, view.staged.length, view.open?.id]);
    if (made?.ground === ground) return made.rewritten;
    const context: TurnContext = { ...ref, agent: plan.stamp, signal, state, input };
    const refusal = await plan.pipeline.beforeTurn?.(context).then(nothing, (cause: unknown) => ({ cause }));
    // Without its input, a turn that is left open could not be resumed.
    if (refusal?.cause instanceof Parked) throw notBegun();
    made = { ground, rewritten: refusal ? { messages: [], state, refusal } : { messages: context.input, state } };
    return made.rewritten;
  };
}

function nothing(): undefined {}

/** The branch ends inside a turn that was cut there by a fork or a revert: a run without input goes on from it. */
function isCut({ turns, messages }: BranchView): boolean {
  const last = turns.at(-1);
  const isInside = last?.status === "interrupted" && (last.reason === "forked" || last.reason === "reverted");
  return isInside && messages.at(-1)?.turnId === last.id;
}

function nothingToResume(ref: BranchRef): never {
  throw new BoughError("nothing_to_resume", `Branch "${ref.branchId}" has no turn to resume.`, { data: { ...ref } });
}

/** The turn's facts up to where this run took it up. */
async function factsFrom(context: Context, held: HeldTurn, from: number): Promise<readonly (Fact | UnknownFact)[]> {
  const facts: (Fact | UnknownFact)[] = [];
  const before = held.opening[0]!.seq;
  for (let after = from - 1; after < before - 1; ) {
    const page = await context.journal.read(held.ref, { after, before });
    if (page.facts.length === 0) break;
    for (const fact of page.facts) facts.push(fact);
    after = page.facts.at(-1)!.seq;
  }
  return facts;
}
