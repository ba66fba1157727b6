// A review in the background: the author starts it and goes on writing; the process is killed while the reviewer works. A new process
// finishes the review, and its end begins a turn of the author.
//
// Without arguments, this file starts itself twice: as the process that dies, and as the one that continues.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { backgroundTasks, createAgent, defineTool, subagent } from "bough";
import { z } from "zod";
import { aboutModel, modelFor } from "../model.mjs";

const [part, directory] = process.argv.slice(2);
const main = { sessionId: "book", branchId: "main" };

let goesOn;
const authorGoesOn = new Promise((resolve) => {
  goesOn = resolve;
});

const readDraft = defineTool({
  description: "Reads a chapter.",
  input: z.object({ chapter: z.number() }),
  async execute({ chapter }) {
    // The first process dies here, when the author has gone on.
    if (part === "die") {
      await authorGoesOn;
      process.kill(process.pid, "SIGKILL");
    }
    return `Chapter ${chapter}: Oaks are very very old.`;
  },
});

const hasResult = (prompt) => prompt.at(-1).role === "tool";
const isNotice = (prompt) => JSON.stringify(prompt.at(-1).content).includes("<task");

/** The same agents in both processes. The reviewer has no store: it works in the author's. */
function openAuthor() {
  const reviewer = createAgent({
    name: "reviewer",
    model: modelFor((prompt) =>
      hasResult(prompt)
        ? 'One word too many: "very very".'
        : { calls: [{ name: "read_draft", input: { chapter: 1 } }] },
    ),
    instructions: "Read chapter 1 with read_draft, then name its mistakes in one sentence.",
    tools: { read_draft: readDraft },
  });
  return createAgent({
    id: "author",
    name: "author",
    model: modelFor((prompt) => {
      if (isNotice(prompt)) return 'The review is here, and "very very" is gone.';
      return hasResult(prompt)
        ? "The review has begun; I go on with chapter 2."
        : { calls: [{ name: "review", input: { input: "Review chapter 1." } }] };
    }),
    instructions:
      "Have chapter 1 reviewed with the tool review. When you are told of its result, say what you changed.",
    tools: {
      review: subagent(reviewer, { description: "Reviews a chapter.", permission: false, mode: "background" }),
      ...backgroundTasks(),
    },
    store: `sqlite:${join(directory, "bough.db")}`,
  });
}

/** The first process: it is killed when the reviewer reads. */
async function die() {
  const author = openAuthor();
  await author.createSession("book");
  console.log(`author: ${await author.run("Have chapter 1 reviewed.", "book").text()}`);
  const [task] = await author.listTasks(main);
  console.log(`${task.name} is ${task.status}`);
  goesOn();
}

/** The second process: recovers, and waits for the turn that the end begins. */
async function goOn() {
  const author = openAuthor();
  const [task] = await author.listTasks(main);
  console.log(`${task.name} is ${task.status} without a process`);
  author.keepRecovering({ everyMs: 50, scanEveryMs: 50 });
  for await (const { type, status } of author.watch(main)) {
    if (type === "task.ended") console.log(`the review has ended: ${status}`);
    if (type === "turn.committed" && (await author.loadBranch(main)).turns.length === 2) break;
  }
  const { messages, tasks } = await author.loadBranch(main);
  console.log(`author: ${messages.at(-1).content[0].text}`);
  console.log(`Tasks left: ${tasks.length}`);
  await author.close();
}

function start(name, folder) {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), name, folder], { stdio: "inherit" });
  return new Promise((resolve) => child.on("close", (_code, signal) => resolve(signal)));
}

if (part === "die") await die();
else if (part === "goOn") await goOn();
else {
  console.log(aboutModel);
  const folder = mkdtempSync(join(tmpdir(), "bough-review-"));
  const signal = await start("die", folder);
  console.log(signal === null ? "(The first process ended by itself.)" : `--- killed with ${signal} ---`);
  await start("goOn", folder);
  rmSync(folder, { recursive: true, force: true });
}
