// ChildAgents: which agents a run may start, and how they run in the store of the run that starts them.
//   ChildAgents-1. A child works in its parent's store and context, whatever agent it is.
//   ChildAgents-2. A child's turns are kept under an id of its own, so that no other agent takes them for its own.

import { BoughError } from "../base/errors.ts";
import type { AgentStamp } from "../events/index.ts";
import type { BranchRef } from "../log/store.ts";
import type { ChildAgent, ChildHost, TaskHost } from "../runs/children/port.ts";
import type { Context } from "../sessions/context.ts";
import type { OwnedForkRequest } from "../sessions/index.ts";
import type { SpawnableAgent } from "../tools/index.ts";
import { notAnAgent, refuseStore, type Startable } from "./startable.ts";

export interface ChildAgentsOptions {
  /** What is behind an agent object; undefined for anything else. */
  startable(agent: object): Startable | undefined;
  /** The agent that the program has under an id. */
  resolve(agentId: string): Promise<object | undefined>;
  fork(context: Context, source: BranchRef, request: OwnedForkRequest): Promise<unknown>;
  readonly tasks: TaskHost;
}

export class ChildAgents implements ChildHost {
  readonly #options: ChildAgentsOptions;

  constructor(options: ChildAgentsOptions) {
    this.#options = options;
  }

  get tasks(): TaskHost {
    return this.#options.tasks;
  }

  async find(given: SpawnableAgent, parent: AgentStamp): Promise<ChildAgent> {
    const { startable, resolve } = this.#options;
    const agent = typeof given === "string" ? await resolve(given) : given;
    if (!agent) throw unknownAgent(String(given));
    const found = startable(agent);
    if (!found) throw notAnAgent();
    if (typeof given !== "string") refuseStore(found);
    const { launcher } = found;
    const name = found.name ?? found.id ?? "agent";
    const id = found.id ?? idBelow(parent, name);
    return {
      name,
      id,
      source: typeof given === "string" ? "stored" : "inline",
      instructions: found.instructions,
      launch: (input, { context, ref, parent, options, frame, opening }) =>
        launcher.launch(input, options, {
          parent,
          stamp: { id, name, chain: [name], depth: 0 },
          place: Promise.resolve({ context, ref }),
          ...(frame && { frame }),
          ...(opening && { opening }),
        }),
    };
  }

  fork(context: Context, source: BranchRef, request: OwnedForkRequest): Promise<unknown> {
    return this.#options.fork(context, source, request);
  }
}

/** ChildAgents-2. */
function idBelow({ id, chain }: Pick<AgentStamp, "id" | "chain">, name: string): string {
  return `${id ?? chain.at(-1) ?? "agent"}/${name}`;
}

function unknownAgent(agentId: string): BoughError {
  return new BoughError("agent_not_found", `There is no agent "${agentId}".`, { data: { agentId } });
}
