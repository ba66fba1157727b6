// Two commands at the same time: what is told of each.

import { scriptedModel } from "bough/scripted";

/** A model and a tool for runs that hold their branch until they are interrupted. */
export function playOf() {
  const wait = { input: { type: "object" }, execute: () => new Promise(() => {}) };
  return { model: scriptedModel(() => ({ calls: [{ name: "wait", input: {} }] })), tools: { wait }, telemetry: false };
}

/** Does what a command says; { ok: true }, or the code it is refused with. */
export async function perform(agent, [method, ...args]) {
  try {
    if (method === "run") await begin(agent, ...args);
    else await agent[method](...args);
    return { ok: true };
  } catch (error) {
    return { code: error.code ?? String(error) };
  }
}

/** Resolves when the run has the branch and writes nothing more: its tool waits. */
async function begin(agent, input, scope) {
  const run = agent.run(input, scope);
  await Promise.race([
    run.result,
    new Promise((resolve) => agent.subscribe("tool-start", (event) => event.runId === run.runId && resolve())),
  ]);
}
