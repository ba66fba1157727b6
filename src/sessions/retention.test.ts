import { expect, test } from "vitest";
import { fullHistory, lastN, latestOnly, timeBased } from "./retention.ts";

const newestFirst = [50, 40, 40, 10].map((createdAt, i) => ({ id: `c${i}`, createdAt }));
const now = 60;

test("each policy names what may go, newest first and never more than it must", () => {
  expect(latestOnly().surplus(newestFirst, now)).toEqual(["c1", "c2", "c3"]);
  expect(lastN(1).surplus(newestFirst, now)).toEqual(["c1", "c2", "c3"]);
  expect(lastN(3).surplus(newestFirst, now)).toEqual(["c3"]);
  expect(lastN(9).surplus(newestFirst, now)).toEqual([]);
  expect(fullHistory().surplus(newestFirst, now)).toEqual([]);
  expect(timeBased(20).surplus(newestFirst, now)).toEqual(["c3"]);
  expect(timeBased(19).surplus(newestFirst, now)).toEqual(["c1", "c2", "c3"]);
  for (const policy of [latestOnly(), lastN(2), fullHistory(), timeBased(5)])
    expect(policy.surplus([], now)).toEqual([]);
});

test("only those for time travel keep the checkpoints of a closed turn", () => {
  expect([latestOnly(), lastN(2), fullHistory(), timeBased(5)].map(({ keepsHistory }) => keepsHistory)).toEqual([
    false,
    false,
    true,
    true,
  ]);
});
