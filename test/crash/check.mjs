// The checker: opens the store that a killed process left behind, compares it with what that process told, and hands back
// every difference as a sentence. Kinds: "lost" (acknowledged and not there), "half" (part of something that goes in as a
// whole), "unintended" (nobody wrote it), "wrong" (there, but not as it was told), "broken" (can't be opened, read or used).

import { openSessions } from "bough";
import { snapshotStore } from "bough/testing";
import { matchLives } from "./checks/existence.mjs";
import { checkBranchLog } from "./checks/log.mjs";
import { checkProjections } from "./checks/projection.mjs";
import { checkCheckpoints, checkContent, checkSession } from "./checks/records.mjs";
import { Lives } from "./kit/lives.mjs";
import { closeStore, openStoreAt } from "./kit/stores.mjs";

export const emptySnapshot = { sessions: [], runs: [] };

/** What is wrong with a snapshot of a store, given the snapshot before a history and the history. */
export function compare(baseline, history, snapshot) {
  const problems = [];
  const report = (kind, text) => problems.push({ kind, text });
  for (const { failed, message } of history.failures) report("broken", `a writer failed: ${failed}: ${message}`);
  const lives = new Lives(baseline, history);
  problems.push(...lives.problems);
  const { sessions, branches } = matchLives(lives, snapshot, report);
  for (const session of sessions) checkSession(session, report);
  for (const branch of branches) {
    checkBranchLog(branch, snapshot.runs, report);
    checkCheckpoints(branch, report);
    checkContent(branch, report);
  }
  return problems;
}

/**
 * Opens the store and checks everything. `finish(ref)` says which turns left open are resumed and committed; the store is
 * used for real, so the snapshot it returns, the baseline of the next history, is taken at the end.
 */
export async function checkStore({ name, path, clock, baseline, history, finish = () => true }) {
  let store;
  try {
    store = await openStoreAt(name, path, clock);
  } catch (error) {
    return { problems: [{ kind: "broken", text: `the store does not open: ${error.code}: ${error.message}` }] };
  }
  try {
    const problems = compare(baseline, history, await snapshotStore(store));
    if (problems.length === 0) await checkUse(store, clock, finish, (kind, text) => problems.push({ kind, text }));
    return { problems, snapshot: await snapshotStore(store) };
  } catch (error) {
    return { problems: [{ kind: "broken", text: `the store can't be read: ${error.stack}` }] };
  } finally {
    await closeStore(store);
  }
}

async function checkUse(store, clock, finish, report) {
  const sessions = await openSessions(store, { clock });
  expireReused(await store.listRuns(), clock);
  await checkProjections(sessions, await snapshotStore(store), { finish, report });
  for (const { code, detail } of (await sessions.maintain()).problems) {
    if (code === "corrupt") report("broken", `maintain() found it corrupt: ${detail}`);
  }
  for (const { code, detail } of (await sessions.maintain()).problems) {
    report("broken", `a second maintain() still finds something: ${code}: ${detail}`);
  }
}

/** The number of a dead writer may be some other process's by now; its claims then end with their lease. */
function expireReused(runs, clock) {
  const isReused = ({ owner }) => {
    try {
      return process.kill(Number(owner.split("/").at(-1)), 0);
    } catch (error) {
      return error.code !== "ESRCH";
    }
  };
  for (const run of runs) if (isReused(run)) clock.reach(run.expiresAt);
}
