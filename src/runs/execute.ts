// Executing a run: take the branch, work, close. What is started here is stopped here.

import { BoughError } from "../base/errors.ts";
import type { NewMessage } from "../events/index.ts";
import { LiveSender } from "../live/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { Context } from "../sessions/context.ts";
import { ActiveTurn } from "./active-turn.ts";
import { complete, endBy, failureOf, type RunResult } from "./close.ts";
import type { RunPlan } from "./config.ts";
import { Emitter } from "./emit.ts";
import { Interrupted, Lost } from "./endings.ts";
import { loop } from "./loop.ts";
import { type OpenedTurn, openTurn } from "./open.ts";
import type { RunControl } from "./run.ts";

export interface Execution {
  readonly context: Context;
  readonly plan: RunPlan;
  readonly ref: BranchRef;
  readonly input: readonly NewMessage[] | undefined;
  readonly control: RunControl;
}

export async function execute(execution: Execution): Promise<RunResult> {
  const { context, plan, ref, input, control } = execution;
  const { controller, runId, mailbox } = control;
  const { stamp: agent, hub, clock } = plan;
  const emitter = new Emitter({ mailbox, hub, clock, routing: { ...ref, runId, agent } });
  let sender: LiveSender | undefined;
  try {
    const request = { context, plan, ref, runId, emitter, signal: controller.signal };
    const opened = await openTurn({ ...request, input });
    const { live: channel } = context.store;
    sender = channel && new LiveSender({ channel, ref, runId, clock });
    if (sender) emitter.sendTo(sender);
    emitter.enterTurn(opened.held.turnId);
    emitter.live({ type: "run-start", ...(opened.resumed && { resumed: true }) });
    let result = await work(execution, opened, emitter);
    // An answer that came while another call still ran found the branch held, so nobody else goes on with the turn.
    while (isAnswered(result)) {
      const again = await openTurn({ ...request, input: undefined }).catch(unlessTaken);
      if (!again) break;
      result = await work(execution, again, emitter);
    }
    const { status, reason, error } = result;
    const failure = error && { error: { message: error.message, code: error.code } };
    emitter.end({ type: "run-end", status, ...(reason !== undefined && { reason }), ...failure });
    return result;
  } finally {
    sender?.close();
    // Whatever still waits in this run's name stops waiting.
    controller.abort(new Interrupted("ended"));
  }
}

/** Parked for questions that all have their answers by now. */
function isAnswered({ status, reason, interactions = [] }: RunResult): boolean {
  return status === "parked" && reason === "question" && interactions.length === 0;
}

/** Somebody else took the turn up meanwhile, perhaps to its end. */
function unlessTaken(error: unknown): undefined {
  if (!BoughError.is(error, "run_active") && !BoughError.is(error, "nothing_to_resume")) throw error;
}

async function work(execution: Execution, opened: OpenedTurn, emitter: Emitter): Promise<RunResult> {
  const { context, plan, control } = execution;
  const { signal } = control.controller;
  opened.state.begin();
  const isListenedTo = () => control.isIterated() || plan.hub.isHeard;
  const abort = (reason: unknown) => control.controller.abort(reason);
  const turn = new ActiveTurn({ ...opened, context, plan, emitter, signal, isListenedTo, abort });
  void keepHeld(turn, control.controller);
  if (plan.limits.turnMs !== undefined) void limitTime(turn, control.controller, plan.limits.turnMs);
  try {
    if (signal.aborted) throw signal.reason;
    if (opened.refusal) throw opened.refusal.cause;
    return await complete(turn, await loop(turn));
  } catch (error) {
    return await endSafely(turn, signal.aborted ? signal.reason : error);
  } finally {
    turn.isOver = true;
  }
}

/** A turn that can't be ended, because the store fails or another run has the branch, is left as it is: open, to be resumed. */
async function endSafely(turn: ActiveTurn, cause: unknown): Promise<RunResult> {
  try {
    return await endBy(turn, BoughError.is(cause, "epoch_stale") ? new Lost(cause) : cause);
  } catch (error) {
    return await endBy(turn, new Lost(BoughError.is(error, "epoch_stale") ? error : failureOf(cause)));
  }
}

/** How long a run works before it listens to what others write on its branch: most are over by then. */
const listenAfterMs = 100;

/** Renews the hold on the branch while the run works; a run that lost it stops. */
async function keepHeld(turn: ActiveTurn, controller: AbortController): Promise<void> {
  const { signal } = controller;
  const { clock } = turn.context;
  const { leaseMs } = turn.plan;
  const beatMs = leaseMs / 3;
  let due = clock.now() + beatMs;
  await clock.sleep(Math.min(listenAfterMs, beatMs), signal);
  if (signal.aborted || turn.isOver) return;
  turn.listen();
  for (; ; due = clock.now() + beatMs) {
    // Wherever the clock was set to meanwhile, a beat is no longer than that.
    await clock.sleep(Math.min(beatMs, due - clock.now()), signal);
    if (signal.aborted || turn.isOver) return;
    try {
      await turn.renew();
    } catch (error) {
      // Any other failure is tried again: the lease is three beats long.
      if (BoughError.is(error, "epoch_stale") && !signal.aborted) controller.abort(new Lost(error));
    }
  }
}

async function limitTime(turn: ActiveTurn, controller: AbortController, turnMs: number): Promise<void> {
  await turn.context.clock.sleep(turnMs, controller.signal);
  if (controller.signal.aborted) return;
  turn.emitter.live({ type: "limit-reach", limit: "turn-time", value: turnMs });
  controller.abort(new Interrupted("turn-time-limit"));
}
