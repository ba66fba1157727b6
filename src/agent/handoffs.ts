// Handoffs of an agent: which other agents its turns can go on with, and how a path of them leads to one.
//   AgentHandoffs-1. Only agents that are named can be reached. A path is names, so it is resolved where the turn goes on.
//   AgentHandoffs-2. What bounds a turn is that of the agent which began it: limits, permission mode, lease, when it is saved. What is said
//       and done in it is the other agent's: model, instructions, tools, middleware, settings.

import { BoughError } from "../base/errors.ts";
import { checkOptions, flag, type OptionCheck, optionTable, text } from "../base/options.ts";
import type { AgentStamp } from "../events/index.ts";
import { mergeRequests } from "../projection/request.ts";
import { handoffTool } from "../runs/handoffs.ts";
import type { AgentSettings, KeptTurn, RunConfig, RunOptions, RunPlan } from "../runs/index.ts";
import type { SpawnableAgent, ToolSet } from "../tools/index.ts";
import {
  type HandoffOptions,
  type Handoffs,
  type HandoffTarget,
  notAnAgent,
  refuseStore,
  type Startable,
} from "./startable.ts";

export interface HandoffFinder {
  startable(agent: object): Startable | undefined;
  /** The agent that the program has under an id. */
  resolve(agentId: string): Promise<object | undefined>;
}

const anything: OptionCheck = { fits: () => true, wanted: "" };
const handoffTable = optionTable<HandoffOptions>({
  agent: anything,
  description: text,
  stay: flag,
  permission: anything,
});

/** Refuses handoffs that could not be made. */
export function checkHandoffs(handoffs: Handoffs = {}, startable: HandoffFinder["startable"]): void {
  for (const [name, given] of Object.entries(handoffs)) {
    if (!/^[a-zA-Z0-9_-]{1,48}$/.test(name)) {
      throw new BoughError("invalid_argument", `The handoff "${name}" needs a name of letters, digits, "_" and "-".`);
    }
    const { agent } = readHandoff(given, startable);
    if (typeof agent !== "object" || agent === null) continue;
    const found = startable(agent);
    if (!found) throw notAnAgent();
    refuseStore(found);
  }
}

function readHandoff(given: HandoffTarget | HandoffOptions, startable: HandoffFinder["startable"]): HandoffOptions {
  if (typeof given !== "object" || given === null || startable(given)) return { agent: given as HandoffTarget };
  if (!("agent" in given)) throw notAnAgent();
  checkOptions("A handoff", given, handoffTable);
  return given as HandoffOptions;
}

/** The tools of an agent's handoffs. */
export function handoffTools(handoffs: Handoffs = {}, startable: HandoffFinder["startable"]): ToolSet {
  const made = Object.entries(handoffs).map(([name, given]) => {
    const {
      description = `Hands the conversation over to ${name}.`,
      stay = false,
      permission = false,
    } = readHandoff(given, startable);
    return [`handoff_to_${name}`, handoffTool({ name, stay, description, permission })] as const;
  });
  return Object.fromEntries(made) as ToolSet;
}

/** The agents along a path, the first one excluded; `agent_not_found` where it leads nowhere. */
export async function followPath(
  first: Startable,
  path: readonly string[],
  { startable, resolve }: HandoffFinder,
): Promise<readonly Startable[]> {
  const agents: Startable[] = [];
  for (const name of path) {
    const { handoffs = {} } = agents.at(-1) ?? first;
    const given = Object.hasOwn(handoffs, name) ? handoffs[name] : undefined;
    const target = given && targetOf(readHandoff(given, startable));
    const agent = typeof target === "string" ? await resolve(target) : target;
    const found = agent && startable(agent);
    if (!found) {
      const sentence = `The turn was handed over to "${name}", which the agent has no handoff for.`;
      throw new BoughError("agent_not_found", sentence, { data: { agent: name, path: [...path] } });
    }
    if (typeof target !== "string" && found.launcher !== first.launcher) refuseStore(found);
    agents.push(found);
  }
  return agents;
}

