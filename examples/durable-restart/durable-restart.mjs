// Durable restart: a process is killed with SIGKILL while three tools run. A new process finishes the turn, and runs no
// tool again that already has a result.
//
// Without arguments, this file starts itself twice: as the process that dies, and as the one that continues.

import { spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createAgent, defineTool } from "bough";
import { z } from "zod";
import { aboutModel, modelFor } from "../model.mjs";

const [part, directory] = process.argv.slice(2);

const book = defineTool({
  description: "Books one thing.",
  input: z.object({ what: z.enum(["hotel", "train", "table"]) }),
  // A call with a recorded result never runs again. A call that was cut off does, with the same id, which a booking system
  // can use as an idempotency key. If it supports no such key, use `effect: "once"`.
  effect: "retry",
  async execute({ what }, { callId }) {
    if (part === "dies" && what === "table") await wait(60_000); // longer than this process lives
    appendFileSync(join(directory, "bookings.txt"), `${what}\n`);
    return { booked: what, reference: callId };
  },
});

/** The same agent in both processes; only the store carries data between them. */
function openAgent() {
  return createAgent({
    id: "travel-agent", // stored with the turn: recovery resumes only turns of its own agent
    model: modelFor((prompt) =>
      prompt.at(-1).role === "tool"
        ? "Hotel, train and table are booked. Have a good trip!"
        : { calls: ["hotel", "train", "table"].map((what) => ({ name: "book", input: { what } })) },
    ),
    tools: { book },
    store: `sqlite:${join(directory, "bough.db")}`,
  });
}

/** The first process: kills itself without any clean-up as soon as two results are durable. */
async function die() {
  const agent = openAgent();
  await agent.createSession("trip");
  let results = 0;
  const run = agent.run("Book a hotel, a train and a table.", { sessionId: "trip" });
  for await (const event of run) {
    if (event.type !== "tool.returned") continue;
    console.log(`  ${event.output.value.booked}: the result is in the log, at position ${event.seq}`);
    // A kept event arrives after the store has acknowledged it, so these two results can't be lost.
    if (++results === 2) process.kill(process.pid, "SIGKILL");
  }
  await run.text(); // throws if the run failed
}

/** The second process: finds the open turn and resumes it. */
async function goOn() {
  const agent = openAgent();
  const [left] = await agent.recover();
  if (!left) return console.log("  nothing was left open");
  for await (const event of left.run) {
    if (event.type === "turn.resumed") console.log(`  turn ${event.turnId} is taken up`);
    if (event.type === "tool.returned") console.log(`  ${event.output.value.booked}: booked now`);
  }
  console.log(`  ${await left.run.text()}`);
  await agent.close();
}

async function show() {
  const place = mkdtempSync(join(tmpdir(), "bough-restart-"));
  try {
    console.log(aboutModel);
    writeFileSync(join(place, "bookings.txt"), "");
    console.log("\nThe first process");
    const signal = await start("dies", place);
    console.log(signal ? `  killed with ${signal}` : "  ended before it could be killed");
    console.log("\nThe second process");
    await start("goes-on", place);
    const bookings = readFileSync(join(place, "bookings.txt"), "utf8").trim().split("\n");
    console.log(`\nBooked in all: ${bookings.join(", ")}`);
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
