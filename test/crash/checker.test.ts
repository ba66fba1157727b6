// Tests of the tests: a store is damaged on purpose, in the ways that a store with a bug would lose or double things, and
// the checker has to say so.

import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkStore, emptySnapshot } from "./check.mjs";
import { pathIn, temporaryFolder } from "./kit/campaign.mjs";
import type { Damage } from "./kit/damage.ts";
import { fileDamages } from "./kit/damage-file.ts";
import { sqliteDamages } from "./kit/damage-sqlite.ts";
import type { History } from "./kit/history.mjs";
import { makeScenario } from "./kit/scenario.mjs";

const damages = { file: fileDamages, sqlite: sqliteDamages };

describe.each(["file", "sqlite"] as const)("the checker on the %s store", (name) => {
  const folder = temporaryFolder();
  const whole = join(folder, "whole");
  const midway = join(folder, "midway");
  let made: Awaited<ReturnType<typeof makeScenario>>;

  beforeAll(async () => {
    mkdirSync(whole);
    const keepMidway = () => cpSync(whole, midway, { recursive: true });
    made = await makeScenario({ name, path: pathIn(whole, name), midway: keepMidway });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function checkAfter(damage: Damage, history: History = made.history): Promise<string[]> {
    const copy = join(folder, "copy");
    cpSync(whole, copy, { recursive: true });
    try {
      damage({ path: pathIn(copy, name), midway: pathIn(midway, name) });
      const subject = { name, path: pathIn(copy, name), ...made, history, baseline: emptySnapshot };
      return (await checkStore(subject)).problems.map(({ kind, text }) => `${kind}: ${text}`);
    } finally {
      rmSync(copy, { recursive: true });
    }
  }

  test("finds nothing wrong with a store that is whole", async () => {
    expect(await checkAfter(() => {})).toEqual([]);
  });

  test("is not led in circles by an unanswered fork under the id of its own parent", async () => {
    const { history } = made;
    const at = history.entries.findIndex((entry) => entry.status === "acked" && entry.parent);
    const { parent, line, ...fork } = history.entries[at]!;
    const { branchId } = parent!;
    const never = { ...fork, branchId, parent: { branchId, seq: 1 }, events: [{ id: "never", hash: "" }] };
    const entries = history.entries.toSpliced(at, 0, { ...never, status: "unknown", line: line - 0.5 });
    expect(await checkAfter(() => {}, { ...history, entries })).toEqual([]);
  });

  test.each(Object.entries(damages[name]))("sees %s", async (_what, { damage, seen }) => {
    expect(await checkAfter(damage)).toContainEqual(expect.stringMatching(seen));
  });
});
