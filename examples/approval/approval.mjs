// Approval: a tool that needs permission. First the question is answered while the run waits; then a question is parked,
// and answered later by another process.
//
// In a terminal, you answer. Anywhere else (a pipe, CI), the scripted answers below are used.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAgent, defineTool } from "bough";
import { z } from "zod";
import { aboutModel, modelFor } from "../model.mjs";
import { ask } from "../terminal.mjs";

const scriptedAnswers = { "notes.txt": "y", "thesis.txt": "n" };

const directory = mkdtempSync(join(tmpdir(), "bough-approval-"));
const sessionId = "cleaning";

const remove = defineTool({
  description: "Removes a file of the user.",
  input: z.object({ path: z.string() }),
  // true, false, or a function of the input: temporary files may be removed without asking.
  permission: ({ path }) => !path.startsWith("tmp/"),
  effect: "once",
  execute: ({ path }) => `${path} is gone`,
});

const requests = {
  first: "Remove tmp/cache, notes.txt and thesis.txt.",
  second: "Remove photos.zip as well.",
};

/** Calls the tool for each path in the last message; once the results are there, reports them. */
function script(prompt) {
  const last = prompt.at(-1);
  if (last.role === "tool") {
    const outputs = last.content.map(({ output }) => output.value ?? `denied (${output.reason})`);
    return `Done: ${outputs.join("; ")}.`;
  }
  const paths = last.content.at(-1).text.match(/[\w/]+\.\w+|tmp\/\w+/g);
  return { calls: paths.map((path) => ({ name: "remove", input: { path } })) };
}

function openAgent() {
  const store = `sqlite:${join(directory, "bough.db")}`;
  return createAgent({ model: modelFor(script), tools: { remove }, store });
}

/** A person's answer to a permission question. */
async function decide({ toolName, input }) {
  const question = `  ? ${toolName} ${input.path}: allow? [y]es, [n]o, [a]lways  `;
  const given = await ask(question, scriptedAnswers[input.path] ?? "n");
  if (given.startsWith("a")) return { approved: true, choice: "always" }; // for this tool, in the whole session
  if (given.startsWith("y")) return { approved: true };
  return { approved: false, reason: "keep it" }; // the model reads the reason
}

/** A user is present: the question arrives as an event, the run waits, and `respond` lets it continue. */
async function askedAndAnswered() {
  console.log(`\n1. Asked while it runs\n  you: ${requests.first}`);
  const agent = openAgent();
  await agent.createSession(sessionId);
  const run = agent.run(requests.first, { sessionId });
  for await (const event of run) {
    if (event.type === "interaction.opened") await run.respond(event.id, await decide(event.request));
    if (event.type === "tool.returned") console.log(`  ${event.output.value ?? `denied: ${event.output.reason}`}`);
  }
  console.log(`  bot: ${await run.text()}`);
  await agent.close();
}

/** No user is present: the run releases the branch and ends. The question stays in the log; the answer may take days. */
async function parked() {
  console.log(`\n2. Asked, and left behind\n  you: ${requests.second}`);
  const agent = openAgent();
  const { status, interactions = [] } = await agent.run(requests.second, { sessionId, questions: "park" }).result;
  console.log(`  the run is ${status}; open questions: ${interactions.map(({ kind }) => kind).join(", ") || "none"}`);
  await agent.close();
}

/** A second agent, as in another process, finds the question, answers it, and gets the run that continues the turn. */
async function answeredLater() {
  console.log("\n3. Answered by somebody else");
  const agent = openAgent();
  const [left] = await agent.recover({ resume: false });
  if (left) {
    const [question] = left.waitingFor;
    console.log(`  found: ${question.request.toolName} ${question.request.input.path}`);
    const run = await agent.respond(left, question.id, { approved: true }, { by: "ada" });
    console.log(`  bot: ${await run.text()}`);
  } else console.log("  nothing was left behind");
  await agent.close();
}

console.log(aboutModel);
try {
  await askedAndAnswered();
  await parked();
  await answeredLater();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
