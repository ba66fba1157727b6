// The process that is killed: opens a store, works on it at random in several lanes, and tells every write (kit/trace.mjs).
// Run by the campaigns; by hand: node test/crash/writer.mjs --store sqlite --path /tmp/a.db --seed 1 --ops 100

import { writeSync } from "node:fs";
import { parseArgs } from "node:util";
import { openSessions } from "bough";
import { Random } from "./kit/random.mjs";
import { HostClock, hostTime, openStoreAt } from "./kit/stores.mjs";
import { traced } from "./kit/trace.mjs";
import { isPooled, Workload } from "./kit/workload.mjs";

const { values: options } = parseArgs({
  options: {
    store: { type: "string" },
    path: { type: "string" },
    seed: { type: "string", default: "1" },
    /** How many operations before it closes the store and ends. */
    ops: { type: "string", default: "Infinity" },
    /** How far its clock is ahead. */
    ahead: { type: "string", default: "0" },
    /** Others write to the same store at the same time. */
    shared: { type: "boolean", default: false },
    /** Only open the store and close it again. */
    "open-only": { type: "boolean", default: false },
  },
});

/** Blocks until the line is out: what is told is told, whenever the kill comes. With the time, to sort by. */
function emit(line) {
  const bytes = Buffer.from(`${JSON.stringify({ ...line, t: hostTime() })}\n`);
  for (let done = 0; done < bytes.length; ) {
    try {
      done += writeSync(1, bytes, done);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

async function main() {
  const random = new Random(options.seed);
  const clock = new HostClock(Number(options.ahead));
  const store = await openStoreAt(options.store, options.path, clock);
  emit({ opened: options.store });
  if (!options["open-only"]) {
    const isReused = (id) => !options.shared && isPooled(id);
    const told = traced(store, { emit, clock, isReused });
    // A process has ids of its own: what it writes is never mistaken for what one before it wrote.
    let count = 0;
    const ids = { next: () => `${options.seed}.${++count}` };
    const sessions = await openSessions(told, { clock, ids });
    await new Workload({ sessions, random, ids, emit, reuses: !options.shared }).run(Number(options.ops));
    await sessions.close();
  } else await store.close();
  emit({ closed: true });
}

main().catch((error) => {
  emit({ failed: error.code ?? error.name, message: error.message, stack: error.stack });
  process.exit(1);
});
