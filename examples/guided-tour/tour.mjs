// The guided tour: a conversation on SQLite that is forked, killed in the middle of its tools, recovered, paused for a
// permission, and undone.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { aboutModel } from "../model.mjs";
import { flow, paint } from "../terminal.mjs";
import { openAgent } from "./agent.mjs";

const { values } = parseArgs({ options: { keep: { type: "boolean" }, help: { type: "boolean", short: "h" } } });
if (values.help) {
  console.log("npm run tour [-- --keep]\n\n  --keep   leave the SQLite file in place and say where it is\n");
  process.exit(0);
}

const directory = mkdtempSync(join(tmpdir(), "bough-tour-"));
const file = join(directory, "bough.db");
const ledger = join(directory, "bookings.txt");
const place = { store: `sqlite:${file}`, ledger };
const main = { sessionId: "trip", branchId: "main" };

const dim = (text) => paint("gray", text);
const bold = (text) => paint("bold", text);
let steps = 0;
const step = (title) => console.log(`\n${paint(["bold", "green"], `${++steps}.`)} ${bold(title)}`);
const fact = (text) => console.log(`   ${dim("·")} ${text}`);

console.log(`${bold("Bough")}: durable sessions, branches and events for agents.`);
console.log(dim(`${aboutModel}.`));
console.log(dim("Everything else is real: the loop, the log, SQLite, and the kill."));

try {
  await conversation();
  await alternative();
  await crash();
  await recovery();
  await permission();
  await undo();
  await tree();
} finally {
  if (values.keep) console.log(dim(`\nKept: ${file}`));
  else rmSync(directory, { recursive: true, force: true });
}

/** Each step opens its own agent: only the store carries data from one step to the next. */
async function withAgent(work) {
  const agent = openAgent(place);
  await work(agent);
  await agent.close();
}

async function ask(agent, branchId, text) {
  console.log(`   ${paint("cyan", "you")}  ${text}`);
  await speak(agent.run(text, { ...main, branchId }));
}

/** Prints the answer of a run as it streams. */
async function speak(run, onEvent = () => {}) {
  let answer;
  for await (const event of run) {
    if (event.type === "text-start") {
      process.stdout.write(`   ${paint("magenta", "bot")}  `);
      answer = flow(8);
    }
    if (event.type === "text-delta") answer.write(event.text);
    if (event.type === "text-end") answer.end();
    await onEvent(event);
  }
  const { error } = await run.result;
  if (error) throw error;
}

async function conversation() {
  step("A session on SQLite, every turn durable when it is acknowledged");
  await withAgent(async (agent) => {
    await agent.createSession("trip", { metadata: { user: "ada" } });
    await ask(agent, "main", "Plan me a trip to Lisbon.");
    await ask(agent, "main", "And if it rains?");
  });
}

async function alternative() {
  step("Fork at the first answer: one row, nothing copied");
  await withAgent(async (agent) => {
    const { messages } = await agent.loadBranch(main);
    const fork = await agent.forkBranch(main, { from: messages[1].id, newBranchId: "cheap" });
    fact(`"${fork.id}" shares ${fork.messageCount} messages with "${fork.fork.forkedFrom}"`);
    await ask(agent, "cheap", "Make it cheap.");
  });
}

async function crash() {
  step("A turn with three tools at once, killed with SIGKILL in the middle");
  const victim = spawn(process.execPath, [fileURLToPath(new URL("victim.mjs", import.meta.url)), place.store, ledger], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exit = once(victim, "exit");
  fact(`process ${victim.pid} books a hotel, a train and a table`);
  let results = 0;
  for await (const what of createInterface(victim.stdout)) {
    fact(`the ${what} has its result, durably`);
    if (++results === 2) victim.kill("SIGKILL");
  }
  const [, signal] = await exit;
  fact(paint("red", signal ? `killed with ${signal}` : "it ended before it could be killed"));
}

async function recovery() {
  step("recover() finds the turn where it was left and runs only what is missing");
  await withAgent(async (agent) => {
    const { uncommittedTurn } = await agent.loadBranch(main);
    if (!uncommittedTurn) return fact("nothing was left open");
    const parts = uncommittedTurn.messages.flatMap(({ content }) => (typeof content === "string" ? [] : content));
    const count = (type) => parts.filter((part) => part.type === type).length;
    fact(`an uncommitted turn: ${count("tool-result")} of ${count("tool-call")} results are there`);
    const [{ run }] = await agent.recover();
    await speak(run, (event) => {
      if (event.type === "tool.returned") fact(`the ${event.output.value.booked} is booked now`);
    });
    const executions = readFileSync(ledger, "utf8").trim().split("\n");
    const isEachOnce = new Set(executions).size === executions.length;
    fact(`executed in all: ${executions.join(", ")}; ${isEachOnce ? "each once" : "and something twice!"}`);
  });
}

async function permission() {
  step("A tool that needs permission: the question and its answer are facts");
  await withAgent(async (agent) => {
    console.log(`   ${paint("cyan", "you")}  Cancel the table.`);
    const run = agent.run("Cancel the table.", main);
    await speak(run, async (event) => {
      if (event.type === "interaction.opened") {
        const { toolName, input } = event.request;
        fact(`${paint("yellow", `may ${toolName} run for the ${input.what}?`)} ${dim(`(position ${event.seq})`)}`);
        await run.respond(event.id, { approved: true });
      }
      if (event.type === "interaction.answered") fact(`allowed, by this tour ${dim(`(position ${event.seq})`)}`);
    });
  });
}

async function undo() {
  step("Undo takes the branch back; the log keeps what happened");
  await withAgent(async (agent) => {
    const before = await agent.loadBranch(main);
    await ask(agent, "main", "Should I take the bus instead?");
    const { seq, messages } = await agent.loadBranch(main);
    fact(`${messages.length} messages, position ${seq} of the log`);
    await agent.revertBranch(main, { toSeq: before.seq });
    const after = await agent.loadBranch(main);
    fact(`undone: ${after.messages.length} messages again, position ${after.seq}`);
  });
}

async function tree() {
  step("The branch tree");
  await withAgent(async (agent) => {
    const source = await agent.loadBranch({ sessionId: "trip", branchId: "cheap" });
    await agent.forkBranch({ ...main, branchId: "cheap" }, { from: source.messages[2].id, newBranchId: "cheaper" });
    draw(await agent.listBranches("trip"));
    const { events, problems } = await agent.maintain();
    const kib = Math.round(statSync(file).size / 1024);
    console.log(dim(`\n   ${events} facts in ${kib} KiB of SQLite, ${problems.length} problems found.`));
  });
}

function draw(branches) {
  const byId = new Map(branches.map((branch) => [branch.id, branch]));
  const drawOne = (id, indent, isLast) => {
    const { messageCount, seq, fork, children } = byId.get(id);
    const line = fork ? `${indent}${isLast ? "└─" : "├─"} ` : "";
    const from = fork ? dim(`, forked after message ${fork.forkedAtMessageIndex + 1}`) : "";
    console.log(`   ${line}${bold(id)}  ${messageCount} messages, position ${seq}${from}`);
    const deeper = fork ? `${indent}${isLast ? "   " : "│  "}` : indent;
    for (const [i, child] of children.entries()) drawOne(child, deeper, i === children.length - 1);
  };
  for (const { id } of branches.filter(({ fork }) => !fork)) drawOne(id, "", true);
}
