// The background tasks of a branch that have not ended.
//   Tasks-1. A task is on the branch from `task.started` to `task.ended`, whatever becomes of the turn that began it.
//   Tasks-2. The list is replaced, never changed in place: views share it.

import type { Fact, OpenTask } from "../events/index.ts";
import type { BranchView } from "./view.ts";

export function foldTaskStarted(view: BranchView, fact: Fact<"task.started">): void {
  const { id, seq, at: startedAt, name, turnId, callId, runId, child, owner, notify } = fact;
  const { by, request, runs = [] } = view.open?.id === turnId ? view.open : {};
  const agentId = runs.at(-1)?.agentId;
  const task: OpenTask = {
    id,
    name,
    turnId,
    ...(callId && { callId }),
    ...(runId && { runId }),
    startedAt,
    seq,
    ...(child && { child }),
    ...(owner && { owner }),
    ...(notify && { notify }),
    ...(agentId !== undefined && { agentId }),
    ...(by !== undefined && { by }),
    ...(request && { request }),
  };
  view.tasks = [...view.tasks, Object.freeze(task)];
}

export function dropTask(view: BranchView, taskId: string): void {
  if (view.tasks.some(({ id }) => id === taskId)) view.tasks = view.tasks.filter(({ id }) => id !== taskId);
}

/** Tasks whose beginning is shown no more go on, but the branch is not told of their end. */
export function cutTasks(view: BranchView, isCut: (task: OpenTask) => boolean): void {
  if (!view.tasks.some(isCut)) return;
  view.tasks = view.tasks.map((task) => (isCut(task) ? Object.freeze({ ...task, isCut: true as const }) : task));
}
