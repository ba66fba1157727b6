// Background work: it goes on after the call that began it has returned. Its beginning and its end are facts; a task
// without an end in the log, of a process that is gone, did not end.

import { encodeJson, type Json, outputLimits } from "../../base/json.ts";
import { taskEnded, taskStarted } from "../../events/drafts.ts";
import type { Draft } from "../../events/index.ts";
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
  const { turnId, held, plan } = turn;
  const started = taskStarted(turn.context, turnId, { name, callId, runId: held.runId });
  await turn.write(started);
  const { signal } = plan.tasks;
  const end = Promise.race([endOf(work, signal, plan), calledOff(signal)]);
  // When its branch is deleted or the store closed, there is no log left for its end to be in: that may fail.
  plan.tasks.track(end.then((how) => writeEnd(turn, started.id, how)));
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

async function writeEnd(turn: ActiveTurn, taskId: string, end: TaskEnd): Promise<void> {
  const { context, held, emitter, log } = turn;
  const { facts } = await context.journal.append(held.ref, [taskEnded(context, { taskId, ...end })]);
  // While the run goes on, its log shows the fact in its place.
  if (emitter.isOver) emitter.kept(facts);
  else await log.catchUp();
}
