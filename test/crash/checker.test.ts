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

  /** The claim of "held" without its answer, and a release by another process that names an epoch. */
  function claimUnanswered(releaseOf?: (epoch: number) => number): History {
    const { entries } = made.history;
    const at = entries.findIndex(({ sessionId, claim }) => sessionId === "held" && claim);
    const { ok, ...claim } = entries[at]!;
    const { sessionId, branchId, line } = claim;
    const later = { sessionId, branchId: branchId!, line: line + 0.5, end: line + 0.5, status: "acked" as const };
    const release = (epoch: number) => ({ ...later, do: "releaseRun", epoch, ok: { released: true } });
    const releases = releaseOf ? [release(releaseOf(ok!.epoch!))] : [];
    return { ...made.history, entries: entries.toSpliced(at, 1, { ...claim, status: "unknown" }, ...releases) };
  }
  const loseClaim: Damage = (store) => damages[name]["a lost claim"]!.damage(store);
  const claimIsGone = expect.stringMatching(/^lost: held\/main: the claim of run e\d+ is gone/);

  test("takes an unanswered claim for given back when another process released its epoch", async () => {
    expect(
      await checkAfter(
        loseClaim,
        claimUnanswered((epoch) => epoch),
      ),
    ).toEqual([]);
  });

  test("sees that an unanswered claim is lost when nothing released it", async () => {
    expect(await checkAfter(loseClaim, claimUnanswered())).toContainEqual(claimIsGone);
  });

  test("sees that an unanswered claim is lost when only an earlier epoch was released", async () => {
    expect(
      await checkAfter(
        loseClaim,
        claimUnanswered(() => 0),
      ),
    ).toContainEqual(claimIsGone);
  });

  test("sees an unanswered claim that is still in force after its epoch was released", async () => {
    const stays = expect.stringMatching(/^wrong: held\/main: run e\d+ holds it, although nobody does/);
    expect(
      await checkAfter(
        () => {},
        claimUnanswered((epoch) => epoch),
      ),
    ).toContainEqual(stays);
  });

  test.each(Object.entries(damages[name]))("sees %s", async (_what, { damage, seen }) => {
    expect(await checkAfter(damage)).toContainEqual(expect.stringMatching(seen));
  });
});
