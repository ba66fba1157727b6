// Children: what a run and the runs that it starts know of each other. The room that starts runs (agent/) also starts
// children; a run only asks for one and waits for it.

import { freezeJson } from "../base/json.ts";
import type { AgentStamp } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { Child, Spawn } from "../tools/index.ts";
import type { Emitter } from "./emit.ts";

/** The run that a child works for. */
export interface ParentRun extends BranchRef {
  readonly turnId: string;
  readonly runId: string;
  /** The call that asked for the child. */
  readonly callId: string;
  readonly agent: AgentStamp;
  /** Forwards the child's events to the parent's readers. */
  readonly emitter: Emitter;
  /** Aborts when the parent's run ends, however it ends. */
  readonly signal: AbortSignal;
}

/** Runs a child to its end. Rejects with `Parked` when the child is parked: then the parent's call waits, too. */
export type SpawnChild = (parent: ParentRun, ...child: Parameters<Spawn>) => Promise<Child>;

/** The stamp of an agent that works for another: the chain of agents from the root, and how deep it is. */
export function stampBelow(parent: AgentStamp, own: AgentStamp): AgentStamp {
  return freezeJson({ ...own, chain: [...parent.chain, ...own.chain], depth: parent.depth + 1 });
}
