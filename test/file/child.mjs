// A process that owns a store: node child.mjs <directory> <what>. It says "open" when it has it, and one line for every
// step that was answered. BOUGH_FAILPOINT kills it on the way.

import { fileStore } from "bough/stores/file";

const [directory, what] = process.argv.slice(2);
const say = (line) => process.stdout.write(`${line}\n`);

const store = await fileStore(directory).catch((error) => {
  say(`${error.code} ${error.message}`);
  process.exit(1);
});
say("open");
if (what === "hold") setInterval(() => {}, 1000);
else await work();

async function work() {
  const session = { id: "s", metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } };
  await store.createSession(session);
  say("session");
  const main = { sessionId: "s", branchId: "main" };
  const bytes = new TextEncoder().encode("content");
  for (let round = 1; round <= 4; round++) {
    const events = [1, 2, 3].map((n) => ({ id: `e${round}-${n}`, data: JSON.stringify({ round, n }) }));
    await store.append(main, events, {
      header: { round },
      claim: { runId: `r${round}`, owner: "o", leaseMs: 1 },
      release: true,
    });
    say(`append ${round}`);
    const parent = { branchId: "main", seq: 3 * round };
    await store.createBranch("s", { id: "fork", header: {}, events: [{ id: `f${round}`, data: "{}" }], parent });
    say(`fork ${round}`);
    await store.putContent(main, { id: "1a", bytes, mediaType: "text/plain" });
    say(`put ${round}`);
    await store.maintain();
    say(`maintain ${round}`);
    // What was removed comes back under the same names, which is what a redo log could get wrong.
    await store.deleteContent(main, "1a");
    say(`drop ${round}`);
    await store.deleteBranch({ ...main, branchId: "fork" });
    say(`delete ${round}`);
  }
  await store.close();
  say("closed");
}
