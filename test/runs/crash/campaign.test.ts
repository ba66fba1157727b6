// A few kills for every run of the suite; the long campaign is npm run test:run.

import { expect, test } from "vitest";
import { campaign } from "./kit/campaign.mjs";

const seed = process.env.BOUGH_SEED ?? String(Date.now());
const killsPerStore = 12;

test.concurrent.each(["file", "sqlite"])("agents on the %s store survive kills at random moments", async (name) => {
  console.log(`${name}: seed ${seed}; BOUGH_SEED=${seed} plays the same and kills after the same times`);
  const { deaths, ackedFacts, problems } = await campaign({ name, deaths: killsPerStore, seed });
  expect(problems).toEqual([]);
  expect(deaths).toBeGreaterThanOrEqual(killsPerStore);
  expect(ackedFacts).toBeGreaterThan(0);
});
