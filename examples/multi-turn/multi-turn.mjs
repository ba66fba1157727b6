// Multi-turn: a conversation of several turns, a tool with a schema, and a second agent that continues the conversation.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAgent, defineTool } from "bough";
import { z } from "zod";
import { aboutModel, modelFor } from "../model.mjs";

const directory = mkdtempSync(join(tmpdir(), "bough-multi-turn-"));

// The input schema is any Standard Schema that converts to JSON Schema, such as zod's. `execute` gets the parsed input.
const treeFacts = defineTool({
  description: "How tall a kind of tree grows, in metres, and how old it gets, in years.",
  input: z.object({ tree: z.enum(["larch", "oak", "birch"]) }),
  effect: "read",
  execute: ({ tree }) => ({ larch: [45, 600], oak: [40, 1000], birch: [25, 120] })[tree],
});

// A scripted model that, like a real one, knows only what is in the conversation.
function script(prompt) {
  const said = prompt.filter(({ role }) => role === "user").map(({ content }) => content.at(-1).text);
  const last = prompt.at(-1);
  if (last.role === "tool") {
    const [metres, years] = last.content[0].output.value;
    return `About ${metres} metres, and it may live for ${years} years.`;
  }
  if (said.length === 1) return "Nice to meet you, and a fine choice of tree.";
  if (said.length === 2) return `You are ${said[0].match(/I am (\w+)/)[1]}.`;
  return { calls: [{ name: "tree_facts", input: { tree: said[0].match(/like (\w+)es/)[1] } }] };
}

function openAgent() {
  return createAgent({
    model: modelFor(script),
    instructions: "Answer in one short sentence. Use the tool for facts about trees.",
    tools: { tree_facts: treeFacts },
    store: directory,
  });
}

async function ask(agent, text) {
  console.log(`\nyou  ${text}`);
  const run = agent.run(text, { sessionId: "garden" });
  console.log(`bot  ${await run.text()}`);
  const { iterations, usage } = await run.result;
  const calls = iterations === 1 ? "1 model call" : `${iterations} model calls`;
  console.log(`     (${calls}, ${usage.inputTokens + usage.outputTokens} tokens)`);
}

console.log(aboutModel);
try {
  const first = openAgent();
  await first.createSession("garden", { metadata: { user: "ada" } });
  await ask(first, "I am Ada, and I like larches.");
  await ask(first, "Who am I?");
  await first.close();

  // A second agent, as in another process tomorrow. The conversation is in the store, not in the agent object.
  const second = openAgent();
  await ask(second, "How tall does my favourite tree grow?");

  const { messages } = await second.loadBranch("garden");
  console.log(`\nOn file: ${messages.map(({ role }) => role).join(", ")}`);
  await second.close();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
