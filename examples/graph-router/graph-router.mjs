// A router: an agent that must hand a question over to one of the others, by calling one of its tools. The graph goes through
// JSON first, as a stored definition would.

import { createAgent } from "bough";
import { createWorkflow, graph } from "bough/workflows";
import { aboutModel, modelFor } from "../model.mjs";

console.log(aboutModel);

/** What a scripted router looks for; a real model reads the descriptions of its tools. */
const desk = (prompt) => {
  const question = JSON.stringify(prompt.at(-1).content);
  const to = /invoice|refund/i.test(question) ? "billing" : "tech";
  return { calls: [{ name: `handoff_to_${to}`, input: { response: `This is for ${to}.` } }] };
};
const agents = {
  desk: createAgent({ name: "desk", model: modelFor(desk), instructions: "Hand every question over." }),
  billing: createAgent({
    name: "billing",
    model: modelFor(() => "Your refund is on its way."),
    instructions: "Answer about money.",
  }),
  tech: createAgent({
    name: "tech",
    model: modelFor(() => "Turn it off and on again."),
    instructions: "Answer about machines.",
  }),
};

const definition = {
  name: "support",
  nodes: {
    desk: {
      agent: "desk",
      router: { to: { billing: "Use for invoices and refunds.", tech: "Use for broken machines." }, otherwise: "tech" },
    },
    billing: { agent: "billing", prompt: "{{input}}\n({{outputs.desk.response}})" },
    tech: { agent: "tech", prompt: "{{input}}" },
  },
  edges: [["start", "desk"]],
};

const support = graph.fromJSON(JSON.parse(JSON.stringify(definition)), { agents });
const runner = createWorkflow(support);
for (const question of ["Where is my refund?", "My printer is on fire."]) {
  const run = runner.run(question);
  const taken = [];
  for await (const event of run) if (event.type === "edge-take") taken.push(`${event.from} -> ${event.to}`);
  console.log(`${question}  ${taken.join(", ")}`);
  console.log(`  ${(await run.result).output}`);
}
await runner.close();
