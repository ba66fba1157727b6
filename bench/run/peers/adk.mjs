// Google's ADK JS with its in-memory or its database session service. It comes with drivers for several databases as
// peers; these are the one for PostgreSQL, and the one for SQLite that needs nothing compiled.

import {
  BaseLlm,
  createEvent,
  FunctionTool,
  InMemorySessionService,
  LlmAgent,
  LogLevel,
  Runner,
  StreamingMode,
  setLogLevel,
} from "@google/adk";
import { z } from "zod";
import { deltasOf, instructions, nextId, tokens, tool } from "../lib/script.mjs";

const appName = "bench";
const userId = "u";
const author = "assistant";

export async function open({ database, postgres, deltas = 1, callsTool = false }) {
  setLogLevel(LogLevel.ERROR);
  const seen = { messages: 0 };
  const parameters = z.object({ query: z.string(), limit: z.number() });
  const execute = async () => ({ result: tool.output });
  const lookup = new FunctionTool({ name: tool.name, description: tool.description, parameters, execute });
  const model = new MockLlm({ reply: deltasOf(deltas), callsTool, seen });
  const agent = new LlmAgent({ name: author, model, instruction: instructions, tools: callsTool ? [lookup] : [] });
  const sessionService = await sessionsAt({ database, postgres });
  const runner = new Runner({ appName, agent, sessionService });
  return {
    seen,
    async createSession(sessionId, messages) {
      const session = await sessionService.createSession({ appName, userId, sessionId });
      for (const message of messages) await sessionService.appendEvent({ session, event: eventOf(message) });
    },
    async turn(sessionId, text) {
      let answer = "";
      for await (const event of runner.runAsync({ userId, sessionId, newMessage: contentOf("user", text) })) {
        answer = event.content?.parts?.[0]?.text ?? answer;
      }
      return answer;
    },
    async stream(sessionId, text) {
      const newMessage = contentOf("user", text);
      const runConfig = { streamingMode: StreamingMode.SSE };
      let deltas = 0;
      for await (const event of runner.runAsync({ userId, sessionId, newMessage, runConfig })) {
        if (event.partial && event.content?.parts?.[0]?.text) deltas++;
      }
      return deltas;
    },
    async close() {
      await sessionService.orm?.close();
    },
  };
}

async function sessionsAt({ database, postgres }) {
  if (!database && !postgres) return new InMemorySessionService();
  const { DatabaseSessionService } = await import("@google/adk/sessions/database");
  const service = new DatabaseSessionService(postgres ? await inPostgres(postgres) : await inSqlite(database));
  await service.init();
  return service;
}

async function inSqlite(dbName) {
  const { BetterSqliteDriver } = await import("@mikro-orm/better-sqlite");
  return { driver: BetterSqliteDriver, dbName };
}

async function inPostgres({ url, connections }) {
  const { PostgreSqlDriver } = await import("@mikro-orm/postgresql");
  return { driver: PostgreSqlDriver, clientUrl: url, pool: { max: connections } };
}

function contentOf(role, text) {
  return { role, parts: [{ text }] };
}

function eventOf({ role, text }) {
  const isUser = role === "user";
  const content = contentOf(isUser ? "user" : "model", text);
  return createEvent({ author: isUser ? "user" : author, invocationId: nextId("e"), content });
}

class MockLlm extends BaseLlm {
  constructor(script) {
    super({ model: "mock" });
    this.script = script;
  }

  async *generateContentAsync({ contents }, stream) {
    const { reply, callsTool, seen } = this.script;
    seen.messages = contents.length;
    if (callsTool && !contents.at(-1).parts[0].functionResponse) {
      const functionCall = { id: nextId("call"), name: tool.name, args: { ...tool.input } };
      yield { content: { role: "model", parts: [{ functionCall }] }, ...ending };
      return;
    }
    if (stream) for (const delta of reply) yield { content: contentOf("model", delta), partial: true };
    yield { content: contentOf("model", reply.join("")), ...ending };
  }
}

const ending = {
  finishReason: "STOP",
  usageMetadata: { promptTokenCount: tokens.input, candidatesTokenCount: tokens.output },
};
