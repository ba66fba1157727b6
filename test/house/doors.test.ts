import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { cruise, type ICruiseOptions, type ICruiseResult, type IFlattenedRuleSet } from "dependency-cruiser";
import { describe, expect, test } from "vitest";
import { rooms } from "../../scripts/rooms.cjs";
import { house, withTree } from "./tree.ts";

const configFile = join(house, ".dependency-cruiser.cjs");
const config: IFlattenedRuleSet & { options: ICruiseOptions } = createRequire(import.meta.url)(configFile);

/** The texts of a house in which files have these imports. */
function importing(files: Record<string, string[]>): Record<string, string> {
  const texts = Object.entries(files).map(([name, imports]) => [
    `src/${name}`,
    [...imports, "export const here = 1", ""].join(";\n"),
  ]);
  return { "package.json": '{ "name": "bough", "type": "module" }', ...Object.fromEntries(texts) };
}

/** What the checker refuses in such a house, as `rule: from → to`. */
function refusals(files: Record<string, string[]>): Promise<string[]> {
  return withTree(importing(files), async (baseDir) => {
    const { options, ...ruleSet } = config;
    const { output } = await cruise(["src"], { ...options, ruleSet, validate: true, baseDir });
    const { violations } = (output as ICruiseResult).summary;
    return violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`).sort();
  });
}

/** A leaf in every room that the cases import from, so that an import that is refused is refused for its direction. */
const leaves = {
  "base/leaf.ts": [],
  "events/leaf.ts": [],
  "log/leaf.ts": [],
  "projection/leaf.ts": [],
  "stores/memory/leaf.ts": [],
  "stores/sqlite/leaf.ts": [],
  "runs/leaf.ts": [],
  "testing/leaf.ts": [],
};

test("CONTRIBUTING.md shows the table that is held", () => {
  const shown = [...readFileSync(join(house, "CONTRIBUTING.md"), "utf8").matchAll(/^\| (\d+) \| (.*) \|$/gm)].flatMap(
    ([, level, names]) => [...(names ?? "").matchAll(/`([^`]+)`/g)].map(([, name]) => ({ name, level: Number(level) })),
  );
  expect(shown).toEqual(rooms);
});

describe("the doors", () => {
  test("let a file import its own room, lower rooms, and the root everything", async () => {
    const refused = await refusals({
      ...leaves,
      "stores/memory/index.ts": ['import "./leaf.ts"', 'import "../../log/leaf.ts"', 'import "../../base/leaf.ts"'],
      "projection/index.ts": ['import "../events/leaf.ts"', 'import type { here } from "../base/leaf.ts"'],
      "agent/index.ts": ['import "../runs/leaf.ts"', 'import "../stores/sqlite/leaf.ts"', 'import "node:fs"'],
      "index.ts": ['import "./agent/index.ts"', 'import "./testing/leaf.ts"'],
    });
    expect(refused).toEqual([]);
  });

  test.each([
    ["a higher room", "log/a.ts", "../runs/leaf.ts", "doors-of-log", "src/runs/leaf.ts"],
    ["a room of the same level", "projection/a.ts", "../log/leaf.ts", "doors-of-projection", "src/log/leaf.ts"],
    ["the events from a store", "stores/memory/a.ts", "../../events/leaf.ts", "doors-of-stores", "src/events/leaf.ts"],
    ["a store from a store", "stores/memory/a.ts", "../sqlite/leaf.ts", "doors-of-stores", "src/stores/sqlite/leaf.ts"],
    ["the test kit", "runs/a.ts", "../testing/leaf.ts", "doors-of-runs", "src/testing/leaf.ts"],
    ["a higher room in a test", "log/a.test.ts", "../runs/leaf.ts", "doors-of-log-tests", "src/runs/leaf.ts"],
    ["the package by name", "runs/a.ts", "bough/events", "no-way-round", "bough/events"],
    ["what is not there", "runs/a.ts", "./nowhere.ts", "no-lost-imports", "./nowhere.ts"],
  ])("refuse %s", async (_what, file, specifier, rule, to) => {
    expect(await refusals({ ...leaves, [file]: [`import "${specifier}"`] })).toEqual([`${rule}: src/${file} → ${to}`]);
  });

  test("count type imports and dynamic imports", async () => {
    const refused = await refusals({
      ...leaves,
      "base/a.ts": ['import type { here as there } from "../log/leaf.ts"'],
      "base/b.ts": ['export const later = () => import("../log/leaf.ts")'],
    });
    expect(refused).toEqual([
      "doors-of-base: src/base/a.ts → src/log/leaf.ts",
      "doors-of-base: src/base/b.ts → src/log/leaf.ts",
    ]);
  });

  test("open the test kit to tests, and a test to nobody", async () => {
    const refused = await refusals({
      ...leaves,
      "log/a.test.ts": ['import "../testing/leaf.ts"', 'import "./leaf.ts"'],
      "log/b.test.ts": ['import "./a.test.ts"'],
    });
    expect(refused).toEqual(["no-tests-imported: src/log/b.test.ts → src/log/a.test.ts"]);
  });

  test("refuse circles, even of types alone", async () => {
    const refused = await refusals({
      "log/a.ts": ['import type { here as there } from "./b.ts"'],
      "log/b.ts": ['import type { here as there } from "./a.ts"'],
    });
    expect(refused.map((line) => line.split(":")[0])).toContain("no-cycles");
  });

  test("refuse a room that is not in the table, used or not", async () => {
    const refused = await refusals({
      ...leaves,
      "attic/user.ts": ['import "../base/leaf.ts"'],
      "attic/used.ts": [],
      "attic/alone.ts": [],
      "loose.ts": [],
      "stores/loose.ts": [],
      "index.ts": ['import "./attic/used.ts"'],
    });
    expect(refused).toEqual([
      "unknown-room-imported: src/index.ts → src/attic/used.ts",
      "unknown-room-orphan: src/attic/alone.ts → src/attic/alone.ts",
      "unknown-room-orphan: src/loose.ts → src/loose.ts",
      "unknown-room-orphan: src/stores/loose.ts → src/stores/loose.ts",
      "unknown-room: src/attic/user.ts → src/base/leaf.ts",
    ]);
  });

  test("keep Node builtins away from what browsers reach, also round a corner", async () => {
    const refused = await refusals({
      "events/a.ts": ['import "node:fs"'],
      "events/a.test.ts": ['import "node:fs"'],
      "projection/a.ts": ['import "../base/far.ts"'],
      "base/far.ts": ['import "./near.ts"'],
      "base/near.ts": ['import "node:sqlite"'],
      "base/elsewhere.ts": ['import "node:path"'],
      "client/a.ts": [],
    });
    expect(refused).toEqual(["browser-safe: src/events/a.ts → fs", "browser-safe: src/projection/a.ts → node:sqlite"]);
  });

  test("make the command fail", async () => {
    const files = importing({ ...leaves, "base/a.ts": ['import "../log/leaf.ts"'] });
    const command = [join(house, "node_modules/.bin/depcruise"), "--config", configFile, "src"];
    const { status, stdout } = await withTree(files, (cwd) =>
      spawnSync(process.execPath, command, { cwd, encoding: "utf8" }),
    );
    expect(stdout).toContain("error doors-of-base: src/base/a.ts → src/log/leaf.ts");
    expect(status).not.toBe(0);
  });
});
