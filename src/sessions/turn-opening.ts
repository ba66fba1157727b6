// Opening a turn: the facts that begin or resume it go into the append that claims the branch (Turns-2, Turns-3 of turns.ts).

import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { messagesAdded, turnEnded, turnResumed, turnStarted } from "../events/drafts.ts";
import type { Draft, NewMessage, QueuedInput, TurnRequest } from "../events/index.ts";
import type { BranchRef } from "../log/index.ts";
import type { BranchView } from "../projection/index.ts";
import { messagesOfInput } from "../projection/queue.ts";
import { appendClaiming, defaultLeaseMs } from "./claims.ts";
import type { Context } from "./context.ts";
import type { Retention } from "./retention.ts";
import { needRoom } from "./room.ts";
import { isOutdated, takenMessages } from "./taken-messages.ts";
import { checkNew, HeldTurn } from "./turn-writer.ts";
import type { Expected } from "./views.ts";

/** Who begins a turn, and what is kept with it. */
export interface TurnOptions {
  readonly runId?: string;
  readonly agentId?: string;
  readonly metadata?: JsonObject;
  /** The lease: how long the branch is held without a renewal (default 30 s). */
  readonly leaseMs?: number;
  /** Deletes the checkpoints taken inside the turn when it is committed, unless it keeps them for time travel. */
  readonly retention?: Retention;
}

/** How a turn is begun or resumed: its first facts, and the turn they belong to. */
export interface Opening {
  readonly turnId: string;
  readonly drafts: readonly Draft[];
}

/** What was decided on a view of the branch. */
interface Decision {
  readonly opening: Opening;
}

/**
 * Decides the first facts on the newest view and appends them together with the claim of the run slot; when something
 * else was written in between, decides again. Returns the decision that holds. `onCached` tries the cached view first,
 * which the store need not be asked about: for a decision that holds on any view.
 */
export async function holdTurn<Decided extends Decision>(
  context: Context,
  ref: BranchRef,
  { runId, leaseMs = defaultLeaseMs, retention, onCached }: TurnOptions & { runId: string; onCached?: boolean },
  decide: (view: BranchView) => Decided | Promise<Decided>,
): Promise<{ held: HeldTurn; decision: Decided }> {
  const { views } = context;
  const making = onCached ? needRoom(context, ref) : undefined;
  if (making) await making;
  for (let cached = onCached ? views.cachedToAppend(ref) : undefined; ; cached = undefined) {
    const { view, expected } = cached ?? (await loadToAppend(context, ref));
    const made = decide(view);
    const decision = made instanceof Promise ? await made : made;
    const { turnId, drafts } = decision.opening;
    const checking = checkNew(context, ref, view, drafts);
    if (checking) await checking;
    try {
      const { claim, facts } = await appendClaiming(context, ref, view, drafts, {
        expectedSeq: expected.expectedSeq,
        expectedHeader: expected.expectedHeader,
        claim: { runId, leaseMs },
      });
      return { held: new HeldTurn(context, ref, { turnId, claim: claim!, facts, retention }), decision };
    } catch (error) {
      // A cached view of a branch that is gone: loading it says what is gone.
      const isGone = cached && BoughError.is(error, "branch_not_found");
      if (!isGone && !(await isOutdated(context, ref, { error, drafts, seq: expected.expectedSeq! }))) throw error;
    }
  }
}

async function loadToAppend({ views }: Context, ref: BranchRef): Promise<{ view: BranchView; expected: Expected }> {
  const { view } = await views.loadForRun(ref);
  return { view, expected: { expectedSeq: view.seq } };
}

/** Who works on a turn, and how it was asked. */
interface TurnStamp {
  readonly runId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly by?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly request?: TurnRequest | undefined;
  readonly continues?: { turnId: string; steps?: boolean | undefined } | undefined;
}

/** The drafts that begin a turn: those that close one left open, then its own. */
export function draftOpening(
  context: Context,
  { open }: Pick<BranchView, "open">,
  turn: { turnId: string; input: readonly NewMessage[] } & TurnStamp,
): Opening {
  const { turnId, input } = turn;
  const drafts: Draft[] = open ? [turnEnded(context, open.id, superseded)] : [];
  drafts.push(turnStarted(context, turnId, stampOf(turn)), ...messagesAdded(context, turnId, input, isInput));
  return { turnId, drafts };
}

/** The drafts that begin a turn with queued inputs. Hooks may have rewritten the messages. */
export function draftTaking(
  context: Context,
  inputs: readonly QueuedInput[],
  turn: { turnId: string; input?: readonly NewMessage[] } & TurnStamp,
): Opening {
  const { turnId, input = inputs.flatMap(messagesOfInput) } = turn;
  const taken = { ...stampOf(turn), inputs: inputs.map(({ id }) => id) };
  return { turnId, drafts: [turnStarted(context, turnId, taken), ...takenMessages(context, turnId, inputs, input)] };
}

/** Tells the input from what the turn adds to it, also after a crash. */
const isInput = { source: "user" } as const;
const superseded = { status: "interrupted", reason: "superseded" } as const;

/** The draft that resumes the open turn; undefined if there is none. */
export function draftResumption(
  context: Context,
  { open }: Pick<BranchView, "open">,
  turn: TurnStamp,
): Opening | undefined {
  return open ? { turnId: open.id, drafts: [turnResumed(context, open.id, stampOf(turn))] } : undefined;
}

function stampOf({ runId, agentId, by, metadata, request, continues }: TurnStamp): TurnStamp {
  return { runId: runId || undefined, agentId: agentId || undefined, by, metadata, request, continues };
}
