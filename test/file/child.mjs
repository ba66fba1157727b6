// A process that owns a store: node child.mjs <directory> <what>. It says "open" when it has it, and one line for every
// step that was answered. BOUGH_FAILPOINT kills it on the way.

import { createHash } from "node:crypto";
import { fileStore } from "bough/stores/file";

const [directory, what] = process.argv.slice(2);
const say = (line) => process.stdout.write(`${line}\n`);
const claim = { runId: "r", owner: "o", leaseMs: 60_000 };
const fact = (id) => ({ id, data: JSON.stringify({ type: id }) });

const store = await fileStore(directory).catch((error) => {
  say(`${error.code} ${error.message}`);
  process.exit(1);
});
say("open");
if (what === "work") await work();
else if (what === "turns") await turns();
else if (what === "parked") await parked();
if (what === "hold" || what === "parked") setInterval(() => {}, 1000);

async function put(ref, bytes) {
  const writer = await store.content.write(ref);
  await writer.add(bytes);
  await writer.finish();
  await writer.commit({ mediaType: "text/plain" });
}

async function work() {
  const session = { id: "s", metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } };
  await store.createSession(session);
  say("session");
  await claimTwice();
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
    await put(main, bytes);
    say(`put ${round}`);
    await store.maintain();
    say(`maintain ${round}`);
    // What was removed comes back under the same names, which is what a redo log could get wrong.
    await store.content.delete(main, createHash("sha256").update(bytes).digest("hex"));
    say(`drop ${round}`);
    await store.deleteBranch({ ...main, branchId: "fork" });
    say(`delete ${round}`);
  }
  await store.close();
  say("closed");
}

/** A run slot that is held and released, so that its file comes and goes, and comes again. */
async function claimTwice() {
  const ref = { sessionId: "claimed", branchId: "main" };
  await store.createSession({ id: "claimed", metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } });
  for (const id of ["c1", "c2"]) {
    const { claim: slot } = await store.append(ref, [fact(id)], { claim });
    await store.releaseRun(ref, { epoch: slot.epoch });
  }
}

async function twoBranches() {
  await store.createSession({ id: "s", metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } });
  await store.createBranch("s", { id: "side", header: {}, events: [], parent: { branchId: "main", seq: 0 } });
  return ["main", "side"].map((branchId) => ({ sessionId: "s", branchId }));
}

/** Opens a turn, asks a question in it and parks it; returns how its branch goes on. */
async function openTurn(ref, round) {
  const header = { turn: `t${round}`, name: `round ${round}` };
  const { claim: slot } = await store.append(ref, [fact(`t${round}`), fact(`m${round}`)], { header, claim });
  say(`open ${ref.branchId} ${round}`);
  return slot.epoch;
}

async function park(ref, round, epoch) {
  await store.append(ref, [fact(`q${round}`)], { header: { asks: [`q${round}`] }, epoch });
  say(`ask ${ref.branchId} ${round}`);
  await store.append(ref, [fact(`p${round}`)], { epoch, release: true });
  say(`park ${ref.branchId} ${round}`);
}

/** Turns on two branches at once: one goes through, the other is parked and resumed. */
async function turns() {
  const [main, side] = await twoBranches();
  const close = { header: { turn: null, asks: null }, release: true };
  for (let round = 1; round <= 3; round++) {
    await park(main, round, await openTurn(main, round));
    const epoch = await openTurn(side, round);
    if (round === 2) await store.maintain();
    const { claim: resumed } = await store.append(main, [fact(`r${round}`)], { claim });
    say(`resume main ${round}`);
    await store.append(side, [fact(`c${round}`)], { ...close, epoch });
    say(`close side ${round}`);
    await store.append(main, [fact(`c${round}`)], { ...close, epoch: resumed.epoch });
    say(`close main ${round}`);
  }
  await store.close();
}

async function parked() {
  const [main, side] = await twoBranches();
  await park(main, 1, await openTurn(main, 1));
  await openTurn(side, 1);
  say("parked");
}
