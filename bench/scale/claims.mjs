// Claims that sleep: a look for what is due costs what is due.

import { eachOf, growth, newSession, onStores, sizesOf } from "../lib/growth.mjs";

const day = 86_400_000;

export async function run(context) {
  const sizes = sizesOf(context, 100);
  await onStores(context, ({ kind, open }) =>
    growth(context, {
      kind,
      sizes,
      promises: { "claims that end within a minute, ten of them": "flat", "all claims": "linear" },
      async at(n) {
        const store = await open();
        await eachOf(n + 10, async (i) => {
          await store.createSession(newSession(`s${i}`));
          const claim = { runId: "r", owner: "elsewhere/1", leaseMs: i < n ? day : 30_000 };
          await store.append({ sessionId: `s${i}`, branchId: "main" }, [{ id: `e${i}`, data: "{}" }], { claim });
        });
        return {
          costs: {
            "claims that end within a minute, ten of them": () =>
              store.listRuns({ endsBefore: Date.now() + 60_000 }).then(() => {}),
            "all claims": () => store.listRuns().then(() => {}),
          },
          close: () => store.close(),
        };
      },
    }),
  );
}
