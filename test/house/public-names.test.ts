import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { runtimeNames, subpaths } from "./subpaths.ts";

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

async function actualNames(): Promise<Names> {
  const names: Names = {};
  for (const subpath of subpaths) names[subpath.name] = await runtimeNames(subpath);
  return names;
}

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
