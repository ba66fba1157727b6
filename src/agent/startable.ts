// Startable: what one agent knows of another that it starts, or hands a turn over to.

import { BoughError } from "../base/errors.ts";
import type { AgentStamp } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { ModelChoice } from "../models/index.ts";
import type { ChildOpening, ParentRun, PromptFrame } from "../runs/children/port.ts";
import type { Execution } from "../runs/execute.ts";
import type { AgentSettings, KeptTurn, Run, RunInput, RunOptions, RunPlan } from "../runs/index.ts";
import type { Context } from "../sessions/context.ts";
import type { PermissionRule, SpawnableAgent, Tool } from "../tools/index.ts";

/** Where a run takes place. */
export interface Place {
  readonly context: Context;
  readonly ref: BranchRef;
}

export interface LaunchOptions {
  /** What to do with questions when neither the caller nor the turn says. */
  readonly fallback?: "park" | undefined;
  /** The run that this one is a child of. */
  readonly parent?: ParentRun | undefined;
  /** The agent's own stamp as a child, if it is one. */
  readonly stamp?: AgentStamp;
  /** Where the run takes place, if the options don't say. */
  readonly place?: Promise<Place>;
  /** What prompts begin with, if not with the agent's own. */
  readonly frame?: PromptFrame;
  /** How the turn begins, if the run's parent says so. */
  readonly opening?: ChildOpening;
  /** How the branch is taken, if it is not begun or resumed at any rate. */
  readonly takes?: Execution["takes"];
}

/** How a turn was asked, and by whose bounds, that an agent goes on with. */
export interface HandedTurn {
  readonly kept: KeptTurn | undefined;
  readonly fallback: "park" | undefined;
  /** The settings of the agent that began it. */
  readonly first: AgentSettings;
  readonly stamp: AgentStamp;
}

/** What runs an agent's turns. */
export interface AgentLauncher {
  launch(input: RunInput | undefined, options: RunOptions, given?: LaunchOptions): Run;
  prepared(): Promise<{ readonly tools: ReadonlyMap<string, Tool> }>;
  planHanded(options: RunOptions, turn: HandedTurn): Promise<RunPlan>;
}

/** What is known of an agent that may be a child. */
export interface Startable {
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** Whether it was made with a store of its own. */
  readonly hasStore: boolean;
  readonly model: ModelChoice;
  readonly instructions: string | undefined;
  readonly handoffs: Handoffs | undefined;
  readonly launcher: AgentLauncher;
}

/** An agent to hand over to; a function for one that is made later. */
export type HandoffTarget = SpawnableAgent | (() => SpawnableAgent);

/** How a turn is handed over. */
export interface HandoffOptions {
  readonly agent: HandoffTarget;
  /** What the model reads about the tool (default: its name). */
  readonly description?: string;
  /** Whether later turns of the branch begin with that agent (default false). */
  readonly stay?: boolean;
  /** Whether a person must allow it (default false). */
  readonly permission?: PermissionRule;
}

/** Agents that a turn can be handed over to, by name. */
export type Handoffs = Readonly<Record<string, HandoffTarget | HandoffOptions>>;

/** A store of its own would be ignored, which is nothing to guess about. */
export function refuseStore({ hasStore, name, id }: Pick<Startable, "hasStore" | "name" | "id">): void {
  if (!hasStore) return;
  const which = name ?? id;
  const sentence = `The agent ${which === undefined ? "" : `"${which}" `}has a store of its own; a child works in its parent's store. Create it without \`store\`.`;
  throw new BoughError("invalid_argument", sentence);
}

export function notAnAgent(): BoughError {
  return new BoughError("invalid_argument", "A child must be an agent made by createAgent, or the id of an agent.");
}
