// Executing a run: take the branch, work, close. What is started here is stopped here.

import { alarm } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { stateChanged } from "../events/drafts.ts";
import { LiveSender } from "../live/index.ts";
import type { BranchRef } from "../log/store.ts";
import { stateOf } from "../projection/view.ts";
import type { Context } from "../sessions/context.ts";
import type { InputMessage } from "../sessions/files.ts";
import { speakAnswer } from "./audio/speak.ts";
import type { ChildHost, ChildOpening, ParentRun } from "./children/port.ts";
import type { AgentSettings } from "./config.ts";
import { Emitter } from "./emit.ts";
import { ended, Interrupted, Lost } from "./endings.ts";
import { pathOf } from "./handoffs.ts";
import type { RunControl } from "./run.ts";
import { ActiveTurn, stateBag } from "./turn/active-turn.ts";
import { complete, endBy, errorOf, failureOf, type RunResult } from "./turn/close.ts";
import { factsOf } from "./turn/facts-of.ts";
import { handedOn, loop, type TurnFinish } from "./turn/loop.ts";
import { beginOrResume, type OpenedTurn, type OpenRequest } from "./turn/open.ts";

export interface Execution {
  readonly context: Context;
  readonly settings: AgentSettings;
  readonly planFor: OpenRequest["planFor"];
  readonly ref: BranchRef;
  readonly input: readonly InputMessage[] | undefined;
  /** How the branch is taken, if it is not begun or resumed at any rate (OpenRequest). */
  readonly takes?: OpenRequest["takes"];
  readonly control: RunControl;
  /** The run that this one is a child of. */
  readonly parent?: ParentRun | undefined;
  /** Whether the run's reader gets its own events only. */
  readonly ownOnly?: boolean;
  /** How the turn begins, if the run that this one works for says so. */
  readonly opening?: ChildOpening | undefined;
  /** Finds the agents that calls of this run spawn. */
  readonly host: ChildHost;
  /** Called when the run has closed its turn and inputs wait on the branch. */
  readonly onQueue?: ((ref: BranchRef) => void) | undefined;
  /** What works on the turn, if not the loop of model and tools. */
  readonly loop?: TurnLoop | undefined;
  /** What every turn that the run begins has in its metadata. */
  readonly stamp?: JsonObject | undefined;
}

/** Works on a turn until it is to be closed. */
export type TurnLoop = (turn: ActiveTurn) => Promise<TurnFinish>;

export async function execute(execution: Execution): Promise<RunResult> {
  const { context, settings, planFor, ref, input, takes, control, parent, ownOnly, onQueue } = execution;
  const { opening, loop: code, stamp: metadata } = execution;
  const { controller, runId, mailbox } = control;
  const { stamp: agent, hub, clock, leaseMs, events } = settings;
  const routing = { ...ref, runId, agent };
  const emitter = new Emitter({ mailbox, hub, clock, events, routing, parent: parent?.emitter, ownOnly });
  let sender: LiveSender | undefined;
  let isAwaited = true;
  try {
    const stamp = { runId, agentId: agent.id, leaseMs };
    const request = { context, ref, ...stamp, emitter, signal: controller.signal, planFor };
    const isCode = code !== undefined;
    const opened = await beginOrResume({ ...request, input, opening, takes, stamp: metadata, isCode });
    const { live: channel } = context.store;
    sender = channel && new LiveSender({ channel, ref, runId, clock });
    if (sender) emitter.sendTo(sender);
    const { turnId } = opened.held;
    emitter.enterTurn(turnId, opened.plan.stamp);
    control.begun({ ...ref, turnId });
    emitter.live({ type: "run-start", ...(opened.resumed && { resumed: true }) });
    const first = await work(execution, opened, emitter);
    let { result, isWoken } = first;
    // An answer that came while another call still ran found the branch held, so no other process resumes the turn.
    while (isWoken || (!isCode && isAnswered(result))) {
      const again = await beginOrResume({ ...request, input: undefined, isCode }).catch(unlessTaken);
      if (!again) break;
      emitter.enterTurn(again.held.turnId, again.plan.stamp);
      ({ result, isWoken } = await work(execution, again, emitter));
    }
    isAwaited = first.isAwaited || first.result.status !== "completed" || opened.plan.pipeline.beforeTurn !== undefined;
    const { status, reason, error } = result;
    const failure = error && { error: errorOf(error) };
    emitter.end({ type: "run-end", status, ...(reason !== undefined && { reason }), ...failure });
    if (onQueue && (await hasQueue(context, ref, result))) onQueue(ref);
    return result;
  } finally {
    sender?.close();
    // Whatever still waits in this run's name stops waiting; mostly there is nothing, and to say so costs as much as a fact.
    if (isAwaited) controller.abort(ended);
  }
}

