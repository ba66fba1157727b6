// The process that is killed: begins one execution or goes on with it, signals it and answers its question, until it has ended.
// node killed.mjs '{"store":"sqlite:…","effects":"…"}'

import { appendFileSync, readFileSync } from "node:fs";
import { createAgent } from "bough";
import { scriptedModel } from "bough/scripted";
import { createWorkflow, workflow } from "bough/workflows";

const { store, effects } = JSON.parse(process.argv[2]);
const done = (stepId) => {
  appendFileSync(effects, `${stepId}\n`);
  return stepId.split("/").slice(1).join("/");
};
const wasDone = (stepId) => readFileSync(effects, "utf8").includes(`${stepId}\n`);

const writer = createAgent({ name: "writer", model: scriptedModel(() => "written"), telemetry: false });
const flow = workflow("killed", { conversation: "perNode" }, async (flow, input) => {
  const first = await flow.step("first", ({ stepId }) => done(stepId));
  const paid = await flow.step("charge", ({ stepId }) => done(stepId), {
    effect: "once",
    reconcile: ({ stepId, key }) => (wasDone(stepId) ? { output: key } : "not-executed"),
  });
  const items = await flow.map("items", input, () => flow.step("one", ({ stepId }) => done(stepId)), {
    key: String,
    parallel: 2,
  });
  await flow.sleep("night", 40);
  const { text } = await flow.agent("write", writer, "Write.");
  const signal = await flow.wait("paid");
  const { approved } = await flow.ask("publish");
  return { first, paid, items, text, signal, approved };
});

const runner = createWorkflow(flow, { store, leaseMs: 1000, napMs: 0, telemetry: false, logger: { warn() {} } });
const ref = runner.scope("e");
const stop = runner.keepRecovering({ everyMs: 20, scanEveryMs: 50 });
const quietly = (work) => Promise.resolve(work).catch(() => {});
await quietly(runner.run([1, 2, 3], { executionId: "e" }).result);
for (;;) {
  const { messages, interactions, uncommittedTurn, seq } = await runner.loadBranch(ref);
  if (!uncommittedTurn && messages.length > 1) break;
  await quietly(runner.signal(ref, { name: "paid", id: "the-signal", payload: { amount: 3 } }));
  for (const { id } of interactions) await quietly(runner.respond(ref, id, { approved: true }));
  await runner.store.watch(ref, seq, AbortSignal.timeout(200));
}
await stop();
await runner.close();
