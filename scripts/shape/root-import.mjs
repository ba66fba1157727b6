// What importing the root costs. Someone who uses the memory store should load neither SQLite nor a peer they never
// installed, so the list of what is loaded is asserted; the time is only shown, because it belongs to the machine.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const hooks = new URL("./record-imports.mjs", import.meta.url).href;

function run(folder, code) {
  const command = ["--input-type=module", "--eval", code];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: folder, encoding: "utf8" });
  // Of an uncaught error only the message is worth showing; the stack is Node's own loader.
  const failure = status === 0 ? undefined : (stderr.match(/^.*Error.*$/m)?.[0] ?? stderr.trim());
  return { failure, output: stdout.trim() };
}

/** Every module a fresh process loads for the package, ESM and CommonJS, as specifiers of builtins and URLs of files. */
function loadedModules(folder, name) {
  const record = mkdtempSync(join(tmpdir(), "bough-imports-"));
  const file = join(record, "list");
  try {
    const code = `
      import { createRequire, register } from "node:module";
      register(${JSON.stringify(hooks)}, { data: ${JSON.stringify(file)} });
      await import(${JSON.stringify(name)});
      console.log(JSON.stringify(Object.keys(createRequire(import.meta.url)("node:module")._cache)));`;
    const { failure, output } = run(folder, code);
    const esm = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
    const cjs = failure ? [] : JSON.parse(output).map((path) => pathToFileURL(path).href);
    return { failure, loaded: [...new Set([...esm, ...cjs])] };
  } finally {
    rmSync(record, { recursive: true });
  }
}

/** The best of a few fresh processes, in milliseconds: the least disturbed one. */
function importTime(folder, name) {
  const code = `const start = performance.now();
    await import(${JSON.stringify(name)});
    console.log(performance.now() - start);`;
  return Math.min(...Array.from({ length: 5 }, () => Number(run(folder, code).output)));
}

const packageOf = (url) => url.match(/.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1];

export function checkRootImport(folder, manifest) {
  const { failure, loaded } = loadedModules(folder, manifest.name);
  const files = loaded.filter((url) => url.startsWith("file:"));
  const packages = [...new Set(files.map(packageOf).filter(Boolean))];
  const asked = loaded.filter((url) => !url.startsWith("file:"));
  const isLoaded = (name) => packages.includes(name) || asked.some((it) => it === name || it.startsWith(`${name}/`));

  const optional = Object.entries(manifest.peerDependenciesMeta ?? {}).filter(([, meta]) => meta.optional);
  const problems = optional
    .filter(([peer]) => isLoaded(peer))
    .map(([peer]) => `import "${manifest.name}" loads ${peer}, an optional peer. Load it where it is used.`);
  if (isLoaded("node:sqlite")) {
    problems.push(`import "${manifest.name}" loads node:sqlite. Load it when a SQLite store is opened.`);
  }
  if (failure) problems.push(`import "${manifest.name}" fails: ${failure}`);

  const time = failure ? "" : `${importTime(folder, manifest.name).toFixed(1)} ms, `;
  return {
    name: "root import",
    note: `${time}${files.length} files, packages: ${packages.join(", ") || "none"}`,
    problems,
  };
}
