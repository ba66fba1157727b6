// Run by langgraph.mjs: `node langgraph-program.mjs DATABASE TURNS`. The database is a file of SQLite or a URL of PostgreSQL.

import { createRequire } from "node:module";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { toolTurns } from "../../lib/conversation.mjs";

const [path, turns] = process.argv.slice(2);
const source = toolTurns();
let script;

const graph = new StateGraph(MessagesAnnotation)
  .addNode("model", ({ messages }) => ({ messages: [answer(messages.at(-1))] }))
  .addNode("tools", () => ({ messages: [toolResult()] }))
  .addEdge(START, "model")
  .addConditionalEdges("model", ({ messages }) => (messages.at(-1).tool_calls?.length ? "tools" : END))
  .addEdge("tools", "model");

function answer(last) {
  if (last.getType() === "tool") return new AIMessage(script.assistant);
  const { toolCallId: id, toolName: name, input: args } = script.call;
  return new AIMessage({ content: script.thought, tool_calls: [{ id, name, args, type: "tool_call" }] });
}

function toolResult() {
  const { toolCallId, toolName } = script.call;
  return new ToolMessage({ content: script.output.value, tool_call_id: toolCallId, name: toolName });
}

const savers = {
  "@langchain/langgraph-checkpoint-sqlite": async ({ SqliteSaver }) => SqliteSaver.fromConnString(path),
  "@langchain/langgraph-checkpoint-postgres": async ({ PostgresSaver }) => {
    const saver = PostgresSaver.fromConnString(path);
    await saver.setup();
    return saver;
  },
};
const saverName = Object.keys(savers).at(path.startsWith("postgres:") ? 1 : 0);
const saver = await savers[saverName](await import(saverName));
const app = graph.compile({ checkpointer: saver });
const config = { configurable: { thread_id: "s" } };
let final;
for (let i = 0; i < Number(turns); i++) {
  script = source.next().value;
  final = await app.invoke({ messages: [new HumanMessage(script.user)] }, config);
}
saver.db?.close();
await saver.end?.();

const require = createRequire(import.meta.url);
const versionOf = (name) => `${name.split("/").at(-1)} ${require(`${name}/package.json`).version}`;
const names = ["@langchain/langgraph", saverName];
const versions = `${names.map(versionOf).join(", ")}, Node ${process.version}`;
console.log(JSON.stringify({ messages: final?.messages.length ?? 0, versions }));
