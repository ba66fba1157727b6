// A process that dies inside a tool: it runs a turn whose tool emits a kept event of the program on the store at URL, says so
// when the event is durable, and never returns a result.
//   node ordering.mjs URL

import { writeSync } from "node:fs";
import { createAgent, defineEvent, defineTool } from "bough";
import { z } from "zod";
import { scriptedModel } from "../../dist/scripted/index.js";

const [url] = process.argv.slice(2);
const orderPlaced = defineEvent({ type: "order.placed", kept: true, schema: z.object({ total: z.number() }) });
const order = defineTool({
  input: z.object({ total: z.number() }),
  async execute({ total }, context) {
    await context.emit(orderPlaced, { total });
    writeSync(1, "durable\n");
    await new Promise(() => {});
  },
});
const model = scriptedModel([{ calls: [{ name: "order", input: { total: 12 } }] }]);
const agent = createAgent({ id: "shop", model, tools: { order }, events: [orderPlaced], store: url });
await agent.createSession("s");
await agent.run("Go", "s").result;
