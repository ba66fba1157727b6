// A process that waits for a person: it runs a turn that needs permission on the database at PATH, says which question is
// open, a line each, and then how the run ended. It may be killed at any time.
//   node waiting.mjs PATH

import { writeSync } from "node:fs";
import { createAgent, defineTool } from "bough";
import { z } from "zod";
import { scriptedModel } from "../../dist/scripted/index.js";

const [path] = process.argv.slice(2);
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);

const remove = defineTool({
  description: "Removes a file.",
  input: z.object({ path: z.string() }),
  permission: true,
  execute: ({ path }) => {
    say({ ran: path });
    return `removed ${path}`;
  },
});
const model = scriptedModel((prompt) =>
  prompt.at(-1).role === "tool" ? "done" : { calls: [{ name: "remove", input: { path: "x" } }] },
);
const agent = createAgent({ model, tools: { remove }, store: `sqlite:${path}` });
await agent.createSession("s");
agent.subscribe("interaction.opened", ({ id }) => say({ asked: id }));
const { status } = await agent.run("go", { sessionId: "s" }).result;
say({ status });
await agent.close();
