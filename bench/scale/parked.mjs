// Parked turns: who looks for turns that can go on loads none that can't.

import { createAgent, defineTool } from "bough";
import { scriptedModel } from "bough/scripted";
import { cpuOf, eachOf, growth, onStores, sizesOf, sleep } from "../lib/growth.mjs";

const scanEveryMs = 1000;

export async function run(context) {
  const sizes = sizesOf(context, 20);
  await onStores(context, ({ kind, open }) =>
    growth(context, {
      kind,
      sizes,
      alone: true,
      rounds: 3,
      promises: { "CPU of a second with a scan": "linear" },
      async at(n) {
        const store = await open();
        const guarded = defineTool({ input: { type: "object" }, permission: true, execute: () => "ok" });
        const model = scriptedModel(() => ({ calls: [{ name: "guarded", input: {} }] }));
        const limits = { answerMs: 3_600_000 };
        const agent = createAgent({ model, store, tools: { guarded }, limits });
        await eachOf(n, async (i) => {
          await agent.createSession(`s${i}`);
          await agent.run("Go.", { sessionId: `s${i}`, questions: "park" }).result;
        });
        const stop = agent.keepRecovering({ scanEveryMs });
        await sleep(2 * scanEveryMs);
        return {
          costs: { "CPU of a second with a scan": () => cpuOf(() => sleep(scanEveryMs * 1.5)) },
          async close() {
            await stop();
            await agent.close();
            await store.close();
          },
        };
      },
    }),
  );
}
