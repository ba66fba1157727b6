// Closing: however a run ends, the turn is left in a legal state and watchers are notified once.

import { withGrace } from "../../base/abort.ts";
import { BoughError } from "../../base/errors.ts";
import { failpoint } from "../../base/failpoint.ts";
import { stateChanged, turnParked } from "../../events/drafts.ts";
import { type Draft, type Fact, type Message, textOf } from "../../events/index.ts";
import { addUsage, type Usage } from "../../models/index.ts";
import type { Interaction } from "../../projection/index.ts";
import { messageOf } from "../../projection/records.ts";
import { answerDangling } from "../../projection/tools.ts";
import { clearTurnCheckpoints, saveCheckpoint } from "../../sessions/checkpoints.ts";
import { mirrorOf, openQuestions } from "../../sessions/interactions.ts";
import { fellAsleep, handedOver, Interrupted, Lost, Parked } from "../endings.ts";
import { type Redacting, redactError, tellError } from "../redact-errors.ts";
import { type ActiveTurn, previewMessage } from "./active-turn.ts";
import { isRefusal, keepable } from "./keepable.ts";
import { type TurnFinish, withUsage } from "./loop.ts";
import { takeSteering, unlessSteered } from "./steering.ts";

interface ResultBase {
  readonly runId: string;
  readonly turnId: string;
  readonly sessionId: string;
  readonly branchId: string;
  /** Why it ended: the model's finish reason, a limit, or the reason of the interruption. */
  readonly reason?: string;
  /** The final answer's text; of a run that did not complete, the text so far. */
  readonly text: string;
  /** The turn's messages, including the input. */
  readonly messages: readonly Message[];
  /** Model calls of the whole turn, including earlier runs of it. */
  readonly iterations: number;
  /** Tokens of the whole turn, summaries and earlier runs of it that recorded their usage included. */
  readonly usage: Usage;
  /** What of it went into summaries of the history; absent when nothing did. */
  readonly summaries?: Usage;
  /** Tokens of the turn's children, with their own children; absent when there were none. */
  readonly childrenUsage?: Usage;
  /** Tokens of the turn and its children. */
  readonly totalUsage: Usage;
}

/** The result of a run, narrowed by its `status`. */
export type RunResult<Output = unknown> = ResultBase &
  (
    | {
        readonly status: "completed";
        /** The structured output, if the run had the option `output`. */
        readonly output?: Output;
        readonly error?: undefined;
        readonly interactions?: undefined;
      }
    | {
        readonly status: "interrupted";
        readonly output?: undefined;
        readonly error?: undefined;
        readonly interactions?: undefined;
      }
    | {
        readonly status: "failed";
        readonly output?: undefined;
        readonly error: BoughError;
        readonly interactions?: undefined;
      }
    | {
        readonly status: "parked";
        readonly output?: undefined;
        readonly error?: undefined;
        /** Open questions. */
        readonly interactions: readonly Interaction[];
        /** When a turn that sleeps goes on, if a process recovers turns then. */
        readonly until?: number;
      }
  );

/** Completes the turn; undefined when something steered it in the last moment, so that it goes on. */
export async function complete(turn: ActiveTurn, finish: TurnFinish): Promise<RunResult | undefined> {
  const { reason, message, output, usage, next } = finish;
  if (await takeSteering(turn, message ? [withUsage(message, usage)] : [])) {
    turn.partial = undefined;
    return undefined;
  }
  const written = await writtenMessages(turn);
  const text = textOf(message ?? written.findLast(({ role }) => role === "assistant") ?? { content: "" });
  // Until it is written, it is what a person may have seen of a turn that could still fail.
  turn.partial = message;
  const messages = () => withLast(written, message);
  await summarise(turn, { status: "completed", reason, text }, messages);
  const context = turn.compaction.contextAfter(message?.id);
  const close = { ...closing(turn), reason, ...(context && { context }), ...(message && { drafts: [message] }), next };
  const { persistAfterTurn } = turn.plan;
  const unless = unlessSteered(turn);
  const facts = await turn.log.last(() =>
    persistAfterTurn ? turn.held.commit(close, unless) : turn.held.stage(close, unless),
  );
  if (facts.length === 0) {
    turn.isSteered = true;
    return complete(turn, finish);
  }
  turn.isFollowed = next !== undefined;
  if (turn.plan.durable) await tidyCheckpoints(turn, facts.at(-1)!.seq);
  const kept = [...written, ...messagesIn(facts)];
  return { ...buildResult(turn, kept), status: "completed", reason, text, ...(output !== undefined && { output }) };
}

