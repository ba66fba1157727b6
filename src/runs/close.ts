// Closing: however a run ends, the turn is left in a legal state and whoever watches is told once.

import { withGrace } from "../base/abort.ts";
import { BoughError } from "../base/errors.ts";
import { type Draft, type Message, textOf } from "../events/index.ts";
import type { Usage } from "../models/index.ts";
import { describeError } from "../models/index.ts";
import type { Interaction } from "../projection/index.ts";
import { answerDangling } from "../projection/tools.ts";
import { clearTurnCheckpoints, saveCheckpoint } from "../sessions/checkpoints.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { handedOver, Interrupted, Lost, Parked } from "./endings.ts";
import type { TurnFinish } from "./loop.ts";

/** What came of a run. */
export interface RunResult<Output = unknown> {
  readonly status: "completed" | "interrupted" | "failed" | "parked";
  readonly runId: string;
  readonly turnId: string;
  readonly sessionId: string;
  readonly branchId: string;
  /** Why it ended: the model's finish reason, a limit, an interruption's words. */
  readonly reason?: string;
  /** The final answer. */
  readonly text: string;
  /** The turn's messages, the input included. */
  readonly messages: readonly Message[];
  /** Of the whole turn, runs before this one included. */
  readonly iterations: number;
  /** Of the whole turn, as far as runs before this one wrote down what they used. */
  readonly usage: Usage;
  /** The object asked for with `output`. */
  readonly output?: Output;
  readonly error?: BoughError;
  /** Questions that wait for an answer, when it was parked. */
  readonly interactions?: readonly Interaction[];
}

export async function complete(turn: ActiveTurn, finish: TurnFinish): Promise<RunResult> {
  const { reason, message, output } = finish;
  const messages = await turnMessages(turn, message);
  const text = textOf(messages.findLast(({ role }) => role === "assistant") ?? { content: "" });
  // Until it is written, it is what a person may have seen of a turn that could still fail.
  turn.partial = message;
  await summarise(turn, { status: "completed", reason, text, messages });
  const close = { ...closing(turn), reason, ...(message && { messages: [message] }) };
  const { persistAfterTurn } = turn.plan;
  const facts = await turn.log.last(() => (persistAfterTurn ? turn.held.commit(close) : turn.held.stage(close)));
  if (turn.plan.durable) await tidyCheckpoints(turn, facts.at(-1)!.seq);
  return { ...resultOf(turn, messages), status: "completed", reason, text, ...(output !== undefined && { output }) };
}

/** Ends the turn for whatever stopped the loop. */
export async function endBy(turn: ActiveTurn, cause: unknown): Promise<RunResult> {
  if (cause instanceof Parked) return park(turn, cause.reason);
  if (cause instanceof Lost) return lost(turn, cause.error);
  const isInterrupted = cause instanceof Interrupted;
  const status = isInterrupted ? "interrupted" : "failed";
  const error = isInterrupted ? undefined : failureOf(cause);
  const reason = isInterrupted ? cause.reason : error!.code;
  const messages = answerDangling(await turnMessages(turn, turn.partial));
  const text = textOf(turn.partial ?? { content: "" });
  if (error) report(turn, "run", error);
  await summarise(turn, { status, reason, text, messages, ...(error && { error }) }).catch((failure) =>
    report(turn, "middleware", failure),
  );
  const { message, code } = error ?? {};
  const close = {
    ...closing(turn),
    status,
    reason,
    ...(turn.partial && { messages: [turn.partial] }),
    ...(message !== undefined && { error: { message, ...(code && { code }) } }),
  } as const;
  await turn.log.last(() => turn.held.end(close));
  return { ...resultOf(turn, messages), status, reason, text, ...(error && { error }) };
}

