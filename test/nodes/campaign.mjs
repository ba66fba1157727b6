// The cluster test for as long as one likes.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const help = `npm run test:cluster -- [--minutes N] [--seed S] [--store sqlite|postgres|redis|all]

  --minutes N  how long each store is worked on (default 5)
  --seed S     where chance comes from (default: the clock); the same seed gives the same inputs and the same nemesis
  --store      which store (default sqlite); servers are started for the time of the test
`;

function options() {
  const { values } = parseArgs({
    options: {
      help: { type: "boolean", default: false },
      minutes: { type: "string", default: "5" },
      seed: { type: "string", default: String(Date.now()) },
      store: { type: "string", default: "sqlite" },
    },
  });
  if (!(Number(values.minutes) > 0)) throw new Error(`--minutes is a number, not "${values.minutes}".`);
  if (!["sqlite", "postgres", "redis", "all"].includes(values.store))
    throw new Error(`There is no --store ${values.store}.`);
  return values;
}

function run({ minutes, seed, store }) {
  const env = {
    ...process.env,
    BOUGH_SEED: seed,
    BOUGH_CLUSTER_MS: String(Number(minutes) * 60_000),
    BOUGH_CLUSTER_STORES: store === "all" ? "sqlite,postgres,redis" : store,
  };
  const vitest = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));
  const child = spawn(process.execPath, [vitest, "run", "test/nodes/cluster.test.ts"], { env, stdio: "inherit" });
  child.on("close", (code) => {
    process.exitCode = code ?? 1;
  });
}

try {
  const given = options();
  if (given.help) console.log(help);
  else run(given);
} catch (error) {
  console.error(`${error.message}\n\n${help}`);
  process.exitCode = 2;
}
