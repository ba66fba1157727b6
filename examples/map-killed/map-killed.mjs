// A map that is killed: a workflow works on 20 items, four at a time, and its process is killed with SIGKILL in the middle. A
// new process runs only the items that have no record. Those that were under way when the process died are among them.
//
// Without arguments, this file starts itself twice: as the process that dies, and as the one that continues.

import { spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createWorkflow, workflow } from "bough/workflows";
import { aboutModel } from "../model.mjs";

const [part, directory] = process.argv.slice(2);
const pages = Array.from({ length: 20 }, (_, i) => `page-${i + 1}`);

const index = workflow("index", async (flow, items) => {
  const words = await flow.map("read", items, (page) => flow.step("count", () => count(page)), {
    key: (page) => page, // the item's identity: the order of the list may change
    parallel: 4,
  });
  return words.reduce((sum, each) => sum + each, 0);
});

/** The work: it leaves a line in a file, so that it shows how often it was done. */
async function count(page) {
  const number = Number(page.slice(5));
  if (part === "dies" && number > 12) await wait(60_000); // longer than this process lives
  appendFileSync(join(directory, "counted.txt"), `${page}\n`);
  return number * 10;
}

/** The same workflow in both processes; only the store carries data between them. */
const openRunner = () => createWorkflow(index, { store: `sqlite:${join(directory, "bough.db")}` });

/** The first process: kills itself without any clean-up as soon as twelve results are durable. */
async function die() {
  const runner = openRunner();
  const run = runner.run(pages, { executionId: "book" });
  let durable = 0;
  for await (const event of run) {
    if (event.type !== "step.returned") continue;
    // A kept event arrives after the store has acknowledged it, so these results can't be lost.
    if (++durable < 12) continue;
    console.log(`  ${durable} results are in the log`);
    process.kill(process.pid, "SIGKILL");
  }
  await run.result; // throws if the run failed
}

/** The second process: finds the execution and goes on with it. */
async function goOn() {
  const before = counted().length;
  const runner = openRunner();
  const [left] = await runner.recover();
  const { output } = await left.run.result;
  console.log(`  counted now: ${counted().length - before}`);
  console.log(`  the sum of all pages: ${output}`);
  await runner.close();
}

const counted = () => readFileSync(join(directory, "counted.txt"), "utf8").trim().split("\n");

async function show() {
  const place = mkdtempSync(join(tmpdir(), "bough-map-"));
  try {
    console.log(`${aboutModel}\n\nThe first process`);
    const signal = await start("dies", place);
    console.log(signal ? `  killed with ${signal}` : "  ended before it could be killed");
    console.log("\nThe second process");
    await start("goes-on", place);
    const lines = readFileSync(join(place, "counted.txt"), "utf8").trim().split("\n");
    const counted = new Set(lines).size;
    console.log(`\nCounted in all: ${counted} pages; more than once: ${lines.length - counted}`);
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