/** Gives the branch back and leaves the turn open: whoever brings the answer resumes it. */
async function park(turn: ActiveTurn, reason: string): Promise<RunResult> {
  const { turnId, held } = turn;
  const set = turn.state.branchPatch();
  const drafts: Draft[] = [];
  // The calls that changed it have their results and don't run again.
  if (Object.keys(set).length > 0) drafts.push({ ...turn.stamp(), type: "state.changed", turnId, set });
  // Tells a run that was handed over from one that died; a question that waits says so by itself.
  if (reason === handedOver) drafts.push({ ...turn.stamp(), type: "turn.parked", turnId, runId: held.runId, reason });
  if (drafts.length > 0) await turn.write(...drafts);
  const before = await turn.view();
  await giveBack(turn, reason);
  // Another process that answered until now has found the branch held, and leaves the rest to this run.
  const { interactions } = await turn.context.views.load(held.ref).then(
    ({ view }) => view,
    () => before,
  );
  const open = interactions.filter((each) => each.turnId === turnId);
  const messages = await turnMessages(turn);
  return { ...resultOf(turn, messages), status: "parked", reason, text: "", interactions: open };
}

/**
 * A turn that is handed over keeps its claim, with a lease that is over: whoever looks for runs to take up finds it there.
 * One that waits for an answer is nobody's until that comes.
 */
async function giveBack(turn: ActiveTurn, reason: string): Promise<void> {
  if (reason !== handedOver) return turn.held.release();
  // A renewal after this one would make the lease run again.
  turn.isOver = true;
  await turn.renewal?.catch(() => {});
  await turn.held.renew(0);
}

/** Nothing can be written any more: another run has the branch, or the store fails. */
async function lost(turn: ActiveTurn, error: unknown): Promise<RunResult> {
  // A store that hears nothing of this gives the branch back when the lease is over.
  await turn.held.release().catch(() => {});
  return { ...resultOf(turn, []), status: "failed", text: "", error: failureOf(error) };
}

function closing(turn: ActiveTurn) {
  const state = turn.state.branchPatch();
  const { iterations, usage } = turn;
  return { iterations, usage: { ...usage }, ...(Object.keys(state).length > 0 && { state }) };
}

/** Calls the afterTurn hooks: once, also when one of them makes the turn fail. A turn that was called off waits a little. */
async function summarise(
  turn: ActiveTurn,
  end: {
    status: "completed" | "interrupted" | "failed";
    reason: string;
    text: string;
    messages: readonly Message[];
    error?: unknown;
  },
): Promise<void> {
  const { afterTurn } = turn.plan.pipeline;
  if (!afterTurn || turn.isSummarised) return;
  turn.isSummarised = true;
  const { iterations, usage, context } = turn;
  const grace = withGrace(turn.signal, context.clock);
  const { signal } = grace;
  await afterTurn(turn.hook, { ...end, iterations, usage, signal }).finally(() => grace.stop());
}

/** The turn's messages with the one that is about to be written. */
async function turnMessages(turn: ActiveTurn, last?: Pick<Message, "role" | "content"> & { id?: string }) {
  const { open } = await turn.view();
  const written = open?.id === turn.turnId ? open.messages : [];
  if (!last) return written.slice();
  const { id = "" } = last;
  return [...written, { ...last, id, turnId: turn.turnId, createdAt: turn.context.clock.now() }];
}

function resultOf(turn: ActiveTurn, messages: readonly Message[]) {
  const { held, iterations, usage } = turn;
  return { runId: held.runId, turnId: held.turnId, ...held.ref, messages, iterations, usage };
}

/** Clears the checkpoints taken inside the turn and names its end. The turn is closed: a failure here does not change that. */
async function tidyCheckpoints(turn: ActiveTurn, seq: number): Promise<void> {
  const { context, plan, held, emitter, iterations: step } = turn;
  const { retention, checkpoints = "per-turn" } = plan.durable!;
  try {
    const count = await clearTurnCheckpoints(context, held.ref, held.turnId, retention);
    if (count > 0) emitter.live({ type: "checkpoint-clear", count });
    if (checkpoints !== "per-turn") return;
    const { id } = await saveCheckpoint(context, held.ref, { seq, step, source: "turn", retention });
    emitter.live({ type: "checkpoint-save", checkpointId: id, step });
  } catch (error) {
    report(turn, "run", error);
  }
}

function report({ emitter }: Pick<ActiveTurn, "emitter">, source: "run" | "middleware", error: unknown): void {
  emitter.live({ type: "error-report", source, error: describeError(error) });
}

/** Whatever was thrown, as the one kind of error there is. */
export function failureOf(error: unknown): BoughError {
  if (BoughError.is(error)) return error;
  const { message } = describeError(error);
  return new BoughError("run_failed", message, { cause: error });
}
