// What the suites of workflows share: a process that dies, and agents that answer.

import { type Agent, type AgentOptions, createAgent, type Store } from "../../src/index.ts";
import { type Script, type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";

export interface Helper {
  readonly agent: Agent;
  readonly model: ScriptedModel;
}

/** An agent without a store: it works as a node. */
export function helper(name: string, script: Script, options: Partial<AgentOptions> = {}): Helper {
  const model = scriptedModel(script);
  return { model, agent: createAgent({ name, model, random: () => 0, telemetry: false, ...options }) as Agent };
}

/** A store that answers nothing any more after so many writes, as a dead process asks nothing. */
export function dying(store: Store, writes: number): { readonly store: Store; readonly died: Promise<void> } {
  let left = writes;
  let die = () => {};
  const died = new Promise<void>((resolve) => {
    die = resolve;
  });
  const writing = new Set<keyof Store>(["append", "createBranch", "createSession"]);
  const proxy = new Proxy(store, {
    get(target, name: keyof Store) {
      const value = target[name];
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (writing.has(name) && left-- <= 0) die();
        if (left < 0) return new Promise(() => {});
        return (value as (...given: unknown[]) => unknown).apply(target, args);
      };
    },
  });
  return { store: proxy, died };
}
