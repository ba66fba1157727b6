// DBOS Transact has no conversations: a turn is a workflow whose one step is the model call. The caller keeps the messages
// and hands them to the workflow, which records its input, the step's result and its own before it answers. Fewer records
// make no turn that could be taken up again.

import { DBOS } from "@dbos-inc/dbos-sdk";
import { modelV4 } from "../lib/model-v4.mjs";
import { instructions } from "../lib/script.mjs";

let model;

const turnOf = DBOS.registerWorkflow(
  async (messages) => {
    const prompt = [{ role: "system", content: instructions }, ...messages];
    const { content } = await DBOS.runStep(() => model.doGenerate({ prompt }), { name: "model" });
    return content;
  },
  { name: "turn" },
);

export async function open({ postgres, deltas }) {
  const { model: answering, seen } = modelV4({ deltas });
  model = answering;
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: postgres.url,
    systemDatabasePoolSize: postgres.connections,
    logLevel: "error",
    runAdminServer: false,
  });
  await DBOS.launch();
  const conversations = new Map();
  return {
    seen,
    async createSession(id, messages) {
      conversations.set(
        id,
        messages.map(({ role, text }) => messageOf(role, [{ type: "text", text }])),
      );
    },
    async turn(id, text) {
      const messages = conversations.get(id);
      messages.push(messageOf("user", [{ type: "text", text }]));
      const content = await turnOf(messages);
      messages.push(messageOf("assistant", content));
      return content[0].text;
    },
    close: () => DBOS.shutdown(),
  };
}

function messageOf(role, content) {
  return { role, content };
}
