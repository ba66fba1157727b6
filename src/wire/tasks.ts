import type { OpenTask } from "../events/task.ts";

/** A background task of a branch that has not ended, as clients see it: without how the turn was asked that began it. */
export interface OpenTaskBody {
  readonly taskId: string;
  readonly name: string;
  readonly startedAt: number;
  readonly turnId: string;
  readonly callId?: string;
  /** Where its agent works; absent for a function. */
  readonly child?: { readonly sessionId: string; readonly branchId: string; readonly turnId: string };
}

/** The same, with what it does. */
export interface TaskBody extends OpenTaskBody {
  /** "waiting": its agent has asked a person. */
  readonly status: "running" | "waiting";
}

export function openTaskBody({ id: taskId, name, startedAt, turnId, callId, child }: OpenTask): OpenTaskBody {
  return { taskId, name, startedAt, turnId, ...(callId !== undefined && { callId }), ...(child && { child }) };
}
