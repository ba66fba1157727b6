// Opening what a killed process left behind is itself killed, at one system call after the other, until it gets through.

import { rmSync } from "node:fs";
import { pathIn, temporaryFolder } from "./kit/campaign.mjs";
import { inLanes } from "./kit/lanes.ts";
import { needsStrace, strace } from "./kit/strace.ts";
import { Subject } from "./kit/subject.mjs";

/** What changes files or makes a change durable, and at which of these calls the opening dies. */
const calls = ["pwrite64", "ftruncate", "mkdir", "rename", "unlink", "fdatasync", "fsync"];
const numbers = [1, 2, 3, 7, 20];

const cases = ["file", "sqlite"].flatMap((name) => calls.map((call) => ({ name, call })));

inLanes("a recovery that is killed can be done again", cases, async ({ name, call }, { expect, skip }) => {
  needsStrace(skip);
  const folder = temporaryFolder();
  try {
    const subject = new Subject({ name, path: pathIn(folder, name), seed: call });
    await subject.write({
      env: { BOUGH_FAILPOINT: `${name === "file" ? "file.wal.synced" : "sqlite.commit.done"}:30` },
    });
    for (const number of numbers) {
      const prefix = strace(`inject=${call}:signal=KILL:when=${number}`);
      const { wasClosed } = await subject.write({ openOnly: true, prefix });
      if (wasClosed) break;
    }
    expect(await subject.check()).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
