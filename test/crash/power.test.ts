// A few power cuts for every run of the suite; the long campaign is npm run test:power.

import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { campaign } from "./kit/campaign.mjs";
import { PowerSocket } from "./kit/power.mjs";

const seed = process.env.BOUGH_SEED ?? String(Date.now());
const cutsPerStore = 4;

test("a store that does not sync is found out", { timeout: 600_000 }, async ({ skip }) => {
  const socket = plugIn(skip);
  socket.env = { NODE_OPTIONS: `--import=${new URL("kit/no-sync.mjs", import.meta.url)}` };
  try {
    const { problems, evidence } = await campaign({ name: "file", deaths: cutsPerStore, seed, ground: socket });
    expect(problems).toContainEqual(expect.objectContaining({ kind: "lost" }));
    rmSync(evidence!, { recursive: true });
  } finally {
    socket.dispose();
  }
});

for (const name of ["file", "sqlite"]) {
  test(`the ${name} store survives power cuts`, { timeout: 600_000 }, async ({ skip }) => {
    const socket = plugIn(skip);
    try {
      console.log(`${name}: seed ${seed}`);
      const { ackedFacts, problems } = await campaign({ name, deaths: cutsPerStore, seed, ground: socket });
      expect(problems).toEqual([]);
      expect(ackedFacts).toBeGreaterThan(0);
    } finally {
      socket.dispose();
    }
  });
}

function plugIn(skip: (notice: string) => never): PowerSocket {
  try {
    return new PowerSocket();
  } catch (error) {
    const notice = `NO POWER WAS CUT: a file system can't be mounted here (${(error as Error).message}).`;
    console.warn(`\n${"!".repeat(notice.length)}\n${notice}\n${"!".repeat(notice.length)}`);
    return skip(notice);
  }
}
