// LangGraph.js as its guides begin: a graph of a model and a tool node over a list of messages, with a checkpointer. The
// savers are used with their own defaults.

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, HumanMessage, SystemMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { tool as toolOf } from "@langchain/core/tools";
import { MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import { z } from "zod";
import { deltasOf, instructions, nextId, tokens, tool } from "../lib/script.mjs";

export async function open({ database, postgres, deltas = 1, callsTool = false }) {
  const seen = { messages: 0 };
  const { checkpointer, end } = await saverAt({ database, postgres });
  const model = new MockChatModel({ reply: deltasOf(deltas), callsTool, seen });
  const graph = graphOf(model, callsTool).compile({ checkpointer });
  const configOf = (id) => ({ configurable: { thread_id: id } });
  const inputOf = (text) => ({ messages: [new HumanMessage(text)] });
  return {
    seen,
    async createSession(id, messages) {
      const list = messages.map(({ role, text }) => (role === "user" ? new HumanMessage(text) : new AIMessage(text)));
      if (list.length > 0) await graph.updateState(configOf(id), { messages: list }, "model");
    },
    async turn(id, text) {
      const { messages } = await graph.invoke(inputOf(text), configOf(id));
      return messages.at(-1).content;
    },
    async stream(id, text) {
      let deltas = 0;
      for await (const [chunk] of await graph.stream(inputOf(text), { ...configOf(id), streamMode: "messages" })) {
        if (chunk.content) deltas++;
      }
      return deltas;
    },
    close: end,
  };
}

function graphOf(model, callsTool) {
  const system = new SystemMessage(instructions);
  const schema = z.object({ query: z.string(), limit: z.number() });
  const lookup = toolOf(async () => tool.output, { name: tool.name, description: tool.description, schema });
  const asked = callsTool ? model.bindTools([lookup]) : model;
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("model", async ({ messages }) => ({ messages: [await asked.invoke([system, ...messages])] }))
    .addEdge(START, "model");
  if (!callsTool) return graph;
  return graph
    .addNode("tools", new ToolNode([lookup]))
    .addConditionalEdges("model", toolsCondition)
    .addEdge("tools", "model");
}

async function saverAt({ database, postgres }) {
  if (postgres) return postgresSaver(postgres);
  if (!database) return { checkpointer: new MemorySaver(), end: async () => {} };
  const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite");
  const checkpointer = SqliteSaver.fromConnString(database);
  return { checkpointer, end: async () => checkpointer.db.close() };
}

export async function postgresSaver({ url, connections }) {
  const { PostgresSaver } = await import("@langchain/langgraph-checkpoint-postgres");
  const { Pool } = (await import("pg")).default;
  const checkpointer = new PostgresSaver(new Pool({ connectionString: url, max: connections }));
  await checkpointer.setup();
  return { checkpointer, end: () => checkpointer.end() };
}

class MockChatModel extends BaseChatModel {
  constructor(script) {
    super({});
    this.script = script;
  }

  _llmType() {
    return "mock";
  }

  bindTools(tools) {
    return this.withConfig({ tools });
  }

  async _generate(messages) {
    const message = new AIMessage(this.answer(messages));
    return { generations: [{ text: message.text, message }] };
  }

  async *_streamResponseChunks(messages, _options, runManager) {
    const { tool_calls, usage_metadata } = this.answer(messages);
    const contents = tool_calls ? [""] : this.script.reply;
    for (const [i, content] of contents.entries()) {
      const last = i === contents.length - 1;
      const message = new AIMessageChunk({ content, ...(last && { tool_calls, usage_metadata }) });
      const chunk = new ChatGenerationChunk({ text: content, message });
      yield chunk;
      await runManager?.handleLLMNewToken(content, undefined, undefined, undefined, undefined, { chunk });
    }
  }

  answer(messages) {
    const { reply, callsTool, seen } = this.script;
    seen.messages = messages.length - 1;
    const usage_metadata = {
      input_tokens: tokens.input,
      output_tokens: tokens.output,
      total_tokens: tokens.input + tokens.output,
    };
    if (!callsTool || messages.at(-1).getType() === "tool") return { content: reply.join(""), usage_metadata };
    const call = { type: "tool_call", id: nextId("call"), name: tool.name, args: tool.input };
    return { content: "", tool_calls: [call], usage_metadata };
  }
}
