// A long turn: its last iterations cost what its first did. One turn is all sizes: what is taken is the CPU of the iterations before each.

import { createAgent, defineTool } from "bough";
import { scriptedModel } from "bough/scripted";
import { growth, onStores } from "../lib/growth.mjs";

const measured = 40;

export async function run(context) {
  const sizes = context.quick ? [100, 500, 2000] : [100, 1000, 10_000];
  await onStores(context, async ({ kind, open }) => {
    const store = await open();
    await costsOf(store, [200]);
    const costs = await costsOf(store, sizes);
    await growth(context, {
      kind,
      sizes,
      promises: { "CPU of an iteration with one call": { promise: "flat", once: true } },
      at: (n) => ({ costs: { "CPU of an iteration with one call": () => costs.get(n) } }),
    });
    await store.close();
  });
}

/** The CPU of the iterations that lead to each size, in milliseconds for each. */
async function costsOf(store, sizes) {
  const last = sizes.at(-1);
  const costs = new Map();
  let begun;
  const noop = defineTool({ input: { type: "object" }, execute: () => "ok" });
  const model = scriptedModel((_, call) => {
    if (sizes.includes(call + measured)) begun = process.cpuUsage();
    if (sizes.includes(call)) {
      const { user, system } = process.cpuUsage(begun);
      costs.set(call, (user + system) / 1000 / measured);
    }
    return call < last ? { calls: [{ name: "noop", input: { call } }] } : "Done.";
  });
  const agent = createAgent({ model, store, tools: { noop }, limits: { iterations: last + 1 } });
  const { id: sessionId } = await agent.createSession();
  await agent.run("Go.", { sessionId, branchId: "main" }).result;
  return costs;
}
