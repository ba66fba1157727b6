// How long it takes until a killed process's run is taken over, on a store that many processes share.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createJiti } from "jiti";
import { measureTakeover } from "./kit/takeover.mjs";

const help = `node test/nodes/takeover.mjs [--store sqlite|postgres|redis] [--kills N] [--lease MS] [--json] [URL]

  --store      which store (default sqlite); servers are started for the time of the measurement
  --kills N    how many processes are killed (default 100)
  --lease MS   how long a claim holds without a sign of life (default 500)
  --json       one line of JSON: { store, kills, leaseMs, median, p99, longest }, in milliseconds
  URL          a store that is there already, instead of --store

Fails when the 99th of a hundred take-overs comes later than half a second after the lease.
`;

/** Dead owners are noticed when their lease ends, by a look at most this long after. */
const slackMs = 500;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: "boolean", default: false },
    store: { type: "string", default: "sqlite" },
    kills: { type: "string", default: "100" },
    lease: { type: "string", default: "500" },
    json: { type: "boolean", default: false },
  },
});

async function measure() {
  const [kills, leaseMs] = [Number(values.kills), Number(values.lease)];
  const folder = mkdtempSync(join(tmpdir(), "bough-takeover-"));
  const { places } = await createJiti(import.meta.url).import("./kit/places.ts");
  const [url] = positionals;
  const place = url ? { url } : await places[values.store](folder);
  try {
    const onTime = (done) => process.stderr.isTTY && process.stderr.write(`\r${done} of ${kills} kills `);
    const times = await measureTakeover({ url: place.url, folder, kills, leaseMs, onTime });
    if (process.stderr.isTTY) process.stderr.write("\r\x1b[2K");
    const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))];
    const store = url ? url.split(":")[0] : values.store;
    return { store, kills, leaseMs, median: at(0.5), p99: at(0.99), longest: times.at(-1) };
  } finally {
    await place.stop?.();
    rmSync(folder, { recursive: true });
  }
}

if (values.help) console.log(help);
else {
  const told = await measure();
  const { store, kills, leaseMs, median, p99, longest } = told;
  if (values.json) console.log(JSON.stringify(told));
  else {
    console.log(
      `${store}, ${kills} kills, lease ${leaseMs} ms: median ${median} ms, p99 ${p99} ms, longest ${longest} ms`,
    );
  }
  if (p99 > leaseMs + slackMs) process.exitCode = 1;
}
