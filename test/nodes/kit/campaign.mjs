// A campaign: nodes work on sessions while a nemesis kills, pauses, ends and starts them, or sets their clocks; then they are left in peace until
// every turn has come to its end, and everything that was noted is compared with what is stored.

import { createAgent } from "bough";
import { Random } from "../../crash/kit/random.mjs";
import { checkHistory, readNotes } from "./check.mjs";
import { Cluster } from "./cluster.mjs";
import { modelOf, randomInput } from "./play.mjs";
import { openStoreAt } from "./stores.mjs";

const nodeCount = 3;
const sessionCount = 6;
const leaseMs = 500;
/** How long it may take until the last turn has come to its end. */
const peaceMs = 20_000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Nodes reach the store at `nodeUrl`, where `faults` happen to their connections and to the server. With `faketime`, the
 * library, their clocks jump. Returns { problems, counts }: problems in sentences, and how often what happened.
 */
export async function campaign({ url, nodeUrl = url, faults = {}, folder, seed, ms, faketime }) {
  const random = new Random(seed);
  const cluster = new Cluster({ url: nodeUrl, folder, leaseMs, faketime });
  const harms = Object.fromEntries(Object.keys(faults).map((name) => [name, 0]));
  const counts = { inputs: 0, interrupts: 0, kill: 0, pause: 0, end: 0, ...(faketime && { jump: 0 }), ...harms };
  const store = await openStoreAt(url);
  const sessions = createAgent({ model: modelOf(), store });
  const sessionIds = Array.from({ length: sessionCount }, (_, i) => `${seed}-${i}`);
  for (const id of sessionIds) await sessions.createSession(id);
  // Leases of a file run by the clock of whoever claims: one that is an hour ahead is over early only for a known death.
  const isKnown = faketime !== undefined && url.startsWith("sqlite:");
  for (let number = 0; number < nodeCount; number++) await cluster.start(number, { isNamed: isKnown || number > 0 });
  const until = Date.now() + ms;
  const work = { cluster, counts, until, faults, isKnown };
  await Promise.all([
    torment({ ...work, random: random.branch("nemesis") }),
    ...sessionIds.map((sessionId) => drive({ ...work, sessionId, random: random.branch(sessionId) })),
  ]);
  const stuck = await makePeace(store, sessionIds);
  const nodes = [...cluster.nodes.values()];
  await Promise.all(nodes.map((node) => cluster.end(node, "SIGTERM")));
  const problems = [...stuck, ...cluster.failures, ...(await checkHistory(store, sessionIds, readNotes(folder)))];
  await sessions.close();
  return { problems, counts };
}

/** Gives a session inputs, one after the other, at whatever node; now and then another one interrupts. */
async function drive({ cluster, sessionId, random, counts, until }) {
  for (let turn = 0; Date.now() < until; turn++) {
    const [node, other] = [random.pick(cluster.awake), random.pick(cluster.awake)];
    if (!node || !other) {
      await sleep(20);
      continue;
    }
    counts.inputs++;
    const input = randomInput(random, `${sessionId}.${turn}`);
    const running = cluster.ask(node, "run", { sessionId, input }, 1500);
    if (random.chance(0.15)) {
      await sleep(random.int(150));
      counts.interrupts++;
      await cluster.ask(other, "interrupt", { sessionId }, 1500);
    }
    await running;
    // What was cut off is mostly left for a take-over.
    await sleep(random.int(random.chance(0.5) ? 1200 : 50));
  }
}

async function torment({ cluster, random, counts, until, faults, isKnown }) {
  const revivals = [];
  const harms = Object.keys(faults).map((name) => [name === "restart" ? 1 : 2, name]);
  if (cluster.faketime) harms.push([20, "jump"]);
  while (Date.now() < until) {
    await sleep(50 + random.int(400));
    const node = random.pick(cluster.awake);
    if (!node) continue;
    const deed = random.weighted([[4, "kill"], [4, "pause"], [2, "end"], ...harms]);
    counts[deed]++;
    if (deed === "jump") {
      cluster.setClock(node, random.pick(["+3600s", "-3600s", "+0 x2", "+0"]));
      continue;
    }
    if (faults[deed]) {
      await faults[deed](random);
      continue;
    }
    const restMs = random.int(600);
    const isNamed = random.chance(0.5) || isKnown;
    if (deed === "pause") {
      cluster.pause(node);
      // Past the lease, mostly.
      revivals.push(sleep(leaseMs * (0.5 + random.next() * 2)).then(() => cluster.resume(node)));
    } else {
      const over = cluster.end(node, deed === "kill" ? "SIGKILL" : "SIGTERM");
      revivals.push(over.then(() => sleep(restMs)).then(() => cluster.start(node.number, { isNamed })));
    }
  }
  await Promise.all(revivals);
}

/** Waits until no session has an open turn; returns those that still have one. */
async function makePeace(store, sessionIds) {
  const open = async () => {
    const rows = await Promise.all(sessionIds.map((id) => store.getBranch({ sessionId: id, branchId: "main" })));
    return rows.filter(({ header }) => header.turn);
  };
  for (const until = Date.now() + peaceMs; Date.now() < until; await sleep(100)) {
    if ((await open()).length === 0) return [];
  }
  const claims = await store.listRuns();
  return (await open()).map((row) => `${row.sessionId}: turn ${row.header.turn} is stuck; ${JSON.stringify(claims)}`);
}
