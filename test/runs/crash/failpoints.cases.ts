// A process that works through a turn dies at every failpoint, at every pass of it; sometimes the one that takes over dies
// as well. What is in the log, what ran, and what was said at the end must not tell.

import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { type Failpoint, failpoints } from "../../../src/base/failpoint.ts";
import { pathIn, temporaryFolder } from "../../crash/kit/campaign.mjs";
import { inLanes } from "../../crash/kit/lanes.ts";
import { fixedPlay } from "./kit/play.mjs";
import { makeStore, Subject } from "./kit/subject.mjs";

/** More passes than any failpoint has in one turn. */
const endless = 200;

/**
 * Those of compactions, queues and tasks are passed by other plays (test/compaction/killed.test.ts, test/runs/queue-killed.test.ts,
 * test/children/background-killed.test.ts).
 */
const ofTurns = failpoints.filter((name) => !/^run\.(compaction|input|task|step)\.|^run\.handed$/.test(name));
const ofRuns = ofTurns.filter((name) => name.startsWith("run."));
/** Where a store's work on a turn always comes by. */
const ofStore: Record<string, Failpoint[]> = {
  file: ["file.wal.beforeWrite", "file.wal.synced"],
  sqlite: ["sqlite.commit.begun", "sqlite.commit.done"],
};

const arm = (name: Failpoint, pass: number) => ({ BOUGH_FAILPOINT: `${name}:${pass}` });

interface Kill {
  readonly store: string;
  /** A folder with a store that the turn begins on. */
  readonly template: string;
  readonly name: Failpoint;
  readonly pass: number;
  /** Where the process that takes over dies, if it does. */
  readonly again: Failpoint | undefined;
}

/** Kills, lets another process take over, and looks. Says whether there was such a pass. */
async function killAt({ store, template, name, pass, again }: Kill): Promise<boolean> {
  const folder = temporaryFolder();
  try {
    cpSync(template, folder, { recursive: true });
    const effects = join(folder, "effects.jsonl");
    const settles = pass % 2 === 0;
    const subject = new Subject({ store, path: pathIn(folder, store), effects, play: fixedPlay, settles });
    const { signal, failure } = await subject.live({ env: arm(name, pass) });
    expect(failure).toBeUndefined();
    if (again) expect(await subject.live({ env: arm(again, 1) })).toMatchObject({ failure: undefined });
    const problems = await subject.finish({ recovers: pass % 3 === 0 });
    expect(problems, `killed at ${name}:${pass}${again ? `, then at ${again}:1` : ""}`).toEqual([]);
    return signal === "SIGKILL";
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function failpointCases(store: string): void {
  const names = ofTurns.filter((name) => name.startsWith(`${store}.`) || name.startsWith("run."));
  const always = [...ofRuns, ...ofStore[store]!];

  describe(`a turn on the ${store} store`, () => {
    const template = temporaryFolder();
    beforeAll(() => makeStore(store, pathIn(template, store)));
    afterAll(() => rmSync(template, { recursive: true, force: true }));

    inLanes(
      "comes to its one end wherever a process dies",
      names.map((name) => ({ name })),
      async ({ name }) => {
        for (let pass = 1; pass < endless; pass++) {
          // Every third time the process that takes over dies too, each time somewhere else.
          const again = pass % 3 === 1 ? always[(pass + names.indexOf(name)) % always.length] : undefined;
          if (await killAt({ store, template, name, pass, again })) continue;
          if (always.includes(name)) expect(pass, `${name} is never passed`).toBeGreaterThan(1);
          return;
        }
        expect.fail(`${name} has no last pass`);
      },
    );
  });
}
