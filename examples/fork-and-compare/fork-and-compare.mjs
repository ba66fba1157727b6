// Fork and compare: one conversation, one question, two branches with different instructions, side by side.

import { createAgent } from "bough";
import { aboutModel, modelFor } from "../model.mjs";

const question = "What should I plant first?";
const voices = {
  practical: "You are a practical gardener. Give a plan in at most three short sentences.",
  poetic: "You are a poet who gardens. Answer in at most three short sentences, with feeling.",
};

const agent = createAgent({
  model: modelFor((prompt) => {
    const voice = prompt.find(({ role }) => role === "system")?.content;
    if (voice === voices.practical)
      return "Start with peas and radishes: they stand the cold and are ready in June. Add beans in May. Keep a third of the bed free for tomatoes.";
    if (voice === voices.poetic)
      return "Plant the slow tree first, whose shade you will not sit in. Then sow peas, which forgive beginners. The rest the garden will tell you.";
    return "Two hundred square metres facing south: enough for vegetables, berries and one tree.";
  }),
});

console.log(aboutModel, "\n");
await agent.createSession("garden");
await agent.run("I have a garden of 200 square metres, facing south.", { sessionId: "garden" }).text();

// Both forks share everything up to the answer. A fork is one row; no message is copied.
const { messages } = await agent.loadBranch("garden");
for (const id of Object.keys(voices)) {
  await agent.forkBranch({ sessionId: "garden", branchId: "main" }, { from: messages.at(-1).id, newBranchId: id });
}

// Each branch has its own run slot, so both can run at the same time. `config` overrides options for one run: here the
// instructions; `model: "openai/…"` would compare models.
const answers = await Promise.all(
  Object.entries(voices).map(async ([branchId, instructions]) => {
    const run = agent.run(question, { sessionId: "garden", branchId, config: { instructions } });
    return { branchId, text: await run.text(), ...(await run.result) };
  }),
);

console.log(`${question}\n`);
console.log(sideBySide(answers.map(({ branchId, text }) => [branchId.toUpperCase(), "", ...wrap(text, 36)])));

// The original branch is unchanged. Tag the branch you prefer, and continue there.
await agent.updateBranch({ sessionId: "garden", branchId: "practical" }, { tags: ["chosen"] });
console.log();
for (const { id, messageCount, fork, tags } of await agent.listBranches("garden")) {
  const from = fork ? `forked from ${fork.forkedFrom} after message ${fork.forkedAtMessageIndex + 1}` : "the original";
  console.log(`${id.padEnd(10)} ${messageCount} messages, ${from}${tags.length ? `  [${tags}]` : ""}`);
}
await agent.close();

function wrap(text, width) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    const line = `${lines.at(-1)} ${word}`.trimStart();
    if (line.length > width) lines.push(word);
    else lines[lines.length - 1] = line;
  }
  return lines;
}

function sideBySide([left, right]) {
  const rows = Array.from({ length: Math.max(left.length, right.length) }, (_, i) => [left[i] ?? "", right[i] ?? ""]);
  return rows.map(([a, b]) => `${a.padEnd(38)}│ ${b}`.trimEnd()).join("\n");
}
