// The options of a server: one table, checked when the server is created.

import { ownEventList } from "../agent/check-options.ts";
import { Agent, type AgentOptions } from "../agent/index.ts";
import { withEvents } from "../agent/own-events.ts";
import { BoughError } from "../base/errors.ts";
import {
  anything,
  checkOptions,
  flag,
  fn,
  isObject,
  type OptionCheck,
  object,
  oneOf,
  optionTable,
  text,
  texts,
} from "../base/options.ts";
import type { OwnEventDefinition } from "../events/index.ts";
import { ownEventTable } from "../events/present-own.ts";
import { defaultLimits, type ServerLimits, type ServerOptions } from "./options.ts";

const agentOptions: OptionCheck = {
  fits: (value) => isObject(value) && !(value instanceof Agent),
  wanted: "the options of an agent, as createAgent takes them",
};

const serverTable = optionTable<ServerOptions>({
  agents: {
    fits: (value) => isObject(value) && Object.values(value).every(isObject),
    wanted: "an object of agents by id, each an agent, its options or a workflow",
  },
  resolveAgent: fn,
  defaultAgent: agentOptions,
  events: ownEventList,
  store: anything,
  auth: fn,
  authorize: fn,
  audit: { fits: (value) => value === false || isObject(value), wanted: "an object or false" },
  token: anything,
  prefix: anything,
  hosts: texts,
  origins: texts,
  limits: object,
  allowConfig: texts,
  questions: oneOf("wait", "park"),
  allowRecursiveDelete: flag,
  compress: flag,
  definitions: object,
  page: text,
  assets: object,
  studio: { fits: (value) => typeof value === "boolean" || isObject(value), wanted: "a boolean or { path }" },
  mounts: anything,
  redact: {
    fits: (value) => value === false || typeof value === "function",
    wanted: "a function from string to string, or false",
  },
  logger: { fits: (value) => typeof Object(value).warn === "function", wanted: "an object with a function warn" },
  clock: object,
});

const limit: OptionCheck = { fits: (value) => typeof value === "number" && value >= 0, wanted: "a number ≥ 0" };
const limitsTable = optionTable<ServerLimits>(
  Object.fromEntries(Object.keys(defaultLimits).map((name) => [name, limit])) as Record<
    keyof ServerLimits,
    OptionCheck
  >,
);

/** Refuses unknown options, values of the wrong type, and agents that can't be served, with `invalid_argument`. */
export function checkServerOptions(options: ServerOptions): void {
  checkOptions("The options of a server", options, serverTable);
  const { agents = {}, defaultAgent, events, limits } = options;
  if (limits) checkOptions("The limits of a server", limits, limitsTable, "limits.");
  for (const [id, agent] of Object.entries(agents)) checkSaving(`Agent "${id}"`, agent as AgentOptions);
  if (defaultAgent) checkSaving("The default agent", defaultAgent);
  ownEventTable(events);
  for (const agent of [...Object.values(agents), defaultAgent]) if (agent) checkEvents(agent as AgentOptions, events);
}

/** A type that the server and an agent define differently is refused now, not when the agent is first needed. */
function checkEvents(agent: Agent | AgentOptions, events: readonly OwnEventDefinition[] | undefined): void {
  if (!(agent instanceof Agent) && ownEventList.fits(agent.events)) ownEventTable(withEvents(agent, events).events);
}

/** The same for the result of `resolveAgent`. */
export function checkResolved(agentId: string, options: unknown): void {
  if (!agentOptions.fits(options)) {
    const sentence = `resolveAgent("${agentId}") must return ${agentOptions.wanted}, or undefined.`;
    throw new BoughError("invalid_argument", sentence, { data: { agentId } });
  }
  checkSaving(`Agent "${agentId}"`, options as AgentOptions);
}

/** A client has no way to persist staged turns. */
function checkSaving(whose: string, { persistAfterTurn }: Pick<AgentOptions, "persistAfterTurn">): void {
  if (persistAfterTurn !== false) return;
  const sentence = `${whose} has persistAfterTurn: false, but a server can't persist its turns later. Leave the option out.`;
  throw new BoughError("invalid_argument", sentence);
}
