// What the suites of children share: a boss with a tool that is another agent, and a look at what they left behind.

import { type Agent, type AgentOptions, createAgent, type SubagentOptions, subagent } from "../../src/index.ts";
import { type Script, type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";

/** A reply that calls tools, each with the input `{ input }`. */
export const calls = (...asked: readonly (string | readonly [name: string, input: string])[]) => ({
  calls: asked.map((each) => {
    const [name, input] = typeof each === "string" ? [each, `Do ${each}.`] : each;
    return { name, input: { input } };
  }),
});

/** A call of a tool without input. */
export const plain = (...names: readonly string[]) => ({ calls: names.map((name) => ({ name, input: {} })) });

export interface ChildAgent {
  readonly agent: Agent;
  readonly model: ScriptedModel;
}

/** An agent without a store: it works in its parent's. */
export function worker(name: string, script: Script, options: Partial<AgentOptions> = {}): ChildAgent {
  const model = scriptedModel(script);
  return { model, agent: createAgent({ name, model, random: () => 0, ...options }) as Agent };
}

/** It as a tool that needs no permission. */
export function tool({ agent }: ChildAgent, options: Partial<SubagentOptions> = {}) {
  return subagent(agent, { description: "Does one thing.", permission: false, ...options });
}

/** The hidden branches of a session, in the order in which they were made. */
export async function hidden(agent: Agent, sessionId = "s") {
  const branches = await agent.listBranches(sessionId, { visibility: "all" });
  return branches.filter(({ visibility }) => visibility === "hidden");
}