/** Whether inputs wait for the next turn. A completed turn was closed on the newest view, so that need not be loaded. */
async function hasQueue({ views }: Context, ref: BranchRef, { status }: RunResult): Promise<boolean> {
  if (status === "parked") return false;
  const closed = status === "completed" ? views.cachedToAppend(ref)?.view : undefined;
  const view = closed ?? (await views.loadForRun(ref).catch(() => undefined))?.view;
  return view !== undefined && view.queue.length > 0;
}

/** Parked for questions that all have their answers by now. */
function isAnswered({ status, reason, interactions = [] }: RunResult): boolean {
  return status === "parked" && reason === "question" && interactions.length === 0;
}

/** Another run resumed the turn meanwhile, perhaps to its end. */
function unlessTaken(error: unknown): undefined {
  if (!BoughError.is(error, "run_active") && !BoughError.is(error, "nothing_to_resume")) throw error;
}

interface Worked {
  readonly result: RunResult;
  /** Whether the run's signal was handed out to code that may still wait for it. */
  readonly isAwaited: boolean;
  /** It fell asleep, and something had happened by then; or it was closed to begin the next turn. */
  readonly isWoken: boolean;
}

/** Works on the turn until it is closed, or left; as often as it is handed over, with another plan. */
async function work(execution: Execution, opened: OpenedTurn, emitter: Emitter): Promise<Worked> {
  let isAwaited = false;
  for (let at: OpenedTurn & { shown?: number } = opened; ; ) {
    const worked = await workAs(execution, at, emitter);
    isAwaited ||= worked.isAwaited;
    if (worked.result) return { ...worked, isAwaited };
    at = await nextAgent(execution, at, worked.turn);
    emitter.enterTurn(at.held.turnId, at.plan.stamp);
  }
}

/** The turn as the agent that it was handed over to goes on with it. */
async function nextAgent(
  { context, planFor, ref }: Execution,
  opened: OpenedTurn,
  turn: ActiveTurn,
): Promise<OpenedTurn & { shown: number }> {
  const { held } = opened;
  const left = stateChanged(context, turn.turnId, turn.state.branchPatch());
  if (left.length > 0) await turn.write(...left);
  const view = await held.view();
  const { open } = view;
  const plan = await planFor(open ?? undefined, pathOf(view));
  const earlier = await factsOf(context, ref, { from: open?.from ?? view.seq, before: view.seq + 1 });
  const { sessionId } = ref;
  const state = stateBag(context, { sessionId, branch: stateOf(view), plan, emitter: turn.emitter });
  const asked = { ...opened.asked, context: plan.runContext };
  return { ...opened, plan, state, asked, earlier, resumed: true, shown: turn.log.shown };
}

type WorkedAs = Worked | { readonly result?: undefined; readonly turn: ActiveTurn; readonly isAwaited: boolean };

