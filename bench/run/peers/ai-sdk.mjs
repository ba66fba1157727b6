// The AI SDK has no sessions: the application keeps the messages and adds those of each answer.

import { isStepCount, streamText, tool as toolOf } from "ai";
import { z } from "zod";
import { modelV4 } from "../lib/model-v4.mjs";
import { instructions, tool } from "../lib/script.mjs";

export async function open({ deltas, callsTool }) {
  const { model, seen } = modelV4({ deltas, callsTool });
  const conversations = new Map();
  const inputSchema = z.object({ query: z.string(), limit: z.number() });
  const tools = { [tool.name]: toolOf({ description: tool.description, inputSchema, execute: () => tool.output }) };
  const ask = (id, text) => {
    const messages = conversations.get(id);
    messages.push({ role: "user", content: text });
    return streamText({ model, instructions, messages, ...(callsTool && { tools, stopWhen: isStepCount(5) }) });
  };
  const keep = async (id, result) => conversations.get(id).push(...(await result.responseMessages));
  return {
    seen,
    async createSession(id, messages) {
      conversations.set(
        id,
        messages.map(({ role, text }) => ({ role, content: text })),
      );
    },
    async turn(id, text) {
      const result = ask(id, text);
      const answer = await result.text;
      await keep(id, result);
      return answer;
    },
    async stream(id, text) {
      const result = ask(id, text);
      let deltas = 0;
      for await (const delta of result.textStream) if (delta) deltas++;
      await keep(id, result);
      return deltas;
    },
    async close() {},
  };
}
