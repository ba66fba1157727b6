// The front door: options in, a wired agent out.

import type { EventFrom, OwnEventDefinition } from "../events/index.ts";
import type { ToolSet } from "../tools/index.ts";
import { Agent } from "./agent.ts";
import type { AgentOptions } from "./options.ts";
import type { AgentEvent } from "./typed-events.ts";

export { Agent, type RecoveredRun } from "./agent.ts";
export { backgroundTasks } from "./background-tasks.ts";
export { AgentBuilder } from "./builder.ts";
export type { AgentOptions, ContextSchema } from "./options.ts";
export type { KeepRecoveringOptions, RecoveryOptions } from "./recovering.ts";
export type { HandoffOptions, Handoffs, HandoffTarget } from "./startable.ts";
export { type SubagentOptions, subagent } from "./subagent.ts";
export type { IfActive, InputOptions, Submitted } from "./submitter.ts";
export type { AgentEvent, EventOf } from "./typed-events.ts";

/**
 * Creates an agent. Its store is opened on first use.
 *
 * @example
 * const agent = createAgent({ model: "anthropic/claude-sonnet-4-5", store: "./sessions" });
 * await agent.createSession("user-123");
 * for await (const event of agent.run("Hello", { sessionId: "user-123" })) {
 *   if (event.type === "text-delta") process.stdout.write(event.text);
 * }
 */
export function createAgent<
  Context = unknown,
  Tools extends ToolSet = ToolSet,
  const Events extends readonly OwnEventDefinition[] = readonly [],
>(options: AgentOptions<Context, Tools, Events>): Agent<Context, AgentEvent<Tools> | EventFrom<Events[number]>> {
  return new Agent(options as AgentOptions<Context>);
}
