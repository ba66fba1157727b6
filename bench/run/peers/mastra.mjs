// Mastra with its memory, in its in-memory store, in LibSQL or in PostgreSQL. It gives the model the last ten messages, which is its
// default: with more it would be slower.

import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { Memory } from "@mastra/memory";
import { z } from "zod";
import { modelV4 } from "../lib/model-v4.mjs";
import { instructions, nextId, tool } from "../lib/script.mjs";

/** How many messages of the history the model is given. */
export const window = 10;

const resourceId = "u";

export async function open({ database, postgres, deltas, callsTool }) {
  const { model, seen } = modelV4({ deltas, callsTool });
  const storage = await storageAt({ database, postgres });
  const memory = new Memory({ storage });
  const inputSchema = z.object({ query: z.string(), limit: z.number() });
  const lookup = createTool({
    id: tool.name,
    description: tool.description,
    inputSchema,
    execute: async () => tool.output,
  });
  const tools = callsTool ? { [tool.name]: lookup } : {};
  const agent = new Agent({ id: "assistant", name: "assistant", instructions, model, memory, tools });
  new Mastra({ agents: { agent }, storage, logger: false });
  const scopeOf = (id) => ({ memory: { thread: id, resource: resourceId } });
  return {
    seen,
    async createSession(id, messages) {
      await memory.createThread({ threadId: id, resourceId });
      if (messages.length > 0) await memory.saveMessages({ messages: messages.map((each, i) => rowOf(id, each, i)) });
    },
    async turn(id, text) {
      const { text: answer } = await agent.generate(text, scopeOf(id));
      return answer;
    },
    async stream(id, text) {
      const result = await agent.stream(text, scopeOf(id));
      let deltas = 0;
      for await (const delta of result.textStream) if (delta) deltas++;
      return deltas;
    },
    async close() {
      await storage.close?.();
    },
  };
}

async function storageAt({ database, postgres }) {
  if (!database && !postgres) return new InMemoryStore();
  if (database) {
    const { LibSQLStore } = await import("@mastra/libsql");
    return new LibSQLStore({ id: "bench", url: `file:${database}` });
  }
  const { PostgresStore } = await import("@mastra/pg");
  const storage = new PostgresStore({ id: "bench", connectionString: postgres.url, max: postgres.connections });
  await storage.init();
  return storage;
}

/** Messages are ordered by the time they were made at. */
function rowOf(threadId, { role, text }, i) {
  const createdAt = new Date(Date.UTC(2026, 0, 1) + i * 1000);
  return {
    id: nextId("m"),
    threadId,
    resourceId,
    role,
    createdAt,
    content: { format: 2, parts: [{ type: "text", text }] },
  };
}
