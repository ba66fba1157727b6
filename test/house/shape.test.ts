import { execFile } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { house, withTree } from "./tree.ts";

const script = join(house, "scripts/package-shape.mjs");

const subpath = (path: string) => ({ types: `./dist/${path}.d.ts`, default: `./dist/${path}.js` });

const manifest = {
  name: "small",
  version: "1.0.0",
  type: "module",
  license: "MIT",
  repository: "github:bough/small",
  files: ["dist", "README.md"],
  exports: { ".": subpath("index"), "./events": subpath("events/index") },
  peerDependencies: { peer: "1" },
  peerDependenciesMeta: { peer: { optional: true } },
};

/** What a clean package of two subpaths consists of. */
const files = {
  "README.md": "# Small\n",
  "src/index.ts": "export const one = 1;\n",
  "src/base/index.ts": "export const zero = 0;\n",
  "src/events/index.ts": "export const two = 2;\n",
  "dist/index.js": "export const one = 1;\n",
  "dist/index.d.ts": "export declare const one = 1;\n",
  "dist/base/index.js": "export const zero = 0;\n",
  "dist/events/index.js": "export const two = 2;\n",
  "dist/events/index.d.ts": "export declare const two = 2;\n",
  "node_modules/peer/package.json": '{ "name": "peer", "version": "1.0.0", "main": "index.js" }\n',
  "node_modules/peer/index.js": "exports.three = 3;\n",
};

function shape(changes: { manifest?: object; files?: Record<string, string> } = {}) {
  const text = JSON.stringify({ ...manifest, ...changes.manifest });
  return withTree({ ...files, ...changes.files, "package.json": text }, runScript);
}

function runScript(folder: string): Promise<{ failed: boolean; table: string; sentences: string[] }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [script, folder], (error, table, stderr) => {
      const sentences = stderr.split("\n").map((line) => line.trim());
      resolve({ failed: error?.code === 1, table, sentences: sentences.filter((line) => line !== "") });
    });
  });
}

// At the same time, because each waits for child processes and no two share a folder.
describe.concurrent("the package shape", () => {
  test("lets a clean package pass and shows what its root costs", async ({ expect }) => {
    const { failed, table, sentences } = await shape();
    expect(sentences).toEqual([]);
    expect(table).toMatch(/ok +root import +[\d.]+ ms, 1 files, packages: none/);
    expect(failed).toBe(false);
  });

  test("refuses internal imports that lead nowhere", async ({ expect }) => {
    const { sentences } = await shape({
      manifest: { imports: { "#one": { node: "./dist/one.js", default: "./dist/events/index.js" } } },
      files: { "src/one.ts": "export {};\n" },
    });
    expect(sentences).toEqual(['exports: "#one" promises ./dist/one.js, which the build does not make.']);
  });

  test("refuses exports and files that disagree, both ways", async ({ expect }) => {
    const { failed, sentences } = await shape({
      manifest: {
        exports: { ...manifest.exports, "./base": subpath("base/index"), "./client": subpath("client/index") },
      },
      files: { "src/stores/tape/index.ts": "export {};\n", "dist/gone.js": "export {};\n" },
    });
    expect(sentences.sort()).toEqual([
      "build: dist/gone.js has no source. Delete dist/ and build again.",
      'exports: "./base" is exported, but scripts/rooms.cjs calls base private.',
      'exports: "./base" promises ./dist/base/index.d.ts, which the build does not make.',
      'exports: "./client" has no source src/client/index.ts.',
      'exports: "./client" promises ./dist/client/index.d.ts, which the build does not make.',
      'exports: "./client" promises ./dist/client/index.js, which the build does not make.',
      'exports: src/stores/tape/index.ts is public but not exported. Add "./stores/tape" to exports, or stores/tape to privateRooms.',
    ]);
    expect(failed).toBe(true);
  });

  test("refuses a root that can't be imported, with the reason", async ({ expect }) => {
    const { failed, sentences } = await shape({ files: { "dist/index.js": 'import "absent";\n' } });
    expect(sentences.join()).toMatch(/^root import: import "small" fails: .*Cannot find package 'absent'/);
    expect(failed).toBe(true);
  });
});

describe("a package with every other fault", () => {
  // One run for all of them: packing and linting is what takes the time.
  let found: Awaited<ReturnType<typeof shape>>;
  const saidBy = (check: string) => found.sentences.filter((line) => line.startsWith(`${check}: `));
  beforeAll(async () => {
    found = await shape({
      manifest: { files: ["dist", "src/base", "README.md", "CHANGELOG.md"] },
      files: {
        "knip.json": '{ "workspaces": { ".": { "entry": ["src/index.ts", "src/attic.ts", "scripts/*.mjs"] } } }',
        "dist/.tsbuildinfo": "{}",
        "src/testing/kit.ts": "export {};\n",
        "dist/testing/kit.js": "export {};\n",
        "src/events/fixtures/kit.ts": "export {};\n",
        "dist/events/fixtures/kit.js": "export {};\n",
        "src/index.test.ts": "export {};\n",
        "dist/index.test.js": "export {};\n",
        "dist/events/index.js": "module.exports = { two: 2 };\n",
        "dist/index.d.ts": 'export * from "./nowhere.js";\n',
        "dist/index.js": 'import "peer";\nawait import("node:sqlite").catch(() => {});\nexport const one = 1;\n',
      },
    });
  });

  test("fails", () => {
    expect(found.failed).toBe(true);
  });

  test("has knip entries that are not its exports", () => {
    expect(saidBy("knip.json")).toEqual([
      "knip.json: src/events/index.ts is exported; add it to the entries.",
      "knip.json: src/attic.ts is an entry, but nothing exports it.",
    ]);
  });

  test("has tests, sources and stray files in its tarball, and a paper missing", () => {
    expect(saidBy("tarball").sort()).toEqual([
      'tarball: "files" lists CHANGELOG.md, which does not exist.',
      'tarball: dist/.tsbuildinfo has no business in the package; exclude it in "files".',
      "tarball: dist/events/fixtures/kit.js is test code outside dist/testing/.",
      "tarball: dist/index.test.js is a test.",
      "tarball: src/base/index.ts is a source; only what is built is published.",
    ]);
  });

  test("has code in a format that publint refuses and types that attw can't resolve", () => {
    expect(saidBy("publint").join()).toMatch(/^publint: .*dist\/events\/index.js and is written in CJS/);
    expect(saidBy("attw")).toEqual(["attw: InternalResolutionError at /node_modules/small/dist/index.d.ts."]);
  });

  test("has a root that loads an optional peer and SQLite, though it copes without them", () => {
    expect(saidBy("root import")).toEqual([
      'root import: import "small" loads peer, an optional peer. Load it where it is used.',
      'root import: import "small" loads node:sqlite. Load it when a SQLite store is opened.',
    ]);
  });
});
