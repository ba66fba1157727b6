// Every failpoint of the stores: a process dies exactly there, sometimes a second one dies while it opens what the first left
// behind, and nothing acknowledged is lost.

import { rmSync } from "node:fs";
import { describe } from "vitest";
import { type Failpoint, failpoints } from "../../src/base/failpoint.ts";
import { pathIn, temporaryFolder } from "./kit/campaign.mjs";
import { inLanes } from "./kit/lanes.ts";
import { Subject } from "./kit/subject.mjs";

/** Which pass of the failpoint kills. The first must come; how many more there are is the work's business. */
const passes = [1, 3, 12];
const ops = 150;

/** What is left behind in the ways that make opening work hard, and where the opening then dies. */
const openings: { first: Failpoint[]; again: Failpoint[] }[] = [
  {
    first: ["file.wal.synced", "file.apply.between", "file.checkpoint.synced"],
    again: failpoints.filter((name) => /^file\.(?!wal)/.test(name)),
  },
  { first: ["sqlite.migrate.statement"], again: failpoints.filter((name) => name.startsWith("sqlite.migrate.")) },
];

/** The stores whose steps pass a failpoint. Uploads pass theirs in every store. */
function storesOf(name: string): string[] {
  return name.startsWith("content.") ? ["file", "sqlite"] : [name.split(".")[0]!];
}

async function withSubject(
  name: string,
  use: (subject: Subject) => Promise<void>,
  [store] = storesOf(name),
): Promise<void> {
  const folder = temporaryFolder();
  try {
    await use(new Subject({ name: store!, path: pathIn(folder, store!), seed: name }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const arm = (name: string, pass: number) => ({ BOUGH_FAILPOINT: `${name}:${pass}` });

describe("a process that dies at a failpoint", () => {
  const ofStores = failpoints.filter((name) => !name.startsWith("run."));
  const cases = ofStores.flatMap((name) =>
    passes.flatMap((pass) => storesOf(name).map((store) => ({ name, pass, store }))),
  );

  inLanes("loses nothing it acknowledged", cases, async ({ name, pass, store }, { expect }) => {
    const kill = async (subject: Subject) => {
      const end = await subject.write({ ops, env: arm(name, pass) });
      if (pass === 1) expect(end.signal, `${name} is never passed`).toBe("SIGKILL");
      expect(await subject.check()).toEqual([]);
      expect(await subject.write({ ops: 30 })).toMatchObject({ wasClosed: true });
      expect(await subject.check()).toEqual([]);
    };
    await withSubject(name, kill, [store]);
  });
});

describe("a process that dies while it opens what another left behind", () => {
  const cases = openings.flatMap(({ first, again }) => first.flatMap((name) => again.map((next) => ({ name, next }))));

  inLanes("loses nothing that was acknowledged", cases, async ({ name, next }, { expect }) => {
    await withSubject(name, async (subject) => {
      await subject.write({ ops, env: arm(name, 2) });
      for (const pass of [1, 2]) await subject.write({ openOnly: true, env: arm(next, pass) });
      expect(await subject.check()).toEqual([]);
    });
  });
});
