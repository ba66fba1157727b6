// How a property is run: its seed, path and number of runs can be set from outside, and a failure says how to see it again.
//   BOUGH_SEED=… BOUGH_PATH=… BOUGH_REPLAY=… npx vitest run test/model      the failed case, shrunk
//   BOUGH_RUNS=5000 BOUGH_STORES=sqlite npx vitest run test/model           a long search

import fc from "fast-check";

const { BOUGH_SEED, BOUGH_PATH, BOUGH_REPLAY, BOUGH_RUNS } = process.env;

/** Shrinking ends in time for the report: a test that vitest gives up on never says how to see the failure again. */
const timeLimitMs = 45_000;
/** The timeout of a test: the usual one, none for a long search. */
export const timeoutMs = BOUGH_RUNS === undefined ? 60_000 : 0;

/** What fc.commands needs besides the path to find a shrunk history again. */
export const replayOptions: { replayPath?: string } = BOUGH_REPLAY === undefined ? {} : { replayPath: BOUGH_REPLAY };

/** Fails with the counterexample and the environment that replays it. */
export async function holds<T>(property: fc.IAsyncProperty<T>, runs: number): Promise<void> {
  const result = await fc.check(property, {
    numRuns: BOUGH_RUNS === undefined ? runs : Number(BOUGH_RUNS),
    ...(BOUGH_RUNS === undefined && { interruptAfterTimeLimit: timeLimitMs }),
    endOnFailure: BOUGH_PATH !== undefined,
    ...(BOUGH_SEED !== undefined && { seed: Number(BOUGH_SEED) }),
    ...(BOUGH_PATH !== undefined && { path: BOUGH_PATH }),
  });
  if (!result.failed) return;
  const report = (await fc.asyncDefaultReportMessage(result)) ?? "";
  const replayPath = /replayPath="([^"]*)"/.exec(report)?.[1];
  const replay = [`BOUGH_SEED=${result.seed}`, `BOUGH_PATH=${result.counterexamplePath}`];
  if (replayPath !== undefined) replay.push(`BOUGH_REPLAY=${replayPath}`);
  throw new Error(`To see it again: ${replay.join(" ")}\n${report}`, { cause: result.errorInstance });
}
