// A graph: two reviewers read a draft at the same time, each on a fork of the branch that has it, and an editor weighs what they
// say. If the editor is not content, the draft goes round again, at most twice.

import { createAgent } from "bough";
import { createWorkflow, graph } from "bough/workflows";
import { z } from "zod";
import { aboutModel, modelFor } from "../model.mjs";

console.log(aboutModel);

/** An agent without a store: it works in the store of the workflow. */
const reviewer = (name, instructions, says) => createAgent({ name, instructions, model: modelFor(() => says) });
let rounds = 0;

const review = graph("review", {
  input: z.object({ text: z.string() }),
  conversation: "forkPerNode",
  nodes: {
    style: {
      agent: reviewer("stylist", "Judge the style in one sentence.", "Short and clear."),
      prompt: "Read: {{input.text}}",
    },
    law: {
      agent: reviewer("lawyer", "Judge the legal risk in one sentence.", "It promises too much."),
      prompt: "Read: {{input.text}}",
    },
    editor: {
      agent: createAgent({
        name: "editor",
        instructions: "Decide whether the draft can be published.",
        model: modelFor(() => JSON.stringify({ ok: ++rounds > 1, why: rounds > 1 ? "Toned down." : "Too bold." })),
      }),
      output: z.object({ ok: z.boolean(), why: z.string() }),
      prompt: "Style: {{outputs.style}}\nLaw: {{outputs.law}}\nEarlier: {{outputs.rewrite}}",
    },
    rewrite: { run: ({ outputs }) => `rewritten, because: ${outputs.editor.why}` },
  },
  edges: [
    ["start", ["style", "law"]],
    [["style", "law"], "editor"],
    ["editor", "rewrite", { field: "ok", is: false }],
    ["rewrite", ["style", "law"], { max: 2 }],
    ["editor", "end", "otherwise"],
  ],
});

const runner = createWorkflow(review);
const run = runner.run({ text: "Our oaks live for ever." }, { executionId: "case-7" });
for await (const event of run) {
  if (event.type === "edge-take")
    console.log(`  ${event.from} -> ${event.to}${event.condition ? ` (${event.condition})` : ""}`);
  if (event.type === "step.returned") console.log(`${event.key} is recorded at ${event.seq}`);
}
console.log("Result:", (await run.result).output);

for (const { id, metadata } of await runner.listBranches("workflow-review-case-7")) {
  if (metadata.nodeId) console.log(`branch ${id}: node ${metadata.nodeId}, agent ${metadata.agentName}`);
}
console.log(review.toMermaid());
await runner.close();
