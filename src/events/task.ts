// Background tasks: work that goes on after the call that began it has returned.

import * as v from "valibot";
import type { TurnRequest } from "./request.ts";

/** Which ends of a task its branch is told of; "custom" when a function of the program decides. */
export const notifySchema = v.picklist(["completed", "failed", "all", "none", "custom"]);

/** A task of a branch that has not ended. */
export interface OpenTask {
  readonly id: string;
  /** The name of the tool, or the one that the tool gave it. */
  readonly name: string;
  /** The turn that began it. */
  readonly turnId: string;
  readonly callId?: string;
  readonly runId?: string;
  readonly startedAt: number;
  /** Where it stands in the log. */
  readonly seq: number;
  /** The child that does the work: its turn on a branch of its own. */
  readonly child?: { readonly sessionId: string; readonly branchId: string; readonly turnId: string };
  /** The process that does it, if it is a function. */
  readonly owner?: string;
  readonly notify?: v.InferOutput<typeof notifySchema>;
  /** How the turn was asked that began it: so is the one that its end begins. */
  readonly agentId?: string;
  readonly by?: string;
  readonly request?: TurnRequest;
  /** The branch shows its beginning no more: that was reverted or discarded. */
  readonly isCut?: true;
}
