import { spawnSync } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { house, withTree } from "./tree.ts";

interface Issues {
  file: string;
  files: { name: string }[];
  exports: { name: string }[];
  dependencies: { name: string }[];
  unlisted: { name: string }[];
}

/** Runs knip with this house's settings on a small house; returns what it finds as `kind: file name`. */
function unused(files: Record<string, string>): Promise<{ found: string[]; status: number | null }> {
  return withTree(files, (tree) => {
    for (const name of ["knip.json", "tsconfig.json"]) cpSync(join(house, name), join(tree, name));
    const command = [join(house, "node_modules/.bin/knip"), "--reporter", "json", "--no-config-hints"];
    const { status, stdout } = spawnSync(process.execPath, command, { cwd: tree, encoding: "utf8" });
    const issues: Issues[] = JSON.parse(stdout).issues;
    const kinds = ["files", "exports", "dependencies", "unlisted"] as const;
    const found = issues.flatMap((issue) =>
      kinds.flatMap((kind) => issue[kind].map(({ name }) => `${kind}: ${issue.file} ${name}`)),
    );
    return { found: found.sort(), status };
  });
}

const used = {
  "package.json": '{ "name": "bough", "type": "module", "dependencies": { "valibot": "1.5.0" } }',
  "src/index.ts": 'export { open } from "./agent/open.ts";\n',
  "src/agent/open.ts":
    'import * as v from "valibot";\nexport interface Options {}\nexport const open = (_: Options) => v.string();\n',
};

test("code that is reached from an entry point passes", async () => {
  expect(await unused(used)).toEqual({ found: [], status: 0 });
});

test("files, exports and dependencies that nothing uses are refused, and ones that nobody listed", async () => {
  const { found, status } = await unused({
    ...used,
    "package.json":
      '{ "name": "bough", "type": "module", "dependencies": { "valibot": "1.5.0", "left-pad": "1.0.0" } }',
    "src/agent/open.ts": `${used["src/agent/open.ts"]}import "hono";\nexport const shut = 1;\n`,
    "src/log/dead.ts": "export const dead = 1;\n",
  });
  expect(found).toEqual([
    "dependencies: package.json left-pad",
    "exports: src/agent/open.ts shut",
    "files: src/log/dead.ts src/log/dead.ts",
    "unlisted: src/agent/open.ts hono",
  ]);
  expect(status).toBe(1);
});
