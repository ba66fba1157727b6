// Background work: it goes on after the call that began it has returned. Its beginning and its end are facts; a task
// without an end in the log, of a process that is gone, did not end.

import { BoughError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { Draft } from "../events/index.ts";
import { describeError } from "../models/index.ts";
import type { ActiveTurn } from "./active-turn.ts";

export interface TaskRequest {
  readonly name: string;
  readonly callId: string;
  readonly work: (signal: AbortSignal) => Promise<Json | undefined>;
}

export async function startTask(turn: ActiveTurn, { name, callId, work }: TaskRequest): Promise<string> {
  const { turnId, held, plan } = turn;
  const stamp = turn.stamp();
  await turn.write({ ...stamp, type: "task.started", turnId, name, callId, runId: held.runId });
  const { signal } = plan.tasks;
  const running = work(signal).then(
    (output) => (signal.aborted ? { status: "cancelled" } : { status: "completed", ...(output !== undefined && { output }) }),
    (error) => ({ status: signal.aborted ? "cancelled" : "failed", error: describeError(error) }),
  );
  plan.tasks.track(running.then((end) => endTask(turn, stamp.id, end)));
  return stamp.id;
}

async function endTask({ context, held, emitter }: ActiveTurn, taskId: string, end: object): Promise<void> {
  const draft = { id: context.ids.next(), at: context.clock.now(), type: "task.ended", taskId, ...end } as Draft;
  try {
    emitter.kept((await context.journal.append(held.ref, [draft])).facts);
  } catch (error) {
    // The branch was deleted, or the store closed: there is no log left for it to be in.
    if (!BoughError.is(error)) throw error;
  }
}
