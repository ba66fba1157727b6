// A process that gives its output by calling a tool, after another one, on the database at PATH. It dies at the failpoint
// that its environment names.
//   node answering.mjs PATH

import { createAgent, defineTool } from "bough";
import { z } from "zod";
import { scriptedModel } from "../../dist/scripted/index.js";

const [path] = process.argv.slice(2);
const add = defineTool({ input: z.object({ a: z.number(), b: z.number() }), execute: ({ a, b }) => a + b });
const model = scriptedModel([
  { calls: [{ name: "add", input: { a: 1, b: 2 } }] },
  { text: "Three.", calls: [{ name: "return_output", input: { sum: 3 } }] },
]);
const agent = createAgent({ model, tools: { add }, store: `sqlite:${path}` });
await agent.createSession("s");
await agent.run("1 and 2?", { sessionId: "s", output: { schema: z.object({ sum: z.number() }), mode: "tool" } }).result;
await agent.close();
