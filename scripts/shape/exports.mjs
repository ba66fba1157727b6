// package.json's exports and the files, compared both ways: nothing promised that is not there, nothing public forgotten.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { privateRooms } from "../rooms.cjs";

/** Every file below a folder, as paths with `/` relative to it. */
function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll("\\", "/"),
    );
}

/** The subpaths with code, and the source each is built from. `./package.json` is a file of its own and has none. */
function subpaths(manifest) {
  return Object.entries(manifest.exports)
    .filter(([, target]) => typeof target === "object")
    .map(([subpath, { types, default: code }]) => ({ subpath, types, code, source: sourceOf(code) }));
}

/** The commands, and the source each is built from. */
function commands(manifest) {
  return Object.entries(manifest.bin ?? {}).map(([name, code]) => ({ name, code, source: sourceOf(code) }));
}

/** What the package imports from itself by a name that each platform resolves for itself. Patterns lead to subpaths. */
function internalImports(manifest) {
  return Object.entries(manifest.imports ?? {}).flatMap(([name, targets]) =>
    Object.values(targets)
      .filter((code) => !code.includes("*"))
      .map((code) => ({ name, code, source: sourceOf(code) })),
  );
}

const sourceOf = (code) => code?.replace(/^\.\/dist\//, "src/").replace(/\.js$/, ".ts");

/** The doors a room has to the outside: `src/events/index.ts`, `src/stores/file/index.ts`, but not folders inside a room. */
const roomIndex = /^(?:(stores\/[^/]+|[^/]+)\/)?index\.ts$/;

function exportedProblems(folder, { subpath, types, code, source }) {
  if (code === undefined || types === undefined) return [`"${subpath}" needs both "types" and "default".`];
  const problems = [types, code]
    .filter((target) => !existsSync(join(folder, target)))
    .map((target) => `"${subpath}" promises ${target}, which the build does not make.`);
  if (types !== code.replace(/\.js$/, ".d.ts"))
    problems.push(`"${subpath}" has types ${types} that are not those of ${code}.`);
  if (!existsSync(join(folder, source))) problems.push(`"${subpath}" has no source ${source}.`);
  return problems;
}

function forgottenProblems(folder, manifest) {
  const exported = new Set(subpaths(manifest).map(({ source }) => source));
  const problems = [];
  for (const file of filesBelow(join(folder, "src"))) {
    const room = file.match(roomIndex)?.[1];
    if (room === undefined) continue;
    const isExported = exported.has(`src/${file}`);
    const isPrivate = privateRooms.includes(room);
    if (!isExported && !isPrivate) {
      problems.push(`src/${file} is public but not exported. Add "./${room}" to exports, or ${room} to privateRooms.`);
    }
    if (isExported && isPrivate) problems.push(`"./${room}" is exported, but scripts/rooms.cjs calls ${room} private.`);
  }
  return problems;
}

function commandProblems(folder, { name, code, source }) {
  if (!existsSync(join(folder, source))) return [`The command "${name}" has no source ${source}.`];
  if (!existsSync(join(folder, code))) return [`The command "${name}" is ${code}, which the build does not make.`];
  const isProgram = readFileSync(join(folder, code), "utf8").startsWith("#!/usr/bin/env node\n");
  return isProgram ? [] : [`The command "${name}" needs "#!/usr/bin/env node" as the first line of ${source}.`];
}

function internalProblems(folder, { name, code, source }) {
  if (!existsSync(join(folder, source))) return [`"${name}" has no source ${source}.`];
  return existsSync(join(folder, code)) ? [] : [`"${name}" promises ${code}, which the build does not make.`];
}

export function checkExports(folder, manifest) {
  const promised = subpaths(manifest);
  const problems = [
    ...promised.flatMap((entry) => exportedProblems(folder, entry)),
    ...commands(manifest).flatMap((command) => commandProblems(folder, command)),
    ...internalImports(manifest).flatMap((entry) => internalProblems(folder, entry)),
    ...forgottenProblems(folder, manifest),
  ];
  const note = [`${promised.length} subpaths`, ...commands(manifest).map(({ name }) => `command ${name}`)].join(", ");
  return { name: "exports", note, problems };
}

/** Without this, a file that was removed or renamed could be published for ever. What entries share is in chunks/. */
export function checkLeftovers(folder) {
  const built = filesBelow(join(folder, "dist")).filter((file) => file.endsWith(".js"));
  const problems = built
    .filter((file) => !file.startsWith("chunks/"))
    // Studio is built from sources of its own.
    .filter((file) => !file.startsWith("studio/"))
    .filter((file) => !existsSync(join(folder, "src", file.replace(/\.js$/, ".ts"))))
    .map((file) => `dist/${file} has no source. Delete dist/ and build again.`);
  return { name: "build", note: `${built.length} modules`, problems };
}

/** knip.json has to repeat the entry points, since it is plain data; here the two are held together. */
export function checkKnipEntries(folder, manifest) {
  const file = join(folder, "knip.json");
  if (!existsSync(file)) return { name: "knip.json", note: "none", problems: [] };
  const listed = JSON.parse(readFileSync(file, "utf8")).workspaces["."].entry.filter((entry) =>
    entry.startsWith("src/"),
  );
  const entries = [...subpaths(manifest), ...commands(manifest), ...internalImports(manifest)];
  const sources = entries.map(({ source }) => source);
  const problems = [
    ...sources
      .filter((source) => !listed.includes(source))
      .map((source) => `${source} is exported; add it to the entries.`),
    ...listed
      .filter((entry) => !sources.includes(entry))
      .map((entry) => `${entry} is an entry, but nothing exports it.`),
  ];
  return { name: "knip.json", note: `${listed.length} entries`, problems };
}
