// Children: what a run and the runs that it starts know of each other. The room that starts runs (agent/) also starts
// children; a run asks for one, waits for it, and looks after it.

import { freezeJson, type JsonObject } from "../../base/json.ts";
import type { AgentStamp, Fact, OpenTask, UnknownFact } from "../../events/index.ts";
import type { BranchRef } from "../../log/store.ts";
import type { BranchView } from "../../projection/index.ts";
import type { Context } from "../../sessions/context.ts";
import type { OwnedForkRequest } from "../../sessions/index.ts";
import type { SpawnableAgent, TaskNotify } from "../../tools/index.ts";
import type { RunInput, RunOptions, RunPlan } from "../config.ts";
import type { Emitter } from "../emit.ts";

/** The run that a child works for, as the child sees it. */
export interface ParentRun {
  readonly agent: AgentStamp;
  /** The id of the agent at the root of the chain. */
  readonly rootId: string | undefined;
  /** Forwards the child's events to the parent's readers. */
  readonly emitter: Emitter;
  /** How deep a chain of agents may be. */
  readonly maxDepth: number;
  /** Aborts when the parent's agent is about to close. */
  readonly leaving: AbortSignal;
  /** Whether a question could be answered. */
  isListenedTo(): boolean;
  /** Told of every fact of the child's turn, in the order of the log; those of earlier runs first. */
  see(fact: Fact | UnknownFact): void;
  /** The limit of tokens that the run, or one that it works for, has reached. */
  tokenLimit(): number | undefined;
  /** From now on the child tells what it and its own children have used so far. */
  track(tokens: () => number): void;
}

/** What a prompt begins with. */
export type PromptFrame = Pick<RunPlan, "model" | "instructions" | "toolSpecs">;

/** A child that a run has started, or found again. */
export interface StartedChild extends BranchRef {
  readonly turnId: string;
  readonly callId: string;
  readonly agent: AgentStamp;
}

/** How a child's turn begins: once, whoever begins it. */
export interface ChildOpening {
  readonly turnId: string;
  /** Throws when the turn must not begin on this view. */
  check(view: BranchView): void;
}

/** Where and how a child runs. */
export interface ChildStart {
  readonly context: Context;
  readonly ref: BranchRef;
  readonly parent: ParentRun;
  readonly options: RunOptions;
  /** What the child's prompt begins with, if not with its own. */
  readonly frame?: PromptFrame;
  /** For a turn that is to begin; absent to resume it. */
  readonly opening?: ChildOpening;
}

/** The handle of a child's run, as its parent uses it. */
export interface ChildRun {
  /** Resolves when the child's turn is in the log. */
  readonly started: Promise<unknown>;
  whenOver(): Promise<void>;
  readonly result: Promise<{ readonly status: string; readonly reason?: string }>;
  discardEvents(): void;
  interrupt(reason?: string): Promise<void>;
  park(): Promise<void>;
}

/** An agent that is ready to run as a child. */
export interface ChildAgent {
  readonly name: string;
  /** The id under which its turns are kept. */
  readonly id: string;
  readonly source: "inline" | "stored";
  readonly instructions: string | undefined;
  launch(input: RunInput | undefined, start: ChildStart): ChildRun;
}

/** Finds agents for calls that want to spawn one, and forks branches for them as the parent's agent does. */
export interface ChildHost {
  /** Refuses what is no agent, or none that could work in the parent's store. */
  find(agent: SpawnableAgent, parent: AgentStamp): Promise<ChildAgent>;
  fork(context: Context, source: BranchRef, request: OwnedForkRequest): Promise<unknown>;
  readonly tasks: TaskHost;
}

/** Looks after the background children of a branch. None of it is waited for: what fails is found again by recovery. */
export interface TaskHost {
  /** A child was begun: its end is written on the branch when it comes. */
  keep(ref: BranchRef, task: BegunTask): void;
  /** Something may have become of a task: its child has ended, or asks. */
  look(ref: BranchRef, taskId: string): void;
  /** Ends a child that nobody would hear of. */
  callOff(child: BranchRef, reason: string): Promise<void>;
}

/** A background child that was begun, or found again. */
export interface BegunTask {
  readonly taskId: string;
  readonly name: string;
  readonly child: NonNullable<OpenTask["child"]>;
  readonly notify: NonNullable<OpenTask["notify"]>;
  /** Decides about its end, as long as this process lives. */
  readonly rule: NotifyRule | undefined;
  /** Its run, if it is one of this process. */
  readonly run: ChildRun | undefined;
}

/** A function that decides what is told of an end. */
export type NotifyRule = Extract<TaskNotify, (...args: never[]) => unknown>;

/** The stamp of an agent that works for another: the chain of agents from the root, and how deep it is. */
export function stampBelow(parent: Pick<AgentStamp, "chain" | "depth">, own: AgentStamp): AgentStamp {
  return freezeJson({ ...own, chain: [...parent.chain, ...own.chain], depth: parent.depth + 1 });
}

/** What a child's turn keeps of the call that it works for, in its metadata under `parent`. */
export interface ParentStamp {
  readonly sessionId: string;
  readonly branchId: string;
  readonly turnId: string;
  readonly callId: string;
  /** The id of the agent at the root of the chain, which has the child among its subagents or theirs. */
  readonly rootId?: string;
  /** The chain of agents above the child, root first. */
  readonly chain: readonly string[];
  /** The child's own depth. */
  readonly depth: number;
  /** Whether the parent's call waits for the child. */
  readonly awaited: boolean;
}

/** The call that a turn works for; undefined for a turn of its own. */
export function parentOf(metadata: JsonObject | undefined): ParentStamp | undefined {
  const parent = metadata?.parent as Partial<ParentStamp> | undefined;
  const isStamp =
    typeof parent === "object" &&
    [parent?.sessionId, parent?.branchId, parent?.turnId, parent?.callId].every((id) => typeof id === "string") &&
    Array.isArray(parent?.chain) &&
    typeof parent?.depth === "number";
  return isStamp ? (parent as ParentStamp) : undefined;
}
