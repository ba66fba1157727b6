// How fast the file store is beside what the disk can do: node test/file/speed.mjs [rounds]. Build first.
// Many short rounds, interleaved; the best of each counts, because neighbours on the machine only ever make it slower.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { fileStore } from "bough/stores/file";

const rounds = Number(process.argv[2] ?? 40);
const payload = JSON.stringify({ type: "message.added", text: "x".repeat(460) });
const datasync = promisify(fs.fdatasync);
const directory = fs.mkdtempSync(path.join(process.env.SPEED_DIR ?? os.tmpdir(), "bough-speed-"));
const best = new Map();
let count = 0;

async function measure(name, n, work) {
  const start = process.hrtime.bigint();
  await work();
  const rate = n / (Number(process.hrtime.bigint() - start) / 1e9);
  best.set(name, Math.max(best.get(name) ?? 0, rate));
}

const fact = () => [{ id: `id-${String(++count).padStart(12, "0")}`, data: payload }];

async function bare(n) {
  const handle = fs.openSync(path.join(directory, "bare"), "w");
  const line = Buffer.from(`${fact()[0].id}\t${payload}\n`);
  for (let i = 0; i < n; i++) {
    fs.writeSync(handle, line);
    await datasync(handle);
  }
  fs.closeSync(handle);
}

async function together(store, refs, n) {
  await Promise.all(
    refs.map(async (ref) => {
      for (let i = 0; i < n; i++) await store.append(ref, fact());
    }),
  );
}

const session = (id) => ({ id, metadata: {}, state: {}, branch: { id: "main", header: {}, events: fact() } });

const store = await fileStore(path.join(directory, "store"));
await store.createSession(session("one"));
const main = { sessionId: "one", branchId: "main" };
const branches = [];
const sessions = [];
for (let i = 0; i < 64; i++) {
  await store.createBranch("one", { id: `b${i}`, header: {}, events: [], parent: { branchId: "main", seq: 1 } });
  await store.createSession(session(`s${i}`));
  branches.push({ sessionId: "one", branchId: `b${i}` });
  sessions.push({ sessionId: `s${i}`, branchId: "main" });
}

for (let round = 0; round < rounds; round++) {
  await measure("bare append + fdatasync", 200, () => bare(200));
  await measure("sequential appends", 200, () => together(store, [main], 200));
  await measure("64 branches of one session", 1280, () => together(store, branches, 20));
  await measure("64 sessions", 1280, () => together(store, sessions, 20));
  await measure("forks", 50, async () => {
    for (let i = 0; i < 50; i++) {
      const parent = { branchId: "main", seq: 100 };
      await store.createBranch("one", { id: `f${round}-${i}`, header: {}, events: fact(), parent });
    }
  });
  await measure("newest 50, reverse", 50, async () => {
    for (let i = 0; i < 50; i++) await store.read(main, { reverse: true, limit: 50 });
  });
}
await store.close();

const log = fs.statSync(path.join(directory, "store/sessions/one/branches/main/events.jsonl")).size;
const facts = 1 + 200 * rounds;
fs.rmSync(directory, { recursive: true });
for (const [name, rate] of best) console.log(`${name.padEnd(30)} ${Math.round(rate)}/s`);
const of = (a, b) => (best.get(a) / best.get(b)).toFixed(2);
console.log(`sequential / bare              ${of("sequential appends", "bare append + fdatasync")}`);
console.log(`64 branches / sequential       ${of("64 branches of one session", "sequential appends")}`);
console.log(`64 sessions / sequential       ${of("64 sessions", "sequential appends")}`);
console.log(`time of a fork / of an append  ${of("sequential appends", "forks")}`);
console.log(
  `log bytes / payload bytes      ${(log / (facts * payload.length)).toFixed(3)} (payload ${payload.length})`,
);
