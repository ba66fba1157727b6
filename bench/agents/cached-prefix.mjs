// What providers can cache: the share of each prompt's bytes that begins the next prompt, over a long session with a plan that
// changes. The model's own record of what it was sent is compared, not what is rebuilt.

import { createAgent, planning } from "bough";
import { scriptedModel } from "bough/scripted";
import { pooledTurns } from "../lib/conversation.mjs";
import { openStoreAt } from "../lib/stores.mjs";

const branch = { sessionId: "planned", branchId: "main" };
/** Every so many turns the model changes its plan. */
const perPlan = 4;

export async function run(context) {
  const turns = context.quick ? 50 : 200;
  const next = pooledTurns();
  let turn = 0;
  const model = scriptedModel((prompt) => {
    const isPlanned = turn % perPlan !== 0 || prompt.some(({ role }, i) => role === "tool" && i > prompt.length - 3);
    if (isPlanned) return next().assistant;
    return { calls: [{ name: "update_plan", input: { steps: stepsAt(turn) } }] };
  });
  const agent = createAgent({
    ...{ model, store: await openStoreAt("memory"), instructions: "Keep a plan.", middleware: [planning()] },
  });
  await agent.createSession(branch.sessionId);
  for (; turn < turns; turn++) await agent.run(next().user, branch).text();
  const prompts = model.calls.map(({ prompt, tools }) => [
    JSON.stringify(tools),
    ...prompt.map((each) => JSON.stringify(each)),
  ]);
  await agent.close();
  let [shared, all] = [0, 0];
  for (let i = 1; i < prompts.length; i++) {
    shared += commonBytes(prompts[i - 1], prompts[i]);
    all += prompts[i - 1].reduce((sum, part) => sum + Buffer.byteLength(part), 0);
  }
  const percent = (value) => `${(100 * value).toFixed(2)} %`;
  context.row({
    what: `prompt bytes that begin the next prompt, ${turns} turns with a plan that changes every ${perPlan}`,
    measured: percent(shared / all),
    limit: percent(1),
    ratio: shared / all,
    target: { min: 0.98 },
    figures: { shared, all, calls: prompts.length },
  });
}

function stepsAt(turn) {
  return Array.from({ length: 5 }, (_, i) => ({
    step: `Step ${i + 1} since ${turn}`,
    status: i === 0 ? "in_progress" : "pending",
  }));
}

function commonBytes(earlier, later) {
  let bytes = 0;
  for (let i = 0; i < earlier.length; i++) {
    if (earlier[i] !== later[i]) break;
    bytes += Buffer.byteLength(earlier[i]);
  }
  return bytes;
}
