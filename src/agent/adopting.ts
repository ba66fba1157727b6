// Adopting: runs of children that no call waits for, by the agent at the root of their chain. Background children go on after
// the process that began them; others are those whose parent's turn is over.

import type { AgentStamp } from "../events/index.ts";
import { eventMailbox, type Hub } from "../live/index.ts";
import type { ParentRun, ParentStamp } from "../runs/children/port.ts";
import { Emitter } from "../runs/emit.ts";
import type { AgentSettings, InterruptedRun, Run, RunOptions } from "../runs/index.ts";
import { interruptRun } from "../runs/interrupt.ts";
import type { Context } from "../sessions/context.ts";
import { findKin } from "./kin.ts";
import type { Startable } from "./startable.ts";
import type { TaskKeeper } from "./task-keeper.ts";

export interface AdoptingOptions {
  readonly context: Context;
  readonly settings: AgentSettings;
  readonly hub: Hub;
  readonly keeper: TaskKeeper;
  /** This agent, and those that its turns can be handed over to, with the ids under which they work. */
  agents(): Promise<readonly { readonly agent: Startable; readonly id: string }[]>;
  startable(agent: object): Startable | undefined;
  /** The agent that the program has under an id. */
  resolve(agentId: string): Promise<object | undefined>;
}

/** The run that goes on with a child's turn; undefined when this agent doesn't know the child's, or nobody would hear of it. */
export async function adopt(options: AdoptingOptions, left: InterruptedRun, run: RunOptions): Promise<Run | undefined> {
  const { agentId, sessionId, branchId, parent } = left;
  if (agentId === undefined || !parent) return undefined;
  const { context, settings, keeper } = options;
  const ref = { sessionId, branchId };
  const above = { sessionId: parent.sessionId, branchId: parent.branchId };
  const taskId = parent.awaited ? undefined : await taskOf(context, left, parent);
  if (!parent.awaited && taskId === undefined) {
    // The call that began it has no result, and never will.
    await interruptRun(context, ref, { reason: "parent-ended" });
    return undefined;
  }
  const kin = await kinOf(options, agentId);
  if (!kin) return undefined;
  const { launcher, name = "agent" } = kin.agent;
  const place = Promise.resolve({ context, ref });
  const stamp = { id: kin.id, name, chain: [name], depth: 0 };
  const onAsk = () => {
    if (taskId !== undefined) keeper.look(above, taskId);
  };
  const adopted = launcher.launch(undefined, run, {
    fallback: "park",
    place,
    stamp,
    parent: absentParent({ settings, hub: options.hub, parent, onAsk }),
  });
  adopted.discardEvents();
  adopted.result.catch(() => {});
  if (taskId !== undefined) keeper.follow(above, { taskId, child: ref }, adopted);
  return adopted;
}

/** The task that the child works on, by its parent's log. */
async function taskOf(
  context: Context,
  { turnId }: InterruptedRun,
  { sessionId, branchId }: ParentStamp,
): Promise<string | undefined> {
  const { view } = await context.views.loadForRun({ sessionId, branchId });
  return view.tasks.find(({ child }) => child?.turnId === turnId)?.id;
}

async function kinOf({ agents, startable, resolve }: AdoptingOptions, agentId: string) {
  for (const { agent, id: above } of await agents()) {
    const { tools } = await agent.launcher.prepared();
    const found = await findKin(tools.values(), { id: agentId, above }, startable);
    if (found) return found;
  }
  const stored = await resolve(agentId);
  const agent = stored && startable(stored);
  return agent && { agent, id: agentId };
}

/** The run that began the child, in its absence: its readers are those of its branch. */
function absentParent({
  settings,
  hub,
  parent,
  onAsk,
}: {
  settings: AgentSettings;
  hub: Hub;
  parent: ParentStamp;
  onAsk: () => void;
}): ParentRun {
  const { sessionId, branchId, chain, depth, rootId } = parent;
  const agent: AgentStamp = { ...(rootId !== undefined && { id: rootId }), chain: [...chain], depth: depth - 1 };
  const mailbox = eventMailbox();
  mailbox.leave();
  const { clock, events, limits, leaving } = settings;
  return {
    agent,
    rootId,
    emitter: new Emitter({ mailbox, hub, clock, events, routing: { sessionId, branchId, agent } }),
    maxDepth: limits.maxDepth,
    leaving,
    isListenedTo: () => hub.isHeard,
    see: (fact) => {
      if (fact.type.startsWith("interaction.")) onAsk();
    },
    tokenLimit: () => undefined,
    track: () => {},
  };
}
