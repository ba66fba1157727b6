// Run by cold-run.mjs: one turn on a branch that this process has never seen, with everything imported and the store open.

import { createAgent } from "bough";
import { scriptedModel } from "bough/scripted";
import { importDrivers, openStoreAt } from "../lib/stores.mjs";

const [place] = process.argv.slice(2);
await importDrivers("sqlite");
const store = await openStoreAt("sqlite", place);
let seen = 0;
const model = scriptedModel((prompt) => {
  seen = prompt.length;
  return "Done.";
});
const agent = createAgent({ model, store });
// What the first run of a process compiles and imports is the same for both.
await agent.createSession(`warm ${process.pid}`);
await agent.run("go", { sessionId: `warm ${process.pid}`, branchId: "main" }).text();
globalThis.gc({ type: "minor" });
const begun = performance.now();
await agent.run("go", { sessionId: "s", branchId: "main" }).text();
const turn = performance.now() - begun;
await agent.close();
console.log(JSON.stringify({ turn, seen }));
