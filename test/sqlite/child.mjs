// One process of the tests that need several. It says what was acknowledged, a line each, and may be killed at any time.
//   node child.mjs open PATH SESSION            opens the database and creates a session
//   node child.mjs append PATH NAME COUNT       appends COUNT batches to branch main of session "s"
//   node child.mjs visit PATH                   opens the database, closes it and lets go of the file for good
//   node child.mjs watch PATH                   waits for news of that branch, with nothing else to do

import { readdirSync, readlinkSync, writeSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { sqliteStore } from "bough/stores/sqlite";

const [command, path, name, count] = process.argv.slice(2);
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);
const store = await sqliteStore(path);
const main = { sessionId: "s", branchId: "main" };

if (command === "open") {
  await store.createSession({ id: name, metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } });
  say({ created: name });
  await store.close();
}

if (command === "append") {
  for (let i = 0; i < Number(count); i++) {
    const events = [`${name}-${i}-a`, `${name}-${i}-b`].map((id) => ({ id, data: `{"of":"${id}"}` }));
    const { first } = await store.append(main, events);
    say({ first, ids: events.map(({ id }) => id) });
  }
  await store.close();
}

if (command === "visit") {
  await store.listSessions();
  await store.close();
  // The package lets go of the file when its statements are collected.
  setFlagsFromString("--expose-gc");
  for (let i = 0; i < 5; i++) {
    await new Promise((resolve) => setImmediate(resolve));
    runInNewContext("gc")();
  }
  say({ gone: readdirSync("/proc/self/fd").every((fd) => !linkOf(fd).startsWith(path)) });
}

if (command === "watch") {
  say({ watching: true });
  store.watch(main, 1_000_000, new AbortController().signal);
}

function linkOf(fd) {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}
