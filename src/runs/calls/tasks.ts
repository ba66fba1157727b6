// Background work: it goes on after the call that began it has returned. Its beginning and its end are facts; a task
// without an end in the log, of a process that is gone, did not end.

import { encodeJson, type Json, outputLimits } from "../../base/json.ts";
import { taskStarted } from "../../events/drafts.ts";
import type { Draft } from "../../events/index.ts";
import { endTask } from "../../sessions/tasks.ts";
import { type Redacting, tellError } from "../redact-errors.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";

export interface TaskRequest {
  readonly name: string;
  readonly callId: string;
  readonly work: (signal: AbortSignal) => Promise<Json | undefined>;
}

/** How a task ended, as its fact says it. */
type TaskEnd = Pick<Draft<"task.ended">, "status" | "output" | "error">;

export async function startTask(turn: ActiveTurn, { name, callId, work }: TaskRequest): Promise<string> {
  const { turnId, held, plan, context } = turn;
  const owner = context.owner();
  const started = taskStarted(context, turnId, { name, callId, runId: held.runId, owner });
  await turn.write(started);
  const cancelled = new AbortController();
  const signal = AbortSignal.any([plan.tasks.signal, cancelled.signal]);
  const end = Promise.race([endOf(work, signal, plan), calledOff(signal)]);
  // When its branch is deleted or the store closed, there is no log left for its end to be in: that may fail.
  const written = end.then((how) => writeEnd(turn, started.id, how));
  plan.tasks.track(written, { taskId: started.id, cancel: () => cancelled.abort() });
  return started.id;
}

/** Never rejects; an output that the log can't take is a failure. */
async function endOf(work: TaskRequest["work"], signal: AbortSignal, redacting: Redacting): Promise<TaskEnd> {
  try {
    const output = await work(signal);
    if (output === undefined) return { status: "completed" };
    encodeJson(output, "The output of a task", outputLimits);
    return { status: "completed", output };
  } catch (error) {
    return { status: "failed", error: { ...tellError(redacting, error) } };
  }
}

/** Does not wait for the work: a task that ignores its signal cannot block the close. */
function calledOff(signal: AbortSignal): Promise<TaskEnd> {
  return new Promise((resolve) => {
    const end = () => resolve({ status: "cancelled" });
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}

/** Nothing is written when the task was ended by others. */
async function writeEnd(turn: ActiveTurn, taskId: string, end: TaskEnd): Promise<void> {
  const { context, held, emitter, log } = turn;
  const facts = await endTask(context, held.ref, taskId, end);
  // While the run goes on, its log shows the fact in its place.
  if (emitter.isOver) emitter.kept(facts);
  else await log.catchUp();
}
