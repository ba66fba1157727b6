#!/usr/bin/env node
// What the log costs, compared with what it can't cost less than. Every figure is a ratio of two things measured in the
// same run, taking turns, because machines differ and have bad minutes. Each measurement runs in a process of its own.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runMeasurement } from "./lib/runner.mjs";
import { fileSystemOf, storeKinds } from "./lib/stores.mjs";
import { passes, renderTable } from "./lib/table.mjs";

const here = dirname(fileURLToPath(import.meta.url));

const measurements = {
  "append-cost": "1. One turn of two messages, as the history behind it grows",
  "durable-turn": "2. One durable turn, beside two bare commits of the same bytes",
  "group-commit": "3. Durable appends with 64 branches at once, beside one after the other",
  "stored-bytes": "4. Stored bytes for each byte of the conversation",
  fork: "5. Fork at random messages of a long branch, beside appending one event",
  "cold-load": "6. Load in a new process, beside JSON.parse of the same messages",
};

const help = `npm run bench:log -- [options]

Measures what the log costs and prints one table. All figures are ratios measured in the same run.

  --quick        fewer and smaller rounds: minutes become seconds, figures become rough
  --only NAME    one measurement (may be repeated): ${Object.keys(measurements).join(", ")}
  --store NAME   one store (may be repeated): ${storeKinds.join(", ")}
  --dir DIR      where the stores are put (default: the system's temporary directory, or bench/results if that is in memory)
  --json FILE    where the figures go as well (default: bench/results/log.json)
  --strict       end with 1 when a target is missed
  --help         this
`;

function readOptions() {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string", multiple: true, default: Object.keys(measurements) },
      store: { type: "string", multiple: true, default: storeKinds },
      dir: { type: "string" },
      json: { type: "string", default: join(here, "results/log.json") },
      strict: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  for (const name of values.only) if (!measurements[name]) throw new Error(`There is no measurement "${name}".`);
  for (const kind of values.store) if (!storeKinds.includes(kind)) throw new Error(`There is no store "${kind}".`);
  return values;
}

/** A directory that is on a disk, or syncs would cost nothing. */
function diskDirectory() {
  if (fileSystemOf(tmpdir()) !== "tmpfs") return tmpdir();
  const directory = join(here, "results");
  mkdirSync(directory, { recursive: true });
  return directory;
}

function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
  else if (!/round|messages|process/.test(text)) process.stderr.write(`${text}\n`);
}

async function main(options) {
  const dir = mkdtempSync(join(resolve(options.dir ?? diskDirectory()), "bough-bench-"));
  const removeAll = () => rmSync(dir, { recursive: true, force: true });
  process.on("exit", removeAll);
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));

  const machine = {
    node: process.version,
    cpus: `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}`,
    fileSystem: `${fileSystemOf(dir)} (${dirname(dir)})`,
    mode: options.quick ? "quick" : "full",
    at: new Date().toISOString(),
  };
  console.log(`Node ${machine.node} · ${machine.cpus} · ${machine.fileSystem} · ${machine.mode}\n`);

  const groups = [];
  for (const name of Object.keys(measurements).filter((each) => options.only.includes(each))) {
    const rows = await runMeasurement(name, { dir, quick: options.quick, stores: options.store }, (text) =>
      progress(`${name}: ${text}`),
    );
    groups.push({ name, title: measurements[name], rows });
  }
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[2K");
  console.log(renderTable(groups));
  report(groups, machine, options);
}

function report(groups, machine, { json, strict }) {
  const rows = groups.flatMap((group) => group.rows);
  const missed = rows.filter((row) => passes(row) === false);
  const failed = rows.filter((row) => row.failed);
  const judged = rows.filter((row) => passes(row) !== undefined).length;
  const file = resolve(json);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify({ machine, groups }, null, 2)}\n`);
  console.log(
    `\n${judged - missed.length} of ${judged} targets met${failed.length ? `, ${failed.length} not measured` : ""} · ${file}`,
  );
  if (strict && (missed.length > 0 || failed.length > 0)) process.exitCode = 1;
}

try {
  const options = readOptions();
  if (options.help) console.log(help);
  else await main(options);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
