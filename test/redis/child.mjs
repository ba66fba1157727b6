// One process of the tests that need several. It says what was acknowledged, a line each.
//   node child.mjs append URL PREFIX NAME COUNT   appends COUNT batches to branch main of session "s"
//   node child.mjs die URL PREFIX                 changes sessions in every way and is gone before anything is tidied up

import { writeSync } from "node:fs";
import { redisStore } from "../../dist/stores/redis/index.js";

const [command, url, prefix, name, count] = process.argv.slice(2);
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);
const store = await redisStore(url, { prefix, onWarning: () => {} });
const main = { sessionId: "s", branchId: "main" };

if (command === "append") {
  for (let i = 0; i < Number(count); i++) {
    const events = [`${name}-${i}-a`, `${name}-${i}-b`].map((id) => ({ id, data: `{"of":"${id}"}` }));
    const { first } = await store.append(main, events);
    say({ first, ids: events.map(({ id }) => id) });
  }
  await store.close();
}

if (command === "die") {
  const branch = { id: "main", header: {}, events: [] };
  await store.createSession({ id: "born", metadata: { k: "new" }, state: {}, branch });
  await store.updateSession("patched", { metadata: { k: "new" } });
  await store.append({ sessionId: "claimed", branchId: "main" }, [{ id: "claim", data: "{}" }], {
    claim: { runId: "r", owner: "o", leaseMs: 60_000 },
  });
  await store.deleteSession("deleted");
  await store.append({ sessionId: "touched", branchId: "main" }, [{ id: "e", data: "{}" }]);
  process.kill(process.pid, "SIGKILL");
}
