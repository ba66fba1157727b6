// Is what would be published what we mean to publish? Run after a build: npm run shape, or with the folder of a package.
// Every check gives a note for the table and a list of problems, each a sentence that says what to do.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { checkExports, checkKnipEntries, checkLeftovers } from "./shape/exports.mjs";
import { checkPublint, checkTypes } from "./shape/linters.mjs";
import { checkRootImport } from "./shape/root-import.mjs";
import { checkContents, pack } from "./shape/tarball.mjs";

const folder = resolve(process.argv[2] ?? join(import.meta.dirname, ".."));
const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

/** Runs `check` on the tarball, which is gone afterwards. */
async function withTarball(check) {
  const into = mkdtempSync(join(tmpdir(), "bough-shape-"));
  try {
    return await check(pack(folder, into));
  } finally {
    rmSync(into, { recursive: true });
  }
}

async function checkAll() {
  if (!existsSync(join(folder, "dist"))) {
    return [{ name: "build", note: "", problems: ["There is no dist/. Run npm run build first."] }];
  }
  const files = [checkExports(folder, manifest), checkLeftovers(folder), checkKnipEntries(folder, manifest)];
  // The others would only say in their own words that a promised file is missing.
  if (files[0].problems.length > 0) return files;
  return withTarball(async (tarball) => [
    ...files,
    checkContents(folder, manifest, tarball),
    await checkPublint(tarball),
    checkTypes(tarball),
    checkRootImport(folder, manifest),
  ]);
}

const checks = await checkAll();
const width = Math.max(...checks.map(({ name }) => name.length));
for (const { name, note, problems } of checks) {
  console.log(`${problems.length === 0 ? "ok  " : "FAIL"}  ${name.padEnd(width)}  ${note}`);
}
const problems = checks.flatMap((check) => check.problems.map((problem) => `${check.name}: ${problem}`));
for (const problem of problems) console.error(`\n  ${problem}`);
process.exitCode = problems.length === 0 ? 0 : 1;
