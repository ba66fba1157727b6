// How long it takes until a killed process's run is taken over by another one.

import { openSessions } from "bough";
import { readNotes } from "./check.mjs";
import { Cluster } from "./cluster.mjs";
import { openStoreAt } from "./stores.mjs";

const nodeCount = 3;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Kills a node in the middle of a run, again and again; returns the milliseconds until each run was taken up. */
export async function measureTakeover({ url, folder, kills, leaseMs, onTime = () => {} }) {
  const cluster = new Cluster({ url, folder, leaseMs });
  const store = await openStoreAt(url);
  const sessions = await openSessions(store);
  const times = [];
  try {
    // Only its lease tells that a node is dead, as on another host.
    for (let number = 0; number < nodeCount; number++) await cluster.start(number, { isNamed: false });
    for (let kill = 0; times.length < kills; kill++) {
      const { id: sessionId } = await sessions.createSession();
      const node = cluster.awake[kill % cluster.awake.length];
      const input = JSON.stringify({ name: `kill-${kill}`, batches: [[{ tool: "look", ms: 200 }]] });
      void cluster.ask(node, "run", { sessionId, input }, 60_000);
      while (!readNotes(folder).some((note) => note.executed && note.sessionId === sessionId)) await sleep(2);
      const killedAt = Date.now();
      await cluster.end(node, "SIGKILL");
      const at = await resumedAt(store, sessionId);
      // On a busy machine a run may be over before its node is.
      if (at !== undefined) onTime(times.push(at - killedAt));
      await cluster.start(node.number, { isNamed: false });
    }
  } finally {
    for (const node of cluster.awake) await cluster.end(node, "SIGKILL");
    await sessions.close();
  }
  return times.sort((a, b) => a - b);
}

/** Undefined when the turn came to its end without that. */
async function resumedAt(store, sessionId) {
  for (;;) {
    const events = await store.read({ sessionId, branchId: "main" });
    const facts = events.map(({ data }) => JSON.parse(data));
    const resumed = facts.find(({ type }) => type === "turn.resumed");
    if (resumed) return resumed.at;
    if (facts.some(({ type }) => type === "turn.committed")) return undefined;
    await sleep(5);
  }
}
