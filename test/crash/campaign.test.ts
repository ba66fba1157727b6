// A bounded campaign for every run of the suite; the long ones are npm run test:crash.

import { expect, test } from "vitest";
import { campaign } from "./kit/campaign.mjs";

const seed = process.env.BOUGH_SEED ?? String(Date.now());
const killsPerStore = 100;

test.concurrent.each(["file", "sqlite"])(
  "the %s store survives kills at random moments",
  async (name) => {
    console.log(`${name}: seed ${seed}; BOUGH_SEED=${seed} does the same work and kills after the same times`);
    const { deaths, ackedFacts, problems } = await campaign({ name, deaths: killsPerStore, seed });
    console.log(`${name}: ${deaths} kills, ${ackedFacts} acknowledged facts, ${problems.length} problems`);
    expect(problems).toEqual([]);
    expect(ackedFacts).toBeGreaterThan(0);
  },
  600_000,
);
