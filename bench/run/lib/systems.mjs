// The systems that stand beside each other, and how one is started: in a process of its own (system-program.mjs), so that
// the heap, the compiled code and the global state of one don't colour another.

import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** What they are called in the table, and the packages whose versions are told. */
export const systems = {
  bough: { label: "Bough", packages: [] },
  bare: { label: "no library at all", packages: [] },
  adk: { label: "ADK JS", packages: ["@google/adk"] },
  "ai-sdk": { label: "AI SDK", packages: ["ai"] },
  langgraph: {
    label: "LangGraph.js",
    packages: ["@langchain/langgraph", "@langchain/langgraph-checkpoint-sqlite"],
  },
  mastra: {
    label: "Mastra",
    packages: ["@mastra/core", "@mastra/memory", "@mastra/libsql"],
  },
  "openai-agents": { label: "OpenAI Agents JS", packages: ["@openai/agents"] },
};

export function versionsOf(names) {
  const versionOf = (name) => {
    const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
    return `${name} ${JSON.parse(readFileSync(file, "utf8")).version}`;
  };
  return names.flatMap((name) => systems[name].packages.map(versionOf));
}

const program = fileURLToPath(new URL("./system-program.mjs", import.meta.url));

/**
 * Does the work with those of the systems that were asked for and that start; one that doesn't is a row that says why.
 *
 * @param {(running: Record<string, { call: (method: string, options?: object) => Promise<any> }>) => Promise<void>} work
 */
export async function withSystems(context, names, work) {
  const running = {};
  try {
    for (const name of names.filter((each) => context.systems.includes(each))) {
      const system = startSystem(name, context.node);
      try {
        await system.call("load", { name });
        running[name] = system;
      } catch (error) {
        context.row({ what: systems[name].label, skipped: firstLine(error), failed: true });
        await system.stop();
      }
    }
    await work(running);
  } finally {
    for (const system of Object.values(running)) await system.stop();
  }
}

export function firstLine(error) {
  return String(error?.message ?? error).split("\n")[0];
}

function startSystem(name, execPath) {
  const child = fork(program, [], {
    execPath,
    execArgv: ["--expose-gc", "--no-warnings", ...process.execArgv.filter((flag) => flag !== "--expose-gc")],
    env: { ...process.env, NODE_OPTIONS: "", LANGSMITH_TRACING: "false", MASTRA_TELEMETRY_DISABLED: "true" },
  });
  const waiting = new Map();
  let sent = 0;
  child.on("message", ({ id, result, error }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error) reject(new Error(error));
    else resolve(result);
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  ended.then((code) => {
    for (const { reject } of waiting.values()) reject(new Error(`the process of ${name} ended with ${code}`));
  });
  return {
    call: (method, options = {}) =>
      new Promise((resolve, reject) => {
        const id = ++sent;
        waiting.set(id, { resolve, reject });
        child.send({ id, method, options });
      }),
    stop: async () => {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
