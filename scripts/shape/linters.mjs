// Two linters that know what bundlers, Node and TypeScript make of a package, run on the tarball itself.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

const require = createRequire(import.meta.url);

export async function checkPublint(tarball) {
  const bytes = readFileSync(tarball.path);
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const { messages, pkg } = await publint({ pack: { tarball: buffer }, strict: true });
  const serious = messages.filter(({ type }) => type !== "suggestion");
  const note = `${messages.length - serious.length} suggestions`;
  return { name: "publint", note, problems: serious.map((message) => formatMessage(message, pkg, { color: false })) };
}

/** What attw's esm-only profile leaves out of account: the package is ESM, for resolvers that know `exports`. */
const ignoredResolutions = ["node10", "node16-cjs"];

function describe({ kind, entrypoint, resolutionKind, fileName }) {
  return `${kind} at ${entrypoint ?? fileName ?? "?"}${resolutionKind ? ` (${resolutionKind})` : ""}.`;
}

/** "Are the types wrong": do the declarations of every subpath resolve and match the code? */
export function checkTypes(tarball) {
  const attw = join(dirname(require.resolve("@arethetypeswrong/cli/package.json")), "dist/index.js");
  const options = ["--profile", "esm-only", "--no-definitely-typed", "--format", "json"];
  const { status, stdout, stderr } = spawnSync(process.execPath, [attw, tarball.path, ...options], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status === 0) return { name: "attw", note: "types resolve in Node and bundlers", problems: [] };
  const problems = stdout.startsWith("{")
    ? JSON.parse(stdout)
        .analysis.problems.filter(({ resolutionKind }) => !ignoredResolutions.includes(resolutionKind))
        .map(describe)
    : [];
  return {
    name: "attw",
    note: "",
    problems: problems.length > 0 ? [...new Set(problems)] : [`attw failed: ${stdout}${stderr}`],
  };
}