/** The agents that turns of an agent can be handed over to, each once, with the ids that their stamps have. */
export async function handedAgents(
  first: Startable,
  { id, name }: Pick<AgentStamp, "id" | "name">,
  { startable, resolve }: HandoffFinder,
): Promise<readonly { readonly agent: Startable; readonly id: string }[]> {
  const above = id ?? name ?? "agent";
  const found: { agent: Startable; id: string }[] = [];
  for (let open: readonly Startable[] = [first]; open.length > 0; ) {
    const next: Startable[] = [];
    for (const { handoffs = {} } of open) {
      for (const [handoff, given] of Object.entries(handoffs)) {
        const target = targetOf(readHandoff(given, startable));
        const agent = typeof target === "string" ? await resolve(target) : target;
        const known = agent && startable(agent);
        const isNew =
          known && ![first, ...found.map((each) => each.agent)].some((each) => each.launcher === known.launcher);
        if (!isNew) continue;
        found.push({ agent: known, id: known.id ?? `${above}/${known.name ?? handoff}` });
        next.push(known);
      }
    }
    open = next;
  }
  return found;
}

function targetOf({ agent }: HandoffOptions): SpawnableAgent {
  return typeof agent === "function" ? (agent as () => SpawnableAgent)() : agent;
}

/** The path to a handoff of the last agent of a path: shorter if it leads to one that is on it. */
export function pathTo(
  { first, agents, path }: { first: Startable; agents: readonly Startable[]; path: readonly string[] },
  name: string,
  { startable }: Pick<HandoffFinder, "startable">,
): readonly string[] {
  const all = [first, ...agents];
  const given = all.at(-1)!.handoffs?.[name];
  const target = given && targetOf(readHandoff(given, startable));
  const found = typeof target === "object" ? startable(target) : undefined;
  const at = all.findIndex(({ launcher, id }) => (found ? found.launcher === launcher : id === target));
  return at < 0 ? [...path, name] : path.slice(0, at);
}

/** The stamp of an agent that a turn was handed over to: it stands in the place of the one before. */
export function stampAfter(first: AgentStamp, { id, name }: Startable, last: string): AgentStamp {
  const called = name ?? id ?? last;
  const own = id ?? `${first.id ?? first.chain.at(-1)!}/${called}`;
  return { id: own, name: called, chain: [...first.chain.slice(0, -1), called], depth: first.depth };
}

/** What the first agent's settings say of the whole turn (AgentHandoffs-2). */
export function settingsAfter(own: AgentSettings, first: AgentSettings, stamp: AgentStamp): AgentSettings {
  const { clock, hub, events, limits, persistAfterTurn, durable, leaseMs, tasks, leaving } = first;
  const { durable: _durable, ...rest } = own;
  const shared = { clock, hub, events, limits, persistAfterTurn, leaseMs, tasks, leaving, ...(durable && { durable }) };
  return { ...rest, ...shared, stamp };
}

/** A run's options for an agent that it was handed over to: what the caller brings along and bounds, not how the first agent speaks. */
export function optionsAfter({ config = {}, ...options }: RunOptions, bound: RunPlan["permissionBound"]): RunOptions {
  const tighten = { ...config.tighten, ...(bound && { permissionMode: bound }) };
  return { ...options, config: { ...ofCaller(config), ...(Object.keys(tighten).length > 0 && { tighten }) } };
}

const ownKeys = ["tools", "permissionMode", "limits", "middleware", "compaction", "sendReasoning", "tighten"] as const;

function ofCaller<Config extends object>(config: Config): Config {
  const kept = ownKeys.filter((key) => Object.hasOwn(config, key));
  return Object.fromEntries(kept.map((key) => [key, (config as RunConfig)[key]])) as Config;
}

/** How a turn was asked, for an agent that it was handed over to. */
export function keptAfter(kept: KeptTurn | undefined): KeptTurn | undefined {
  if (!kept?.request) return kept;
  const { config, missing, ...request } = kept.request;
  const left = missing?.filter((name) => ownKeys.some((key) => name.startsWith(`config.${key}`)));
  return {
    ...kept,
    request: { ...request, ...(config && { config: ofCaller(config) }), ...(left?.length && { missing: left }) },
  };
}

/** The plan says how the whole turn is asked, not only what is left of that for this agent. */
export function planAfter(plan: RunPlan, kept: KeptTurn | undefined, first: AgentStamp): RunPlan {
  const wholeRequest = mergeRequests(kept?.request, plan.request);
  return { ...plan, firstStamp: first, ...(wholeRequest && { wholeRequest }) };
}
