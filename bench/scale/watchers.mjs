// Idle watchers beside a writer: the CPU of a second depends on what changes, not on how many wait.

import { setMaxListeners } from "node:events";
import { cpuOf, eachOf, growth, newSession, onStores, sizesOf, sleep } from "../lib/growth.mjs";

export async function run(context) {
  const sizes = sizesOf(context, 50);
  await onStores(context, ({ kind, open, newPlace }) =>
    growth(context, {
      kind,
      sizes,
      alone: true,
      rounds: 3,
      promises: { "50 writes elsewhere": "flat" },
      async at(n) {
        const place = await newPlace();
        const store = await open(place);
        const writer = await open(place);
        const busy = { sessionId: "busy", branchId: "main" };
        await writer.createSession(newSession("busy"));
        await eachOf(n, (i) => store.createSession(newSession(`s${i}`)));
        const over = new AbortController();
        setMaxListeners(0, over.signal);
        for (let i = 0; i < n; i++) void store.watch({ sessionId: `s${i}`, branchId: "main" }, 0, over.signal);
        await sleep(200);
        let written = 0;
        return {
          costs: {
            "50 writes elsewhere": () =>
              cpuOf(async () => {
                for (let i = 0; i < 50; i++) {
                  await writer.append(busy, [{ id: `e${written++}`, data: "{}" }]);
                  await sleep(20);
                }
              }),
          },
          async close() {
            over.abort();
            await Promise.all([store.close(), writer.close()]);
          },
        };
      },
    }),
  );
}
