import { describe, expect, test } from "vitest";
import { fullHistory, lastN, latestOnly, openSessions, type Retention, timeBased } from "./index.ts";

const scope = { sessionId: "s", branchId: "main" };

async function checkpointsLeft(retention?: Retention): Promise<string[]> {
  const sessions = await openSessions();
  await sessions.createSession("s");
  await sessions.saveCheckpoint(scope, { id: "before" });
  const turn = await sessions.beginTurn(scope, "Go", retention && { retention });
  await sessions.saveCheckpoint(scope, { id: "inside" });
  await turn.commit();
  return (await sessions.listCheckpoints(scope)).map(({ id }) => id);
}

describe("checkpoints taken inside a turn", () => {
  test.each([latestOnly(), lastN(5)])("are cleared when the turn is committed under $name", async (retention) => {
    expect(await checkpointsLeft(retention)).toEqual(["before"]);
  });

  test.each([fullHistory(), timeBased(60_000)])("stay for time travel under $name", async (retention) => {
    expect(await checkpointsLeft(retention)).toEqual(["inside", "before"]);
  });

  test("stay when nothing is said", async () => {
    expect(await checkpointsLeft()).toEqual(["inside", "before"]);
  });
});
