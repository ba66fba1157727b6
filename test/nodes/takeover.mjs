// How long it takes until a killed process's run is taken over: node test/nodes/takeover.mjs [--kills N] [--lease MS] [URL]

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openSessions } from "bough";
import { readNotes } from "./kit/check.mjs";
import { Cluster } from "./kit/cluster.mjs";
import { openStoreAt } from "./kit/stores.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { kills: { type: "string", default: "100" }, lease: { type: "string", default: "500" } },
});
const [kills, leaseMs] = [Number(values.kills), Number(values.lease)];
const folder = mkdtempSync(join(tmpdir(), "bough-takeover-"));
const url = positionals[0] ?? `sqlite:${join(folder, "bough.db")}`;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const cluster = new Cluster({ url, folder, leaseMs });
const store = await openStoreAt(url);
const sessions = await openSessions(store);
// Only its lease tells that a node is dead, as on another host.
for (let number = 0; number < 3; number++) await cluster.start(number, { isNamed: false });

async function resumedAt(sessionId) {
  for (;;) {
    const events = await store.read({ sessionId, branchId: "main" });
    const resumed = events.map(({ data }) => JSON.parse(data)).find(({ type }) => type === "turn.resumed");
    if (resumed) return resumed.at;
    await sleep(5);
  }
}

const times = [];
for (let kill = 0; kill < kills; kill++) {
  const { id: sessionId } = await sessions.createSession();
  const node = cluster.awake[kill % cluster.awake.length];
  const input = JSON.stringify({ name: `kill-${kill}`, batches: [[{ tool: "look", ms: 200 }]] });
  void cluster.ask(node, "run", { sessionId, input }, 60_000);
  while (!readNotes(folder).some((note) => note.executed && note.sessionId === sessionId)) await sleep(2);
  const killedAt = Date.now();
  await cluster.end(node, "SIGKILL");
  times.push((await resumedAt(sessionId)) - killedAt);
  await cluster.start(node.number, { isNamed: false });
}
for (const node of cluster.awake) await cluster.end(node, "SIGKILL");
await sessions.close();
rmSync(folder, { recursive: true });

times.sort((a, b) => a - b);
const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))];
console.log(
  `${kills} kills, lease ${leaseMs} ms: median ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${times.at(-1)} ms`,
);
if (at(0.99) > leaseMs + 500) process.exitCode = 1;
