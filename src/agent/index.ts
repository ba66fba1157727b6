// The front door: options in, a wired agent out.

import { Agent } from "./agent.ts";
import type { AgentOptions } from "./options.ts";

export { Agent, type EventOf, type RecoveredRun } from "./agent.ts";
export { AgentBuilder } from "./builder.ts";
export type { AgentOptions, ContextSchema } from "./options.ts";
export type { KeepRecoveringOptions, RecoveryOptions } from "./recovering.ts";

/**
 * An agent on a store. Nothing is opened before it is used.
 *
 * @example
 * const agent = createAgent({ model: "anthropic/claude-sonnet-4-5", store: "./sessions" });
 * await agent.createSession("user-123");
 * for await (const event of agent.run("Hello", { sessionId: "user-123" })) {
 *   if (event.type === "text-delta") process.stdout.write(event.text);
 * }
 */
export function createAgent<Context = unknown>(options: AgentOptions<Context>): Agent<Context> {
  return new Agent(options);
}
