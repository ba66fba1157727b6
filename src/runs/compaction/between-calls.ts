// Automatic compaction of the branch that a run holds.
//   BetweenCalls-1. Nothing is written until what is shown instead is whole; the append of the fact is the compaction.
//   BetweenCalls-2. A strategy that fails or takes too long costs its time and nothing else: the call goes on as it is.
//   BetweenCalls-3. At most one compaction before a model call, and one more when the provider says that the prompt is too long.
//   BetweenCalls-4. One pass clears outputs or puts something in the place of messages, never both: each costs the cached prefix once.
//   BetweenCalls-5. A result that is not clearly smaller is not written, and counts as a failure (breaker.ts).

import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import { historyCleared } from "../../events/drafts.ts";
import type { Message } from "../../events/index.ts";
import { describeError, type ModelRequest, type Usage } from "../../models/index.ts";
import type { BranchView } from "../../projection/view.ts";
import { draftCompaction, messagesOf } from "../../sessions/compaction/apply.ts";
import type { CompactionRange, StrategyOutput } from "../../sessions/compaction/port.ts";
import { chooseRange } from "../../sessions/compaction/range.ts";
import { runStrategy } from "../../sessions/compaction/strategy-run.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import { voidPartial } from "../turn/void-partial.ts";
import { turnAsker } from "./asker.ts";
import { addFailure, breakerOf, breakerState } from "./breaker.ts";
import { findClearing } from "./clearing.ts";
import { type Due, findDue, frameOf } from "./due.ts";
import { learnRatio, measurePrompt, messageSize } from "./measure.ts";
import { windowOf } from "./options.ts";

/** Makes the request of the next model call on a view. */
export type RequestFor = (view: BranchView) => ModelRequest;

/** The view that the next model call is made on: compacted first, if it is time for that. */
export async function viewForCall(turn: ActiveTurn, requestFor: RequestFor): Promise<BranchView> {
  const view = await turn.view();
  const { isProactive, isForced, stopsAfter } = turn.plan.compaction;
  if (!isProactive && !isForced) return view;
  const due = findDue(turn, view);
  if (!due) return view;
  const isDone = await compact(turn, view, due, requestFor);
  if (due.reason === "force") turn.compaction.isForced = true;
  if (stopsAfter && (isDone || due.reason === "force")) turn.stopReason ??= "compacted";
  return isDone ? turn.view() : view;
}

/** After the provider has refused a prompt as too long: the shorter view to call again on; undefined when there is none. */
export async function viewAfterOverflow(
  turn: ActiveTurn,
  error: unknown,
  requestFor: RequestFor,
): Promise<BranchView | undefined> {
  if (!turn.plan.compaction.recovers || !BoughError.is(error, "context_overflow")) return undefined;
  const view = await turn.view();
  const { tokens: before } = measurePrompt(view, frameOf(turn));
  if (!(await compact(turn, view, { reason: "overflow", before }, requestFor))) return undefined;
  voidPartial(turn, error);
  return turn.view();
}

/** Learns from an answer how many tokens a character of this model's prompts takes. */
export async function learnFrom(turn: ActiveTurn, usage: Usage | undefined): Promise<void> {
  if (!turn.plan.compaction.isProactive || usage?.inputTokens === undefined) return;
  learnRatio(await turn.view(), frameOf(turn), usage.inputTokens);
}

/** Whether the branch is compacted now. */
async function compact(turn: ActiveTurn, view: BranchView, due: Due, requestFor: RequestFor): Promise<boolean> {
  const { reason, before } = due;
  const model = nameOf(turn);
  const { isOpen } = breakerOf(await turn.state.get(breakerState), view, model);
  if (isOpen && reason !== "force") return skip(turn, due, "it has failed three times in a row");
  if (await clear(turn, view, due)) return true;
  const ground = await groundFor(turn, view);
  const chosen = rangeFor(turn, ground, due);
  if (!chosen) return skip(turn, due, "there is nothing to compact");
  turn.emitter.live({ type: "compaction-start", reason, tokens: before });
  try {
    await replace(turn, ground, { due, ...chosen, requestFor });
    return true;
  } catch (error) {
    if (turn.signal.aborted) throw turn.signal.reason;
    if (BoughError.is(error, "epoch_stale") || isOfStore(error)) throw error;
    await turn.state.update(breakerState, (failures) => addFailure(failures, view, model));
    const { message } = describeError(error, turn.plan.redact);
    turn.emitter.live({ type: "compaction-skip", reason, why: message });
    return false;
  }
}

/** Whether something is wrong with the store, and not with what was to be written. */
function isOfStore(error: unknown): boolean {
  return BoughError.is(error) && error.code.startsWith("store_");
}

function nameOf({ plan: { model } }: ActiveTurn): string {
  return `${model.provider}/${model.modelId}`;
}

/** Said once in a turn: the same would be true before every call of it. */
function skip(turn: ActiveTurn, { reason }: Due, why: string): false {
  const { compaction: progress } = turn;
  if (!progress.isNothingTold) turn.emitter.live({ type: "compaction-skip", reason, why });
  progress.isNothingTold = true;
  return false;
}

