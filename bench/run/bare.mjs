// No library at all: a list of messages, and the model asked by hand. Nothing that uses the model can be faster.

import { modelV4 } from "./lib/model-v4.mjs";
import { instructions } from "./lib/script.mjs";

export async function open({ deltas }) {
  const { model, seen } = modelV4({ deltas });
  const conversations = new Map();
  const ask = async (id, text, onDelta) => {
    const prompt = conversations.get(id);
    prompt.push(messageOf("user", text));
    const { stream } = await model.doStream({ prompt });
    const reader = stream.getReader();
    let answer = "";
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      if (next.value.type !== "text-delta") continue;
      answer += next.value.delta;
      onDelta?.();
    }
    prompt.push(messageOf("assistant", answer));
    return answer;
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
    async close() {},
  };
}

function messageOf(role, text) {
  return { role, content: [{ type: "text", text }] };
}
