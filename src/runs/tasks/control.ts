// What can be done with the background tasks of a branch: by a tool, or by a person.

import { sha256Hex } from "../../base/sha256.ts";
import type { OpenTask } from "../../events/index.ts";
import type { BranchRef } from "../../log/store.ts";
import type { Context } from "../../sessions/context.ts";
import { queueInput } from "../../sessions/queue.ts";
import { endTask, findTask, listTasks, taskOver } from "../../sessions/tasks.ts";
import type { TaskControl, TaskState } from "../../tools/index.ts";
import { lookAt } from "../children/look.ts";
import type { ActiveTurn } from "../turn/active-turn.ts";
import { lastWords, taskCancelled } from "./answer.ts";

/** How much of a text one look gives. */
const pieceLength = 50_000;

/** The tasks of a branch that have not ended, as `list` shows them. */
async function listStates(context: Context, ref: BranchRef): Promise<readonly TaskState[]> {
  const tasks = await listTasks(context, ref);
  return tasks.map(({ taskId, name, status, startedAt }) => ({ taskId, name, status, startedAt }));
}

async function checkTask(
  context: Context,
  ref: BranchRef,
  taskId: string,
  { from = 0 }: { readonly from?: number } = {},
): Promise<TaskState> {
  const { started, ended } = await findTask(context, ref, taskId);
  const { id, name, startedAt, child } = started;
  const known = { taskId: id, name, startedAt };
  const said = child ? await wordsOf(context, child) : { text: "", isAsking: false };
  const text = said.text.slice(from, from + pieceLength);
  const next = from + pieceLength < said.text.length ? { next: from + pieceLength } : {};
  const words = text === "" ? next : { text, ...next };
  if (!ended) return { ...known, status: said.isAsking ? "waiting" : "running", ...words };
  const { status, reason, error, output } = ended;
  return {
    ...known,
    status,
    ...words,
    ...(reason !== undefined && { reason }),
    ...(error && { error: { message: error.message } }),
    ...(output !== undefined && { output }),
  };
}

/** What the agent of a task said last, and whether it waits for a person. */
async function wordsOf(context: Context, { sessionId, branchId, turnId }: NonNullable<OpenTask["child"]>) {
  const state = await lookAt(context, { ref: { sessionId, branchId }, turnId });
  if (state.at === "closed") return { text: lastWords(state.view.messages, turnId), isAsking: false };
  if (state.at !== "open") return { text: "", isAsking: false };
  const { view } = await context.views.loadForRun({ sessionId, branchId });
  return {
    text: lastWords(view.open?.messages ?? [], turnId),
    isAsking: view.interactions.some((each) => each.turnId === turnId),
  };
}

/** Says something to the agent of a task before its next model call. */
async function messageTask(
  context: Context,
  ref: BranchRef,
  { taskId, text, inputId }: { taskId: string; text: string; inputId: string },
): Promise<void> {
  const { started, ended } = await findTask(context, ref, taskId);
  const { child } = started;
  if (ended || !child) throw taskOver(ref, taskId);
  const { sessionId, branchId, turnId } = child;
  const at = { sessionId, branchId };
  const { view } = await context.views.loadForRun(at);
  if (view.open?.id !== turnId) throw taskOver(ref, taskId);
  const agentId = view.open.runs.at(-1)?.agentId;
  await queueInput(context, at, text, { inputId, when: "steer", ...(agentId !== undefined && { agentId }) });
}

/** What a process does itself to end the work on a task. */
export interface TaskEnding {
  /** Ends a function of this process; false if there is none for the task. */
  endFunction(taskId: string): boolean;
  /** Interrupts a child, wherever it runs. */
  callOff(child: BranchRef, reason: string): Promise<void>;
}

/**
 * Ends a task. A child is interrupted wherever it runs; a function of another process goes on, and its result is dropped. `task_ended`,
 * `task_not_found`.
 */
export async function cancelTask(
  context: Context,
  ref: BranchRef,
  taskId: string,
  { endFunction, callOff }: TaskEnding,
): Promise<void> {
  const { started, ended } = await findTask(context, ref, taskId);
  if (ended) throw taskOver(ref, taskId);
  const { child } = started;
  if (child) return callOff(child, taskCancelled);
  if (endFunction(taskId)) return;
  const facts = await endTask(context, ref, taskId, { status: "cancelled", reason: taskCancelled });
  if (facts.length === 0) throw taskOver(ref, taskId);
}

/** The tasks of a turn's branch, for the tool of one call. */
export function taskControl(turn: ActiveTurn, callId: string): TaskControl {
  const { context, held } = turn;
  const { ref } = held;
  return {
    list: () => listStates(context, ref),
    check: (taskId, piece) => checkTask(context, ref, taskId, piece),
    message(taskId, text) {
      // A call that runs again says the same, once.
      const inputId = `say-${sha256Hex(JSON.stringify([turn.turnId, callId, taskId, text])).slice(0, 16)}`;
      return messageTask(context, ref, { taskId, text, inputId });
    },
    async cancel(taskId) {
      await cancelTask(context, ref, taskId, {
        endFunction: (id) => turn.plan.tasks.cancel(id),
        callOff: (child, reason) => turn.host.tasks.callOff(child, reason),
      });
      turn.host.tasks.look(ref, taskId);
    },
  };
}