/** How large a prompt this plan lets become, in tokens. */
function capacityOf({ plan: { compaction, model } }: ActiveTurn): number | undefined {
  const { tokens, at } = compaction;
  const bounds = [windowOf(compaction, model), tokens !== undefined ? tokens / at : undefined];
  const known = bounds.filter((bound) => bound !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined;
}

/** Clears outputs of old calls, if that alone is enough (BetweenCalls-4). */
async function clear(turn: ActiveTurn, view: BranchView, { reason, before }: Due): Promise<boolean> {
  const { compaction: plan, tools, model } = turn.plan;
  const capacity = capacityOf(turn);
  // A summary is asked for by name, by a provider that refuses more, or by a count of messages that clearing leaves as it is.
  const isBySize = reason === "share" || reason === "cold" || reason === "tokens";
  if (plan.clear === false || !isBySize || capacity === undefined) return false;
  const { results, saved } = findClearing(view, plan.clear, { tools, sizeOf: messageSize(model) });
  const after = Math.max(0, before - saved);
  if (results.length === 0 || saved < plan.clear.gain || after > plan.target * capacity) return false;
  const startedAt = turn.context.clock.now();
  turn.emitter.live({ type: "compaction-start", reason, tokens: before });
  await record(
    turn,
    { reason, before, after, startedAt },
    historyCleared(turn.context, { results, reason, tokens: { before, after } }),
  );
  return true;
}

/** The view that ranges are chosen on: what a hard compaction covers is for people, so a view for models is not enough. */
async function groundFor({ context, held, plan }: ActiveTurn, view: BranchView): Promise<BranchView> {
  if (plan.compaction.retention !== "hard" || view.skipped === 0) return view;
  return (await context.views.load(held.ref)).view;
}

/** What is to be replaced, and for whom. */
interface Chosen {
  readonly range: CompactionRange;
  readonly retention: "soft" | "hard";
}

/**
 * Of the newest part, no more stays than half of what the prompt is to come down to, or half of the messages that make it due:
 * otherwise the next call would be due again. A hard compaction can't reach into the open turn; where that has to become
 * shorter, it is a soft one.
 */
function rangeFor(turn: ActiveTurn, view: BranchView, { reason }: Due): Chosen | undefined {
  const { compaction: plan, model } = turn.plan;
  const { keep, retention, target, messages } = plan;
  const most = ((capacityOf(turn) ?? Number.POSITIVE_INFINITY) * target) / 2;
  const part = reason === "overflow" ? 0.5 : 1;
  const choice = {
    keep: { turns: Math.floor(keep.turns * part), tokens: Math.floor(Math.min(keep.tokens, most) * part) },
    ...(messages !== undefined && { mostMessages: Math.floor(messages / 2) }),
    inputs: turn.inputs,
    sizeOf: messageSize(model),
  };
  const soft = chooseRange(view, choice);
  if (!soft || retention === "soft" || soft.turnId !== undefined) return soft && { range: soft, retention: "soft" };
  const hard = chooseRange(view, { ...choice, retention });
  return hard && { range: hard, retention };
}

interface Replacing extends Chosen {
  readonly due: Due;
  readonly requestFor: RequestFor;
}

async function replace(turn: ActiveTurn, view: BranchView, replacing: Replacing): Promise<void> {
  const { due, range, retention, requestFor } = replacing;
  const { context, signal } = turn;
  const { strategy } = turn.plan.compaction;
  const { clock } = context;
  const startedAt = clock.now();
  const seen = messagesOf(view, range, retention);
  const request = () => requestFor(view);
  const isOverfull = due.reason === "overflow";
  const inputFor = (own: AbortSignal) => ({
    ...seen,
    signal: own,
    asker: turnAsker(turn, { request, signal: own, isOverfull }),
  });
  const output = await runStrategy(strategy, inputFor, { clock, signal });
  failpoint("run.compaction.summarised");
  const tokens = { before: due.before, after: sizeAfter(turn, due.before, seen, output) };
  checkGain(due, tokens.after);
  const { reason } = due;
  const draft = draftCompaction(context, view, range, output, { retention, reason, strategy: strategy.name, tokens });
  const cachedInputTokens = output.usage?.cachedInputTokens;
  await record(
    turn,
    { reason, ...tokens, startedAt, ...(cachedInputTokens !== undefined && { cachedInputTokens }) },
    draft,
  );
}

interface Recorded {
  readonly reason: string;
  readonly before: number;
  readonly after: number;
  readonly startedAt: number;
  readonly cachedInputTokens?: number;
}

async function record(
  turn: ActiveTurn,
  { startedAt, ...end }: Recorded,
  draft: Parameters<ActiveTurn["write"]>[0],
): Promise<void> {
  await turn.write(draft);
  failpoint("run.compaction.written");
  const ms = turn.context.clock.now() - startedAt;
  turn.emitter.live({ type: "compaction-end", ...end, compactionId: draft.id, ms });
}

function sizeAfter(
  { plan }: ActiveTurn,
  before: number,
  { messages, kept }: { messages: readonly Message[]; kept: readonly Message[] },
  { replacements, keep = [] }: StrategyOutput,
): number {
  const sizeOf = messageSize(plan.model);
  const stays = new Set([...kept.map(({ id }) => id), ...keep]);
  const gone = messages.filter(({ id }) => !stays.has(id)).reduce((sum, message) => sum + sizeOf(message), 0);
  const added = replacements.reduce((sum, message) => sum + sizeOf(message), 0);
  return Math.max(0, Math.round(before - gone + added));
}

/** The share of the size that may be left when the size is the reason. */
const enough = 0.7;

/** BetweenCalls-5. Where not the size is the reason, or the call is lost anyway, whatever makes it smaller will do. */
function checkGain({ reason, before }: Due, after: number): void {
  const isBySize = reason === "share" || reason === "cold" || reason === "tokens";
  if (isBySize ? after <= enough * before : after < before) return;
  throw new BoughError("model_failed", `The result is not clearly smaller: ${after} of ${before} tokens.`);
}