/**
 * Ends the turn after an error or interruption. What the log can't store of the last message is left out and named in the
 * error, so that the turn is always closed.
 */
export async function endBy(turn: ActiveTurn, cause: unknown): Promise<RunResult> {
  await stopChildren(turn, cause);
  if (cause instanceof Parked) return park(turn, cause.reason);
  if (cause instanceof Lost) return lost(turn, cause.error);
  const isInterrupted = cause instanceof Interrupted;
  const status = isInterrupted ? "interrupted" : "failed";
  const last = turn.partial ? keepable(turn.partial) : { lost: [] };
  const error = isInterrupted ? undefined : withLost(failureOf(turn.plan, cause), last.lost);
  const reason = isInterrupted ? cause.reason : error!.code;
  const written = await writtenMessages(turn);
  const messages = () => answerDangling(withLast(written, last.message));
  const text = textOf(last.message ?? { content: "" });
  if (error) reportError(turn, "run", error);
  await summarise(turn, { status, reason, text, ...(error && { error }) }, messages).catch((failure) =>
    reportError(turn, "middleware", failure),
  );
  const end = { status, reason, ...(error && { error: errorOf(error) }) } as const;
  const full = { ...closing(turn), ...end, ...(last.message && { drafts: [last.message] }) };
  const facts = await turn.log
    .last(() => turn.held.end(full))
    .catch((refusal: unknown) => {
      if (!isRefusal(refusal)) throw refusal;
      // Something else of it can't be stored. That it ended can.
      const plain = { status, reason: String(reason), error: errorOf(failureOf(turn.plan, refusal)) } as const;
      return turn.log.last(() => turn.held.end(plain));
    });
  const kept = answerDangling([...written, ...messagesIn(facts)]);
  const about = { ...buildResult(turn, kept), reason, text };
  return error ? { ...about, status: "failed", error } : { ...about, status: "interrupted" };
}

/** Children end or park before their parent does: what is written last is that nothing goes on any more. */
async function stopChildren(turn: ActiveTurn, cause: unknown): Promise<void> {
  if (!turn.children.isUnderWay) return;
  // The signal tells the children of an end that they did not see coming.
  if (!turn.signal.aborted && !(cause instanceof Parked)) turn.abort(new Interrupted("parent-ended"));
  await turn.children.settle();
}

/** The error, with what could not be kept of the answer. */
function withLost(error: BoughError, lost: readonly string[]): BoughError {
  if (lost.length === 0) return error;
  const { code, message, data, retryable } = error;
  const sentence = `${message} The stored answer lacks: ${lost.join(", ")}.`;
  return new BoughError(code, sentence, { data: { ...data, lost }, cause: error, retryable });
}

/** Releases the branch and leaves the turn open: the answer resumes it. */
async function park(turn: ActiveTurn, reason: string): Promise<RunResult> {
  const { turnId, held } = turn;
  turn.isLeft = true;
  const set = turn.state.branchPatch();
  // The calls that changed it have their results and don't run again.
  const drafts: Draft[] = stateChanged(turn.context, turnId, set);
  const isAsleep = turn.sleepers.size > 0 || !turn.isSteerable;
  if (reason !== handedOver && isAsleep) return fallAsleep(turn, reason, drafts);
  // Tells a run that was handed over from one that died; a question that waits says so by itself.
  if (reason === handedOver) drafts.push(turnParked(turn.context, turnId, { runId: held.runId, reason }));
  if (drafts.length > 0) await turn.write(...drafts);
  const before = await turn.view();
  await giveBack(turn, reason);
  // Another process that answered until now has found the branch held, and leaves the rest to this run.
  const view = await turn.context.views.loadForRun(held.ref).then(
    (loaded) => loaded.view,
    () => before,
  );
  const asked = view.interactions.filter((each) => each.turnId === turnId);
  const open = asked.some(mirrorOf) ? await openQuestions(turn.context, view).catch(() => asked) : asked;
  const messages = await writtenMessages(turn);
  return { ...buildResult(turn, messages), status: "parked", reason, text: "", interactions: open };
}

/**
 * Leaves the turn to whoever wakes it: time, an answer, a signal. What others wrote before it fell asleep wakes it at once, so
 * that nothing that they left to this run is lost.
 */
