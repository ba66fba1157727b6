// The same conversation in LangGraph.js with its SqliteSaver or its PostgresSaver: a model node that answers from the script, a tool node. Its
// database driver needs Node 22; where this process is older, the Node that bench/ installs runs it.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { nodeForPeers } from "../../lib/machine.mjs";

const program = fileURLToPath(new URL("./langgraph-program.mjs", import.meta.url));

/** Runs so many turns into a database, a file or a URL; says how many messages the thread has then. */
export async function runLangGraph(path, turns) {
  const { stdout } = await promisify(execFile)(nodeForPeers(), [program, path, String(turns)], {
    env: { ...process.env, NODE_OPTIONS: "", LANGSMITH_TRACING: "false" },
  });
  return JSON.parse(stdout);
}
