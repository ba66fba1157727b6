// Subagents: a writer with two helpers. One of them has to ask a person. The process is killed while that question is open; a
// new process answers it, and no helper does again what it has done.
//
// Without arguments, this file starts itself twice: as the process that dies, and as the one that continues.

import { spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createAgent, defineTool, subagent } from "bough";
import { z } from "zod";
import { aboutModel, modelFor } from "../model.mjs";

const [part, directory] = process.argv.slice(2);

const lookUp = defineTool({
  description: "Looks something up in the encyclopedia.",
  input: z.object({ about: z.string() }),
  execute({ about }) {
    appendFileSync(join(directory, "looked-up.txt"), `${about}\n`);
    return `${about}: up to 1,000 years old.`;
  },
});
const askPerson = defineTool({
  description: "Asks the person a question.",
  input: z.object({ question: z.string() }),
  execute: ({ question }, context) => context.ask(question),
});

/** The result of the last tool, as text. */
const lastResult = (prompt) => prompt.at(-1).content[0].output.value;
const hasResult = (prompt) => prompt.at(-1).role === "tool";

/** The same agents in both processes. The helpers have no store: they work in the writer's. */
function openWriter() {
  const botanist = createAgent({
    name: "botanist",
    model: modelFor((prompt) =>
      hasResult(prompt) ? lastResult(prompt) : { calls: [{ name: "look_up", input: { about: "Oaks" } }] },
    ),
    instructions: "Find out what you are asked. Use look_up.",
    tools: { look_up: lookUp },
  });
  const photographer = createAgent({
    name: "photographer",
    model: modelFor((prompt) =>
      hasResult(prompt)
        ? `A picture in ${lastResult(prompt)}.`
        : { calls: [{ name: "ask_person", input: { question: "Which season?" } }] },
    ),
    instructions: "Describe one picture. Ask the person which season it shows.",
    tools: { ask_person: askPerson },
  });
  return createAgent({
    id: "writer",
    name: "writer",
    model: modelFor((prompt) =>
      hasResult(prompt)
        ? "The article is done: oaks get up to 1,000 years old, shown in autumn."
        : {
            calls: [
              { name: "research", input: { input: "How old do oaks get?" } },
              { name: "picture", input: { input: "A picture of an oak." } },
            ],
          },
    ),
    instructions: "Write one sentence about oaks. Use research and picture first, both at once.",
    tools: {
      research: subagent(botanist, { description: "Researches one question.", permission: false }),
      picture: subagent(photographer, { description: "Describes a picture.", permission: false }),
    },
    store: `sqlite:${join(directory, "bough.db")}`,
  });
}

/** The first process: kills itself when one helper is done and the other one waits for an answer. */
async function die() {
  const writer = openWriter();
  await writer.createSession("article");
  const waits = new Set(["answer", "question"]);
  for await (const event of writer.run("Write about oaks.", { sessionId: "article" })) {
    if (event.type === "text-delta" || event.type === "interaction.answered") continue;
    const who = event.agent?.chain.join(" > ");
    if (event.type === "turn.started") console.log(`  ${who} begins`);
    if (event.type === "tool.returned" && event.branchId === "main") {
      console.log(`  ${event.toolName} has its result: ${event.output.value}`);
      waits.delete("answer");
    }
    // The question of the helper is a question of the writer.
    if (event.type === "interaction.opened") {
      console.log(`  ${event.request.child.chain.join(" > ")} asks: ${event.request.question}`);
      waits.delete("question");
    }
    if (waits.size === 0) process.kill(process.pid, "SIGKILL");
  }
}

/** The second process: answers what waits, on the writer's branch, and the whole tree goes on. */
async function goOn() {
  const writer = openWriter();
  const { interactions } = await writer.listInteractions();
  const [question] = interactions;
  console.log(`  waiting on ${question.branchId}: ${question.request.question}`);
  const run = await writer.respond(question, question.id, { answer: "autumn" });
  for await (const event of run) {
    if (event.type === "turn.resumed") console.log(`  ${event.agent.chain.join(" > ")} goes on`);
    if (event.type === "tool.returned" && event.branchId === "main") {
      console.log(`  ${event.toolName} has its result: ${event.output.value}`);
    }
  }
  console.log(`  ${await run.text()}`);
  for (const { id, metadata } of await writer.listBranches("article", { visibility: "all" })) {
    console.log(`  branch ${id}${metadata.subAgentName ? ` (${metadata.subAgentName})` : ""}`);
  }
  await writer.close();
}

async function show() {
  const place = mkdtempSync(join(tmpdir(), "bough-researcher-"));
  try {
    console.log(aboutModel);
    console.log("\nThe first process");
    const signal = await start("dies", place);
    console.log(signal ? `  killed with ${signal}` : "  ended before it could be killed");
    console.log("\nThe second process");
    await start("goes-on", place);
    console.log(`\nLooked up in all: ${readFileSync(join(place, "looked-up.txt"), "utf8").trim()}`);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

function start(which, place) {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), which, place], { stdio: "inherit" });
  return new Promise((resolve, reject) =>
    child.once("exit", (code, signal) =>
      code ? reject(new Error(`The process ended with ${code}.`)) : resolve(signal),
    ),
  );
}

if (part === "dies") await die();
else if (part === "goes-on") await goOn();
else await show();
