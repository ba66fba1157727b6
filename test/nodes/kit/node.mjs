// One node of a cluster: a process that runs agents on a shared store, takes over what others leave behind, and may be
// killed, paused or told to end at any time. What it writes into its journal file survives it.
// node node.mjs '{"url":"sqlite:…","life":1,"owner":"…","journal":"…","leaseMs":500}' with an IPC channel.
// Commands: { run: { id, sessionId, input } }, { interrupt: { id, sessionId } }. Answers: { id, outcome }.

import { openSync, writeSync } from "node:fs";
import { createAgent } from "bough";
import { modelOf, toolsOf } from "./play.mjs";
import { openStoreAt } from "./stores.mjs";

const { url, life, owner, journal, leaseMs } = JSON.parse(process.argv[2]);
const file = openSync(journal, "a");
const note = (line) => writeSync(file, `${JSON.stringify({ ...line, life, t: Date.now() })}\n`);

/** Notes every append before it is asked for and after it is acknowledged. */
function noting(store) {
  const append = async (ref, events, options = {}) => {
    const { sessionId } = ref;
    const ids = events.map(({ id }) => id);
    note({ asked: ids, sessionId, epoch: options.epoch, runId: options.claim?.runId });
    const appended = await store.append(ref, events, options);
    note({ acked: ids, sessionId, first: appended.first, epoch: options.epoch ?? appended.claim?.epoch });
    return appended;
  };
  return new Proxy(store, {
    get(target, name) {
      if (name === "append") return append;
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The server may be about to start again. */
async function openInTime(tries = 100) {
  try {
    return await openStoreAt(url);
  } catch (error) {
    if (tries === 0) throw error;
    await new Promise((resolve) => setTimeout(resolve, 100));
    return openInTime(tries - 1);
  }
}

const store = noting(await openInTime());
const agent = createAgent({
  id: "cluster",
  model: modelOf(),
  tools: toolsOf(note),
  store,
  leaseMs,
  telemetry: false,
  ...(owner && { owner }),
  // What fails is the store's, and shows in what comes of it.
  logger: { warn: (...words) => note({ warned: words.map(String) }) },
});
agent.subscribe("*", ({ seq, id, sessionId }) => seq !== undefined && note({ shown: id, seq, sessionId }));
agent.keepRecovering({ scanEveryMs: 1000, attempts: Number.POSITIVE_INFINITY });

async function run({ sessionId, input }) {
  const { status, reason, error } = await agent.run(input, { sessionId }).result;
  return { status, reason, code: error?.code };
}

async function interrupt({ sessionId }) {
  const { outcome, runId } = await agent.interrupt({ sessionId }, { reason: "told to" });
  if (outcome === "accepted") note({ interrupted: runId, sessionId });
  return { status: outcome };
}

process.on("message", async ({ run: wanted, interrupt: stopped }) => {
  const { id } = wanted ?? stopped;
  const outcome = await (wanted ? run(wanted) : interrupt(stopped)).catch((error) => ({
    code: error.code ?? error.stack,
  }));
  if (process.connected) process.send({ id, outcome }, () => {});
});

process.on("SIGTERM", async () => {
  await agent.close({ drainMs: 50 });
  process.exit(0);
});
process.on("disconnect", () => process.exit(1));
process.send({ ready: true });
