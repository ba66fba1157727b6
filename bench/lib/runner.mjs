// Runs one measurement in a process of its own (measure.mjs), so that the heap and the compiled code of one don't colour
// the next.

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("./measure.mjs", import.meta.url));

/** The rows of a measurement; one that breaks off gives the rows it had, and one that says why. */
export function runMeasurement(name, options, progress) {
  return new Promise((resolve) => {
    const rows = [];
    const child = fork(program, [name, JSON.stringify(options)], { execArgv: ["--expose-gc", ...process.execArgv] });
    child.on("message", ({ progress: text, row }) => {
      if (row) rows.push(row);
      else progress(text);
    });
    child.on("exit", (code, signal) => {
      if (code !== 0) rows.push({ what: name, skipped: `the process ended with ${code ?? signal}`, failed: true });
      resolve(rows);
    });
  });
}

/** Does the work for each store that was asked for; a store that fails is a row that says so. */
export async function eachStore(context, kinds, work) {
  for (const kind of kinds.filter((each) => context.stores.includes(each))) {
    try {
      await work(kind);
    } catch (error) {
      context.row({ what: kind, skipped: String(error?.message ?? error).split("\n")[0], failed: true });
      if (process.env.BENCH_DEBUG) console.error(error);
    }
  }
}
