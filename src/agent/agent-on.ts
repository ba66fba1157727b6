import type { Context } from "../sessions/context.ts";
import { Agent } from "./agent.ts";
import type { AgentOptions } from "./options.ts";

/**
 * An agent on the context of a store that others in this process use, too: they share its views, and closing the agent leaves
 * the store open.
 */
export function agentOn(context: Context, options: Omit<AgentOptions, "store" | "cacheBytes">): Agent {
  return new Agent(options, context);
}