async function fallAsleep(turn: ActiveTurn, why: string, drafts: readonly Draft[]): Promise<RunResult> {
  const { turnId, sleepers } = turn;
  const asked = (await turn.view()).interactions.filter((each) => each.turnId === turnId);
  const deadlines = [...sleepers.values(), ...asked.map(({ expiresAt }) => expiresAt)];
  const untils = deadlines.filter((each) => each !== undefined);
  const reason = sleepers.size > 0 ? fellAsleep : why;
  const until = untils.length === 0 ? undefined : Math.min(...untils);
  let before = 0;
  turn.isOver = true;
  await turn.renewal?.catch(() => {});
  const facts = await turn.log.last(() => {
    before = turn.log.shown;
    return turn.held.sleep({ reason, until }, drafts);
  });
  failpoint("run.step.asleep");
  turn.isWoken = facts[0]!.seq > before + 1;
  const messages = await writtenMessages(turn);
  const result = { ...buildResult(turn, messages), status: "parked" as const, reason, text: "" };
  return { ...result, interactions: asked, ...(until !== undefined && { until }) };
}

/**
 * A turn that is handed over keeps its claim, with an expired lease, so that recovery finds it. A turn that waits for an
 * answer is released until the answer comes.
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
  turn.isLeft = true;
  // A store that hears nothing of this gives the branch back when the lease is over.
  await turn.held.release().catch(() => {});
  return { ...buildResult(turn, []), status: "failed", text: "", error: failureOf(turn.plan, error) };
}

function closing(turn: ActiveTurn) {
  const state = turn.state.branchPatch();
  const children = turn.children.usage;
  return {
    iterations: turn.iterations,
    ...used(turn),
    ...(isUsed(children) && { children: { ...children } }),
    ...(Object.keys(state).length > 0 && { state }),
  };
}

function used({ totalUsage, compaction: { summaries } }: ActiveTurn) {
  return { usage: { ...totalUsage }, ...(Object.keys(summaries).length > 0 && { summaries: { ...summaries } }) };
}

function isUsed(usage: Usage): boolean {
  return Object.keys(usage).length > 0;
}

/** Calls the afterTurn hooks: once, also when one of them makes the turn fail. A cancelled turn waits a little. */
async function summarise(
  turn: ActiveTurn,
  end: {
    status: "completed" | "interrupted" | "failed";
    reason: string;
    text: string;
    error?: unknown;
  },
  messages: () => readonly Message[],
): Promise<void> {
  const { afterTurn } = turn.plan.pipeline;
  if (!afterTurn || turn.isSummarised) return;
  turn.isSummarised = true;
  const { iterations, totalUsage: usage, context } = turn;
  const grace = withGrace(turn.signal, context.clock);
  const { signal } = grace;
  const summary = { ...end, messages: messages(), iterations, usage: { ...usage }, signal };
  await afterTurn(turn.hook, summary).finally(() => grace.stop());
}

/** The turn's messages as they are in the log. */
async function writtenMessages(turn: ActiveTurn): Promise<Message[]> {
  const { open } = await turn.view();
  return open?.id === turn.turnId ? open.messages.slice() : [];
}

/** The turn's messages with the one that is about to be written. */
function withLast(written: readonly Message[], last: Draft<"message.added"> | undefined): Message[] {
  return last ? [...written, previewMessage(last)] : written.slice();
}

function messagesIn(facts: readonly Fact[]): Message[] {
  return facts.filter((fact): fact is Fact<"message.added"> => fact.type === "message.added").map(messageOf);
}

function buildResult(turn: ActiveTurn, messages: readonly Message[]) {
  const { held, iterations } = turn;
  const { usage: childrenUsage } = turn.children;
  return {
    ...{ runId: held.runId, turnId: held.turnId, ...held.ref, messages, iterations },
    ...used(turn),
    ...(isUsed(childrenUsage) && { childrenUsage }),
    totalUsage: addUsage(turn.totalUsage, childrenUsage),
  };
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
    reportError(turn, "run", error);
  }
}

function reportError({ emitter, plan }: ActiveTurn, source: "run" | "middleware", error: unknown): void {
  emitter.live({ type: "error-report", source, error: tellError(plan, error) });
}

/** The longest error message that is stored: a tool or a hook may have put anything into it. */
const errorLength = 4000;

/** A failure as facts and events carry it: the code, and the provider's status if there is one. */
export function errorOf({ message, code, data }: BoughError): { message: string; code: string; status?: number } {
  return {
    message: message.slice(0, errorLength),
    code,
    ...(typeof data.status === "number" && { status: data.status }),
  };
}

/** Converts anything thrown to a `BoughError`. */
export function failureOf(redacting: Redacting, error: unknown): BoughError {
  if (BoughError.is(error)) return redactError(redacting, error);
  const { message } = tellError(redacting, error);
  return new BoughError("run_failed", message, { cause: error });
}
