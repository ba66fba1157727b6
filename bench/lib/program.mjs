// What the programs that measure share: the place for files, the machine's description, progress, and the report.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { fileSystemOf } from "./machine.mjs";
import { runMeasurement } from "./runner.mjs";
import { passes, renderTable } from "./table.mjs";

const results = fileURLToPath(new URL("../results", import.meta.url));

/** Options that every program has. */
export const commonOptions = (name, measurements) => ({
  quick: { type: "boolean", default: false },
  only: { type: "string", multiple: true, default: Object.keys(measurements) },
  dir: { type: "string" },
  json: { type: "string", default: join(results, `${name}.json`) },
  strict: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
});

export function checkNames(given, known, what) {
  for (const name of given) if (!known.includes(name)) throw new Error(`There is no ${what} "${name}".`);
}

/** Runs `main` unless help is wanted; what goes wrong is one line and the exit code 2. */
export async function start({ readOptions, help, main }) {
  try {
    const options = readOptions();
    if (options.help) console.log(help);
    else await main(options);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  }
}

/** Measures what was asked for, each in a process of its own, and prints and writes what came out. */
export async function measure(measurements, options, { context = {}, about = {}, folder = "" } = {}) {
  const dir = newDirectory(options.dir);
  const machine = {
    node: process.version,
    ...about,
    cpus: `${cpus().length} × ${cpus()[0]?.model ?? "unknown"}`,
    fileSystem: `${fileSystemOf(dir)} (${dirname(dir)})`,
    mode: options.quick ? "quick" : "full",
    at: new Date().toISOString(),
  };
  const { node, at, ...rest } = machine;
  console.log(`Node ${node} · ${Object.values(rest).join(" · ")}\n`);

  const groups = [];
  for (const name of Object.keys(measurements).filter((each) => options.only.includes(each))) {
    const rows = await runMeasurement(folder + name, { dir, quick: options.quick, ...context }, (text) =>
      progress(`${name}: ${text}`),
    );
    groups.push({ name, title: measurements[name], rows });
  }
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[2K");
  console.log(renderTable(groups));
  report(groups, machine, options);
}

/** A directory of this run, removed when it ends. */
function newDirectory(parent) {
  const dir = mkdtempSync(join(resolve(parent ?? diskDirectory()), "bough-bench-"));
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));
  return dir;
}

/** A directory that is on a disk, or syncs would cost nothing. */
function diskDirectory() {
  if (fileSystemOf(tmpdir()) !== "tmpfs") return tmpdir();
  mkdirSync(results, { recursive: true });
  return results;
}

function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}`);
  else if (!/round|messages|process/.test(text)) process.stderr.write(`${text}\n`);
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
