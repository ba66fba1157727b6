// The guided tour: a conversation on SQLite that is forked, killed in the middle of a turn, and goes on.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, styleText } from "node:util";
import { openSessions } from "bough";
import { answerTo, book, bookings, stream } from "./scripted.mjs";

const { values } = parseArgs({ options: { keep: { type: "boolean" }, help: { type: "boolean", short: "h" } } });
if (values.help) {
  console.log("npm start [-- --keep]\n\n  --keep   leave the SQLite file in place and say where it is\n");
  process.exit(0);
}

const paint = (style, text) => (process.stdout.isTTY && !process.env.NO_COLOR ? styleText(style, text) : text);
const dim = (text) => paint("gray", text);
const bold = (text) => paint("bold", text);
const step = (() => {
  let n = 0;
  return (title) => console.log(`\n${paint(["bold", "green"], `${++n}.`)} ${bold(title)}`);
})();
const fact = (text) => console.log(`   ${dim("·")} ${text}`);

const directory = mkdtempSync(join(tmpdir(), "bough-tour-"));
const file = join(directory, "bough.db");
const store = `sqlite:${file}`;
const ledger = join(directory, "bookings.txt");

console.log(`${bold("Bough")}: durable sessions, branches and events for agents.`);
console.log(dim("The model in this tour is a scripted stand-in; everything else is real."));

try {
  await conversation();
  await alternatives();
  await crash();
  await recovery();
  await undo();
  await tree();
} finally {
  if (values.keep) console.log(dim(`\nKept: ${file}`));
  else rmSync(directory, { recursive: true, force: true });
}

async function ask(sessions, branchId, text) {
  console.log(`   ${paint("cyan", "you")}  ${text}`);
  const turn = await sessions.beginTurn({ sessionId: "trip", branchId }, text);
  process.stdout.write(`   ${paint("magenta", "bot")}  `);
  let answer = "";
  for await (const word of stream(answerTo(text))) {
    answer += word;
    process.stdout.write(word);
  }
  process.stdout.write("\n");
  await turn.commit({ messages: [{ role: "assistant", content: answer }], reason: "stop" });
}

async function conversation() {
  step("A session on SQLite, every turn durable when it is acknowledged");
  const sessions = await openSessions(store);
  await sessions.createSession("trip", { metadata: { user: "ada" } });
  await ask(sessions, "main", "Plan me a trip to Lisbon.");
  await ask(sessions, "main", "And if it rains?");
  await sessions.close();
}

async function alternatives() {
  step("Fork at the first answer: one row, nothing copied");
  const sessions = await openSessions(store);
  const { messages } = await sessions.loadBranch("trip", "main");
  const fork = await sessions.forkBranch({
    sessionId: "trip",
    branchId: "main",
    from: messages[1].id,
    newBranchId: "cheap",
  });
  fact(`"${fork.id}" shares ${fork.messageCount} messages with "${fork.fork.forkedFrom}"`);
  await ask(sessions, "cheap", "Make it cheap.");
  await sessions.close();
}

async function crash() {
  step("A turn with three tools at once, killed with SIGKILL in the middle");
  const victim = spawn(process.execPath, [fileURLToPath(new URL("victim.mjs", import.meta.url)), store, ledger], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  fact(`process ${victim.pid} books a hotel, a train and a table`);
  let recorded = 0;
  for await (const chunk of victim.stdout) {
    for (const call of String(chunk).trim().split("\n")) fact(`${call} has its result, durably`);
    recorded += String(chunk).trim().split("\n").length;
    if (recorded === 2) victim.kill("SIGKILL");
  }
  await new Promise((resolve) =>
    victim.exitCode === null && !victim.signalCode ? victim.once("exit", resolve) : resolve(),
  );
  fact(paint("red", `killed with ${victim.signalCode}; call-table never finished`));
}

async function recovery() {
  step("A new process finds the turn where it was left and runs only what is missing");
  const sessions = await openSessions(store);
  const { uncommittedTurn } = await sessions.loadBranch("trip", "main");
  const results = uncommittedTurn.messages.filter(({ role }) => role === "tool").flatMap(({ content }) => content);
  fact(`uncommitted turn ${uncommittedTurn.id}: ${results.length} of ${bookings.length} results are there`);
  const turn = await sessions.resumeTurn({ sessionId: "trip", branchId: "main" });
  const done = new Set(results.map(({ toolCallId }) => toolCallId));
  for (const call of bookings.filter(({ toolCallId }) => !done.has(toolCallId))) {
    fact(`running ${call.toolCallId}`);
    const output = await book(call, ledger);
    await turn.toolReturned({ callId: call.toolCallId, toolName: call.toolName, output });
  }
  await turn.commit({ messages: [{ role: "assistant", content: "All three are booked." }], reason: "stop" });
  const executions = readFileSync(ledger, "utf8").trim().split("\n");
  fact(`executed in all: ${executions.join(", ")}; each once`);
  await sessions.close();
}

async function undo() {
  step("Undo takes the branch back; the log keeps what happened");
  const sessions = await openSessions(store);
  const before = await sessions.loadBranch("trip", "main");
  await ask(sessions, "main", "Take the train instead?");
  await sessions.revertBranch({ sessionId: "trip", branchId: "main", toSeq: before.seq });
  const after = await sessions.loadBranch("trip", "main");
  fact(`${after.messages.length} messages again, at position ${after.seq} of the log (was ${before.seq})`);
  await sessions.close();
}

async function tree() {
  step("The branch tree");
  const sessions = await openSessions(store);
  await sessions.forkBranch({ sessionId: "trip", branchId: "cheap", fromMessageIndex: 3, newBranchId: "cheaper" });
  const branches = await sessions.listBranches("trip");
  const byId = new Map(branches.map((branch) => [branch.id, branch]));
  const draw = (id, indent, last) => {
    const { messageCount, seq, fork, children } = byId.get(id);
    const line = fork ? `${indent}${last ? "└─" : "├─"} ` : "";
    const from = fork ? dim(`, forked after message ${fork.forkedAtMessageIndex}`) : "";
    console.log(`   ${line}${bold(id)}  ${messageCount} messages, position ${seq}${from}`);
    const deeper = fork ? `${indent}${last ? "   " : "│  "}` : indent;
    for (const [i, child] of children.entries()) draw(child, deeper, i === children.length - 1);
  };
  for (const root of branches.filter(({ fork }) => !fork)) draw(root.id, "", true);
  const report = await sessions.maintain();
  await sessions.close();
  console.log(
    dim(
      `\n   ${report.events} facts in ${Math.round(statSync(file).size / 1024)} KiB of SQLite, ${report.problems.length} problems found.`,
    ),
  );
}
