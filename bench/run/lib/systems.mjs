// The systems that stand beside each other, and how one is started: in a process of its own (system-program.mjs) for each
// thing that is measured of it, so that heaps, caches, compiled code and global state don't colour each other.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startChild } from "../../lib/child.mjs";

/** What they are called in the table, and the packages whose versions are told; those for PostgreSQL where it has such. */
export const systems = {
  bough: { label: "Bough", packages: [], postgres: ["pg"] },
  bare: { label: "no library at all", packages: [] },
  adk: { label: "ADK JS", packages: ["@google/adk"], postgres: ["@google/adk", "@mikro-orm/postgresql"] },
  "ai-sdk": { label: "AI SDK", packages: ["ai"] },
  dbos: { label: "DBOS", packages: [], postgres: ["@dbos-inc/dbos-sdk"] },
  langgraph: {
    label: "LangGraph.js",
    packages: ["@langchain/langgraph", "@langchain/langgraph-checkpoint-sqlite"],
    postgres: ["@langchain/langgraph", "@langchain/langgraph-checkpoint-postgres"],
  },
  mastra: {
    label: "Mastra",
    packages: ["@mastra/core", "@mastra/memory", "@mastra/libsql"],
    postgres: ["@mastra/core", "@mastra/memory", "@mastra/pg"],
  },
  "openai-agents": { label: "OpenAI Agents JS", packages: ["@openai/agents"] },
};

/** The versions of what these systems are made of, as `packages` or as `postgres`. */
export function versionsOf(names, made = "packages") {
  const versionOf = (name) => {
    const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
    return `${name} ${JSON.parse(readFileSync(file, "utf8")).version}`;
  };
  return names.flatMap((name) => systems[name][made].map(versionOf));
}

const program = fileURLToPath(new URL("./system-program.mjs", import.meta.url));

/**
 * Starts a process for everything that is wanted of the systems that were asked for, and does the work with those that
 * have started; a system that doesn't is a row that says why.
 *
 * @template {{ system: string }} Wanted
 * @param {Wanted[]} wanted
 * @param {(running: (Wanted & { call: (method: string, options?: object) => Promise<any> })[]) => Promise<void>} work
 */
export async function withSystems(context, wanted, work) {
  const asked = wanted.filter(({ system }) => context.systems.includes(system));
  context.progress(`starting ${asked.length} of them`);
  const processes = asked.map((each) => ({ ...each, ...startSystem(each.system, context.node) }));
  const failed = new Map();
  const load = async ({ system, call }) => {
    await call("load", { name: system }).catch((error) => failed.set(system, firstLine(error)));
  };
  try {
    await Promise.all(processes.map(load));
    for (const [system, why] of failed) context.row({ what: systems[system].label, skipped: why, failed: true });
    await work(processes.filter(({ system }) => !failed.has(system)));
  } finally {
    await Promise.all(processes.map(({ stop }) => stop()));
  }
}

export function firstLine(error) {
  return String(error?.message ?? error).split("\n")[0];
}

/** Starts a process for one system, which loads nothing yet. */
export function startSystem(name, execPath) {
  return startChild(program, {
    name,
    execPath,
    execArgv: ["--no-warnings", ...process.execArgv.filter((flag) => flag !== "--expose-gc")],
    env: { ...process.env, NODE_OPTIONS: "", LANGSMITH_TRACING: "false", MASTRA_TELEMETRY_DISABLED: "true" },
  });
}
