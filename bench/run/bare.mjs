// No library at all: a list of messages, the model asked by hand, and where a database is wanted, one commit for each
// message before anything else happens, as durable as Bough's. Nothing that does this can be faster.

import { modelV4 } from "./lib/model-v4.mjs";
import { instructions, tool } from "./lib/script.mjs";

export async function open({ database, deltas, callsTool }) {
  const { model, seen } = modelV4({ deltas, callsTool });
  const conversations = new Map();
  const table = database ? await openTable(database) : undefined;
  const add = (id, message) => {
    table?.write(id, JSON.stringify(message));
    conversations.get(id).push(message);
  };
  const ask = async (id, text, onDelta) => {
    add(id, messageOf("user", text));
    for (;;) {
      const content = await answerOf(model, conversations.get(id), onDelta);
      add(id, { role: "assistant", content });
      if (content[0].type === "text") return content[0].text;
      add(id, { role: "tool", content: content.map(resultOf) });
    }
  };
  return {
    seen,
    async createSession(id, messages) {
      const history = messages.map(({ role, text }) => messageOf(role, text));
      conversations.set(id, [{ role: "system", content: instructions }, ...history]);
    },
    turn: (id, text) => ask(id, text),
    async stream(id, text) {
      let deltas = 0;
      await ask(id, text, () => deltas++);
      return deltas;
    },
    async deleteSession(id) {
      conversations.delete(id);
    },
    async close() {
      table?.close();
    },
  };
}

async function answerOf(model, prompt, onDelta) {
  const { stream } = await model.doStream({ prompt });
  const reader = stream.getReader();
  const calls = [];
  let text = "";
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    const part = next.value;
    if (part.type === "tool-call") calls.push({ ...part, input: JSON.parse(part.input) });
    if (part.type !== "text-delta") continue;
    text += part.delta;
    onDelta?.();
  }
  return calls.length > 0 ? calls : [{ type: "text", text }];
}

function messageOf(role, text) {
  return { role, content: [{ type: "text", text }] };
}

function resultOf({ toolCallId, toolName }) {
  return { type: "tool-result", toolCallId, toolName, output: { type: "text", value: tool.output } };
}

async function openTable(path) {
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(path);
  for (const pragma of ["journal_mode = WAL", "synchronous = FULL"]) database.prepare(`PRAGMA ${pragma}`).get();
  database.exec("CREATE TABLE messages (key INTEGER PRIMARY KEY, session TEXT NOT NULL, data TEXT NOT NULL)");
  const insert = database.prepare("INSERT INTO messages (session, data) VALUES (?, ?)");
  return { write: (id, data) => insert.run(id, data), close: () => database.close() };
}
