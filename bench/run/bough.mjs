// Bough as its README begins: an agent with a store.

import { z } from "zod";
import { createAgent, defineTool } from "../../dist/index.js";
import { memoryStore } from "../../dist/stores/memory/index.js";
import { postgresStore } from "../../dist/stores/postgres/index.js";
import { redisStore } from "../../dist/stores/redis/index.js";
import { sqliteStore } from "../../dist/stores/sqlite/index.js";
import { modelV4 } from "./lib/model-v4.mjs";
import { instructions, tool } from "./lib/script.mjs";

const branchId = "main";

export async function open({ database, postgres, redis, deltas, callsTool }) {
  const { model, seen } = modelV4({ deltas, callsTool });
  const store = await storeAt({ database, postgres, redis });
  const input = z.object({ query: z.string(), limit: z.number() });
  // It only looks something up, and says so, as a user's would: its call need not be on the disk before it begins.
  const lookup = defineTool({ description: tool.description, input, effect: "read", execute: () => tool.output });
  const agent = createAgent({ model, instructions, store, ...(callsTool && { tools: { [tool.name]: lookup } }) });
  return {
    seen,
    async createSession(sessionId, messages) {
      await agent.createSession(sessionId);
      const turn = messages.map(({ role, text }) => ({ role, content: text }));
      for (let i = 0; i < turn.length; i += 2) await agent.appendTurn({ sessionId, branchId }, turn.slice(i, i + 2));
    },
    turn: (sessionId, text) => agent.run(text, { sessionId, branchId }).text(),
    async stream(sessionId, text) {
      let deltas = 0;
      for await (const event of agent.run(text, { sessionId, branchId })) if (event.type === "text-delta") deltas++;
      return deltas;
    },
    deleteSession: (sessionId) => agent.deleteSession(sessionId),
    close: () => agent.close(),
  };
}

async function storeAt({ database, postgres, redis }) {
  if (postgres) return postgresStore(postgres.url, { maxConnections: postgres.connections });
  if (redis) return redisStore(redis.url);
  return database ? sqliteStore(database) : memoryStore();
}
