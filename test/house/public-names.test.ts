import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { type Declared, declaredNames, runtimeNames, subpaths } from "./subpaths.ts";

type Names = Record<string, string[]>;

const file = fileURLToPath(new URL("public-names.json", import.meta.url));
const how =
  "If this is meant: UPDATE_NAMES=1 npx vitest run test/house/public-names.test.ts, and say so in CHANGELOG.md.";

/** One line per name that came or went. */
function drift(pinned: Names, actual: Names): string[] {
  const lines = (from: Names, other: Names, sign: string) =>
    Object.entries(from).flatMap(([subpath, names]) =>
      names.filter((name) => !other[subpath]?.includes(name)).map((name) => `${sign} ${subpath} ${name}`),
    );
  return [...lines(pinned, actual, "-"), ...lines(actual, pinned, "+")];
}

const declared = declaredNames();

/** Values by their names, types as `type Name`. */
async function actualNames(): Promise<Names> {
  const names: Names = {};
  for (const subpath of subpaths) {
    const types = declared.get(subpath.name)!.filter(({ isValue }) => !isValue);
    names[subpath.name] = [...(await runtimeNames(subpath)), ...types.map(({ name }) => `type ${name}`)];
  }
  return names;
}

/** Internals that users never need; a name that leaks one is a mistake. */
const internals = ["Pipeline", "StateBag", "StateBagOptions", "StateMigration", "Span", "Tracer", "AttributeValue"];

function update(names: Names): void {
  writeFileSync(file, JSON.stringify(names));
  const biome = createRequire(import.meta.url).resolve("@biomejs/biome/bin/biome");
  execFileSync(process.execPath, [biome, "format", "--write", file], { stdio: "pipe" });
}

describe("the public names", () => {
  test("are the pinned ones, in every subpath", async () => {
    const actual = await actualNames();
    if (process.env.UPDATE_NAMES) update(actual);
    const pinned: Names = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
    expect(drift(pinned, actual), `The public names have changed.\n${how}`).toEqual([]);
  });

  test("are values that can be used, or types: no value is exported as a type only", () => {
    const ghosts = [...declared].flatMap(([subpath, names]) =>
      names.filter(({ isGhost }) => isGhost).map(({ name }) => `${subpath} ${name}`),
    );
    expect(ghosts).toEqual([]);
  });

  test("are declared as values exactly where they are there at run time", async () => {
    for (const subpath of subpaths) {
      const values = declared.get(subpath.name)!.filter(({ isValue }) => isValue);
      expect(values.map(({ name }) => name).sort(), subpath.name).toEqual(await runtimeNames(subpath));
    }
  });

  test("of the root leak no internals, and are named one by one", () => {
    const root = declared.get("bough")!.map(({ name }) => name);
    expect(root.filter((name) => internals.includes(name))).toEqual([]);
    const source = readFileSync(new URL("../../src/index.ts", import.meta.url), "utf8");
    expect(source).not.toMatch(/export (type )?\*/);
  });

  test("mean one thing each: a name of two subpaths is declared in one place", () => {
    const places = new Map<string, Set<string>>();
    for (const names of declared.values()) {
      for (const { name, file } of names) places.set(name, (places.get(name) ?? new Set()).add(file));
    }
    const twice = [...places].filter(([, files]) => files.size > 1).map(([name, files]) => [name, ...files].join(" "));
    expect(twice).toEqual([]);
  });

  test("have a sentence each", () => {
    const silent = (names: readonly Declared[]) => names.filter(({ sentence }) => sentence === "");
    const missing = [...declared].flatMap(([subpath, names]) => silent(names).map(({ name }) => `${subpath} ${name}`));
    expect(missing).toEqual([]);
  });

  test("that come, go or move to another subpath are seen", () => {
    const pinned = { bough: ["kept", "moved", "gone"], "bough/events": ["same"], "bough/old": ["left"] };
    const actual = { bough: ["kept", "come"], "bough/events": ["moved", "same"] };
    expect(drift(pinned, actual)).toEqual([
      "- bough moved",
      "- bough gone",
      "- bough/old left",
      "+ bough come",
      "+ bough/events moved",
    ]);
    expect(drift(actual, actual)).toEqual([]);
  });
});
