// Kin: the agents that an agent has as subagents, and those that these have. A child whose parent's turn is over is resumed by
// the agent at the root of its chain, which finds the child's agent here.

import { BoughError } from "../base/errors.ts";
import type { ModelChoice } from "../models/index.ts";
import type { NotifyRule } from "../runs/children/port.ts";
import type { Tool, ToolSet, ToolSource } from "../tools/index.ts";
import type { Startable } from "./startable.ts";

type Execute = (...args: never[]) => unknown;

/** What a tool that `subagent` made runs. */
interface Subagent {
  readonly agent: object;
  /** Whether its prompts begin with its parent's. */
  readonly isFramed: boolean;
  /** Decides what is told of the ends of its background children. */
  readonly rule?: NotifyRule | undefined;
}

/** The tools that `subagent` made, by what runs them. */
const subagents = new WeakMap<Execute, Subagent>();

export function rememberSubagent(execute: Execute, made: Subagent): void {
  subagents.set(execute, made);
}

/** The rule that a tool has for the ends of its background children. */
export function ruleOf(tool: Tool | undefined): NotifyRule | undefined {
  return tool?.execute && subagents.get(tool.execute as Execute)?.rule;
}

/** Refuses a subagent whose prompts are to begin with those of an agent with another model. */
export function checkFrames(
  sets: readonly (ToolSet | ToolSource)[],
  model: ModelChoice,
  startable: (agent: object) => Startable | undefined,
): void {
  for (const tools of sets) {
    for (const [name, tool] of Object.entries(tools)) {
      const made = subagents.get(Object(tool).execute);
      const child = made?.isFramed && startable(made.agent);
      if (!child || isSameModel(child.model, model)) continue;
      const sentence = `The subagent "${name}" has prompt: "parent" and another model than its parent; providers cache by model.`;
      throw new BoughError("invalid_argument", sentence, { data: { tool: name } });
    }
  }
}

function isSameModel(a: ModelChoice, b: ModelChoice): boolean {
  if (a === b) return true;
  if (typeof a === "string" || typeof b === "string") return false;
  return a.provider === b.provider && a.modelId === b.modelId;
}

/** An agent as it is known to those that start it. */
export interface Kin {
  readonly agent: Startable;
  /** The id under which its turns are kept. */
  readonly id: string;
}

/** The agent of an id, among the subagents of these tools and theirs. */
export async function findKin(
  tools: Iterable<Tool>,
  wanted: { readonly id: string; readonly above: string },
  startable: (agent: object) => Startable | undefined,
  depth = 3,
): Promise<Kin | undefined> {
  for (const { execute } of tools) {
    const made = execute && subagents.get(execute as Execute);
    const agent = made && startable(made.agent);
    if (!agent) continue;
    const id = agent.id ?? `${wanted.above}/${agent.name ?? "agent"}`;
    if (id === wanted.id) return { agent, id };
    if (depth <= 1) continue;
    const below = await agent.launcher.prepared();
    const found = await findKin(below.tools.values(), { id: wanted.id, above: id }, startable, depth - 1);
    if (found) return found;
  }
  return undefined;
}
