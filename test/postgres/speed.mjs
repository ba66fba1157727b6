// How many appends a second, beside what the same server does with bare one-row commits. No test: nothing is asserted.
//   npm run build && node test/postgres/speed.mjs postgres://user@host/database [seconds per line]

import { randomUUID } from "node:crypto";
import pg from "pg";
import { postgresStore } from "../../dist/stores/postgres/index.js";

const [url, seconds = "4"] = process.argv.slice(2);
const data = JSON.stringify({ type: "message.added", text: "x".repeat(250) });
const schema = `speed_${randomUUID().slice(0, 8)}`;

/** Runs the work in `lanes` loops for a while; returns how often a second it ended. */
async function rate(lanes, work) {
  let count = 0;
  let until = performance.now() + 500;
  const loop = async (lane) => {
    while (performance.now() < until) {
      await work(lane);
      count += 1;
    }
  };
  const all = () => Promise.all(Array.from({ length: lanes }, (_, lane) => loop(lane)));
  await all();
  count = 0;
  const start = performance.now();
  until = start + Number(seconds) * 1000;
  await all();
  return (count / (performance.now() - start)) * 1000;
}

async function bare(pool, lanes) {
  const text = `INSERT INTO ${schema}.bare (id, data) VALUES ($1, $2)`;
  return rate(lanes, () => pool.query({ name: "bare", text, values: [randomUUID(), data] }));
}

/** A turn of two appends: the first claims the slot, the second gives it back. */
async function turns(store, lanes, { oneSession }) {
  const refs = [];
  for (let lane = 0; lane < lanes; lane++) {
    const sessionId = oneSession ? `one-${lanes}` : `s-${lanes}-${lane}`;
    const branch = { id: `b${lane}`, header: {}, events: [] };
    if (lane === 0 || !oneSession) await store.createSession({ id: sessionId, metadata: {}, state: {}, branch });
    else await store.createBranch(sessionId, branch);
    refs.push({ sessionId, branchId: branch.id });
  }
  const facts = (n) => Array.from({ length: n }, () => ({ id: randomUUID(), data }));
  return rate(lanes, async (lane) => {
    const claim = { runId: `r${lane}`, owner: "o", leaseMs: 10_000 };
    const begun = await store.append(refs[lane], facts(2), { claim, header: { status: "running", turn: 1 } });
    const { epoch } = begun.claim;
    await store.append(refs[lane], facts(2), {
      epoch,
      expectedSeq: begun.last,
      release: true,
      header: { status: "idle" },
    });
  });
}

const pool = new pg.Pool({ connectionString: url, max: 16 });
await pool.query(`CREATE SCHEMA ${schema}`);
await pool.query(`CREATE TABLE ${schema}.bare (id text PRIMARY KEY, data text NOT NULL)`);
const store = await postgresStore(url, { schema: `${schema}_store` });
try {
  for (const oneSession of [false, true]) {
    for (const lanes of [1, 16, 64]) {
      // Bare inserts right before each line: what a shared machine gives changes by the minute.
      const connections = Math.min(lanes, 16);
      const most = await bare(pool, connections);
      const found = await turns(store, lanes, { oneSession });
      const where = oneSession ? "branches of one session" : "branches, a session each";
      const share = Math.round((100 * found) / (most / 2));
      console.log(
        `${lanes} ${where}: ${Math.round(2 * found)} appends/s, ${Math.round(found)} turns/s; ` +
          `bare inserts on ${connections} connections ${Math.round(most)}/s, half of which is 100 %: ${share} %`,
      );
    }
  }
} finally {
  await store.close();
  await pool.query(`DROP SCHEMA ${schema} CASCADE; DROP SCHEMA ${schema}_store CASCADE`);
  await pool.end();
}
