// The process of one measurement: `node measure.mjs NAME OPTIONS`, started by runner.mjs.

const measurements = {
  "append-cost": () => import("../log/append-cost.mjs"),
  "durable-turn": () => import("../log/durable-turn.mjs"),
  "group-commit": () => import("../log/group-commit.mjs"),
  "stored-bytes": () => import("../log/stored-bytes.mjs"),
  fork: () => import("../log/fork.mjs"),
  "cold-load": () => import("../log/cold-load.mjs"),
  "memory-turn": () => import("../run/memory-turn.mjs"),
  stream: () => import("../run/stream.mjs"),
  "sqlite-turn": () => import("../run/sqlite-turn.mjs"),
  "first-turns": () => import("../run/first-turns.mjs"),
  "many-sessions": () => import("../run/many-sessions.mjs"),
  import: () => import("../run/import.mjs"),
  "first-delta": () => import("../serve/first-delta.mjs"),
  "fan-out": () => import("../serve/fan-out.mjs"),
  idle: () => import("../serve/idle.mjs"),
  stalled: () => import("../serve/stalled.mjs"),
  branches: () => import("../nodes/branches.mjs"),
  "turn-cost": () => import("../nodes/turn-cost.mjs"),
  load: () => import("../nodes/load.mjs"),
  langgraph: () => import("../nodes/langgraph.mjs"),
  sessions: () => import("../nodes/sessions.mjs"),
  "take-over": () => import("../nodes/take-over.mjs"),
  "compacted-turn": () => import("../agents/compacted-turn.mjs"),
  "cold-run": () => import("../agents/cold-run.mjs"),
  "fork-turn": () => import("../agents/fork-turn.mjs"),
  "compaction-bytes": () => import("../agents/compaction-bytes.mjs"),
  "cached-prefix": () => import("../agents/cached-prefix.mjs"),
  children: () => import("../agents/children.mjs"),
  "scale/sessions": () => import("../scale/sessions.mjs"),
  "scale/matches": () => import("../scale/matches.mjs"),
  "scale/branches": () => import("../scale/branches.mjs"),
  "scale/depth": () => import("../scale/depth.mjs"),
  "scale/tenants": () => import("../scale/tenants.mjs"),
  "scale/claims": () => import("../scale/claims.mjs"),
  "scale/watchers": () => import("../scale/watchers.mjs"),
  "scale/parked": () => import("../scale/parked.mjs"),
  "scale/iterations": () => import("../scale/iterations.mjs"),
  "scale/checkpoints": () => import("../scale/checkpoints.mjs"),
  "scale/active": () => import("../scale/active.mjs"),
};

const [name, options] = process.argv.slice(2);
const { run } = await measurements[name]();
await run({
  ...JSON.parse(options),
  progress: (text) => process.send({ progress: text }),
  row: (row) => process.send({ row }),
});
process.disconnect();
// What a measurement that broke off left open must not keep the others waiting.
if (name.startsWith("scale/")) process.exit();
