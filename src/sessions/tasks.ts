// The background tasks of a branch. A task is a fact from its beginning to its end, whichever process does the work.
//   SessionsTasks-1. A task has one end: its id follows from the task's, and it is written only while the view has the task.
//   SessionsTasks-2. The row's header has the number of tasks that have not ended, so that `listOpen` finds the branch.

import { BoughError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { taskEnded } from "../events/drafts.ts";
import type { Draft, Fact, OpenTask } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { RowHeader } from "../projection/header.ts";
import type { BranchView } from "../projection/index.ts";
import { resolveBranch } from "./branches.ts";
import type { Context, Scope } from "./context.ts";
import { onNewest } from "./on-newest.ts";

/** A background task that has not ended. */
export interface TaskInfo {
  readonly taskId: string;
  readonly name: string;
  /** "waiting": its agent has asked a person. */
  readonly status: "running" | "waiting";
  readonly startedAt: number;
  readonly turnId: string;
  readonly callId?: string;
  /** Where its agent works; absent for a function. */
  readonly child?: { readonly sessionId: string; readonly branchId: string; readonly turnId: string };
}

/** The tasks of the branch that have not ended, oldest first. */
export async function listTasks(context: Context, scope: Scope): Promise<readonly TaskInfo[]> {
  const ref = await resolveBranch(context, scope);
  const { view } = await context.views.loadForRun(ref);
  return Promise.all(view.tasks.map((task) => describeTask(context, task)));
}

async function describeTask(context: Context, { id, name, startedAt, turnId, callId, child }: OpenTask) {
  return {
    taskId: id,
    name,
    status: child && (await isAsking(context, child)) ? ("waiting" as const) : ("running" as const),
    startedAt,
    turnId,
    ...(callId !== undefined && { callId }),
    ...(child && { child }),
  };
}

async function isAsking({ store }: Context, { sessionId, branchId }: BranchRef): Promise<boolean> {
  const record = await store.getBranch({ sessionId, branchId });
  return ((record?.header as RowHeader | undefined)?.asks?.length ?? 0) > 0;
}

/** How a task ends, as its fact says it. */
export type TaskEnding = Omit<Draft<"task.ended">, "id" | "at" | "type" | "taskId">;

/**
 * Writes a task's end, with what `more` adds to it, unless it has ended (SessionsTasks-1): then nothing is written and nothing
 * returned.
 */
export async function endTask(
  context: Context,
  ref: BranchRef,
  taskId: string,
  ending: TaskEnding,
  more: (view: BranchView, task: OpenTask) => readonly Draft[] = () => [],
): Promise<readonly Fact[]> {
  return onNewest(context, ref, (view) => {
    const task = view.tasks.find(({ id }) => id === taskId);
    return task ? [taskEnded(context, { taskId, ...ending }), ...more(view, task)] : [];
  });
}

/** A task in the log: its beginning, and its end if it has one. */
export interface FoundTask {
  readonly started: Pick<OpenTask, "id" | "name" | "startedAt" | "child">;
  readonly ended?: Fact<"task.ended">;
}

/** How many facts are searched for a task that has ended. */
const lookBack = 10_000;

/** A task of the branch; `task_not_found` when it never had it. */
export async function findTask(context: Context, ref: BranchRef, taskId: string): Promise<FoundTask> {
  checkId(taskId, "task");
  const { view } = await context.views.loadForRun(ref);
  const open = view.tasks.find(({ id }) => id === taskId);
  if (open) return { started: open };
  let ended: Fact<"task.ended"> | undefined;
  for await (const { facts } of context.journal.pieces(ref, { reverse: true, limit: lookBack })) {
    for (const fact of facts) {
      if (fact.type === "task.ended" && fact.taskId === taskId) ended = fact;
      if (fact.type !== "task.started" || fact.id !== taskId) continue;
      const { id, name, at: startedAt, child } = fact;
      const started = { id, name, startedAt, ...(child && { child }) };
      // A fork has the beginnings of tasks that report to its parent.
      if (ended) return { started, ended };
    }
  }
  const sentence = `Branch "${ref.branchId}" has no task "${taskId}".`;
  throw new BoughError("task_not_found", sentence, { data: { ...ref, taskId } });
}

/** The refusal of what only a task that goes on can take. */
export function taskOver(ref: BranchRef, taskId: string): BoughError {
  return new BoughError("task_ended", `Task "${taskId}" has ended.`, { data: { ...ref, taskId } });
}