async function workAs(
  execution: Execution,
  opened: OpenedTurn & { shown?: number },
  emitter: Emitter,
): Promise<WorkedAs> {
  const { context, control, host, parent } = execution;
  const { plan } = opened;
  const { signal } = control.controller;
  opened.state.begin();
  const isListenedTo = () => control.isIterated() || plan.hub.isHeard || parent?.isListenedTo() === true;
  const abort = (reason: unknown) => control.controller.abort(reason);
  const turn = new ActiveTurn({
    ...opened,
    context,
    emitter,
    signal,
    isListenedTo,
    abort,
    host,
    parent,
    onChild: control.child,
    isCode: execution.loop !== undefined,
  });
  const letGo = keepHeld(turn, control.controller);
  const { turnMs } = plan.limits;
  if (turnMs !== undefined && opened.shown === undefined)
    void limitTime(turn, control.controller, { turnMs, startedAt: startOf(opened) });
  try {
    const result = await toItsEnd(turn, opened, execution.loop);
    const isAwaited = turn.hasGivenSignal || turnMs !== undefined || execution.loop !== undefined;
    if (!result) return { turn, isAwaited };
    if (!turn.isLeft) await turn.tasks.callOff(signal.reason);
    if (plan.audio.speak) await speakAnswer(turn, result);
    return { result, isAwaited, isWoken: turn.isWoken || turn.isFollowed };
  } finally {
    turn.isOver = true;
    letGo();
  }
}

/** Nothing when another agent goes on. */
async function toItsEnd(
  turn: ActiveTurn,
  { refusal }: OpenedTurn,
  code: TurnLoop | undefined,
): Promise<RunResult | undefined> {
  const { signal } = turn;
  try {
    if (signal.aborted) throw signal.reason;
    if (refusal) throw refusal.cause;
    for (let again = false; ; again = true) {
      const finish = await (code ? code(turn) : loop(turn, { again }));
      if (finish === handedOn) return undefined;
      const result = await complete(turn, finish);
      if (result) return result;
    }
  } catch (error) {
    return await endSafely(turn, signal.aborted ? signal.reason : error);
  }
}

/** A turn that can't be ended, because the store fails or another run has the branch, is left as it is: open, to be resumed. */
async function endSafely(turn: ActiveTurn, cause: unknown): Promise<RunResult> {
  try {
    return await endBy(turn, BoughError.is(cause, "epoch_stale") ? new Lost(cause) : cause);
  } catch (error) {
    return await endBy(turn, new Lost(BoughError.is(error, "epoch_stale") ? error : failureOf(turn.plan, cause)));
  }
}

/** How long a run works before it listens to what others write on its branch: most are over by then. */
const listenAfterMs = 100;

/** Renews the hold on the branch while the run works; a run that lost it stops. What is returned ends it. */
function keepHeld(turn: ActiveTurn, controller: AbortController): () => void {
  const { signal } = controller;
  const { clock } = turn.context;
  const beatMs = turn.plan.leaseMs / 3;
  let due = clock.now() + beatMs;
  const isOver = () => signal.aborted || turn.isOver;
  // Wherever the clock was set to meanwhile, a beat is no longer than that.
  const next = () => alarm(clock, Math.min(beatMs, due - clock.now()), beat);
  const beat = async () => {
    if (isOver()) return;
    try {
      await turn.renew();
    } catch (error) {
      // Any other failure is tried again: the lease is three beats long.
      if (BoughError.is(error, "epoch_stale") && !signal.aborted) controller.abort(new Lost(error));
    }
    if (isOver()) return;
    due = clock.now() + beatMs;
    cancel = next();
  };
  let cancel = alarm(clock, Math.min(listenAfterMs, beatMs), () => {
    if (isOver()) return;
    turn.listen();
    cancel = next();
  });
  return () => cancel();
}

/** When the turn began, in whatever process. */
function startOf({ earlier, held }: OpenedTurn): number {
  return (earlier[0] ?? held.opening.find(({ type }) => type === "turn.started") ?? held.opening[0]!).at;
}

/** The time of a turn counts from its beginning, also when another process has resumed it. */
async function limitTime(
  turn: ActiveTurn,
  controller: AbortController,
  { turnMs, startedAt }: { turnMs: number; startedAt: number },
): Promise<void> {
  const { clock } = turn.context;
  await clock.sleep(Math.max(0, startedAt + turnMs - clock.now()), controller.signal);
  if (controller.signal.aborted) return;
  turn.emitter.live({ type: "limit-reach", limit: "turn-time", value: turnMs });
  controller.abort(new Interrupted("turn-time-limit"));
}
