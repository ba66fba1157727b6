// OpenAI Agents JS with its MemorySession. Tracing, which would send spans to a server, is off.

import { Agent, MemorySession, Runner, tool as toolOf, Usage } from "@openai/agents";
import { z } from "zod";
import { deltasOf, instructions, nextId, tokens, tool } from "../lib/script.mjs";

export async function open({ deltas = 1, callsTool = false }) {
  const seen = { messages: 0 };
  const parameters = z.object({ query: z.string(), limit: z.number() });
  const lookup = toolOf({
    name: tool.name,
    description: tool.description,
    parameters,
    execute: async () => tool.output,
  });
  const agent = new Agent({
    name: "assistant",
    instructions,
    model: mockModel({ reply: deltasOf(deltas), callsTool, seen }),
    tools: callsTool ? [lookup] : [],
  });
  const runner = new Runner({ tracingDisabled: true });
  const sessions = new Map();
  return {
    seen,
    async createSession(id, messages) {
      sessions.set(id, new MemorySession({ sessionId: id, initialItems: messages.map(itemOf) }));
    },
    async turn(id, text) {
      const result = await runner.run(agent, text, { session: sessions.get(id) });
      return result.finalOutput;
    },
    async stream(id, text) {
      const result = await runner.run(agent, text, { session: sessions.get(id), stream: true });
      let deltas = 0;
      for await (const event of result) {
        if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta") deltas++;
      }
      await result.completed;
      return deltas;
    },
    async close() {},
  };
}

function itemOf({ role, text }) {
  return role === "user" ? { type: "message", role, content: text } : textItem(text);
}

function textItem(text) {
  return { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] };
}

function callItem() {
  const call = { id: nextId("fc"), callId: nextId("call"), name: tool.name, arguments: JSON.stringify(tool.input) };
  return { type: "function_call", status: "completed", ...call };
}

/** A model in the SDK's own interface. */
function mockModel({ reply, callsTool, seen }) {
  const text = reply.join("");
  const usage = { inputTokens: tokens.input, outputTokens: tokens.output, totalTokens: tokens.input + tokens.output };
  const outputFor = ({ input }) => {
    seen.messages = input.length;
    return callsTool && input.at(-1).type !== "function_call_result" ? callItem() : textItem(text);
  };
  return {
    async getResponse(request) {
      return { usage: new Usage({ requests: 1, ...usage }), output: [outputFor(request)], responseId: nextId("resp") };
    },
    async *getStreamedResponse(request) {
      const output = outputFor(request);
      yield { type: "response_started" };
      if (output.type === "message") for (const delta of reply) yield { type: "output_text_delta", delta };
      yield { type: "response_done", response: { id: nextId("resp"), usage, output: [output] } };
    },
  };
}
