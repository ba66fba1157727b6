import type { Agent, AgentOptions } from "../../../src/index.ts";

/** A method of an agent, and what it is given. */
export type Command = readonly [method: string, ...args: unknown[]];
export type Told = { readonly ok?: true; readonly code?: string };

export function playOf(): Pick<AgentOptions, "model" | "tools" | "telemetry">;
export function perform(agent: Agent, command: Command): Promise<Told>;
