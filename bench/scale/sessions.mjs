// Many sessions: what is asked for costs, whatever else is stored.

import { createAgent } from "bough";
import { scriptedModel } from "bough/scripted";
import { eachOf, growth, newSession, onStores, sizesOf, steppingClock } from "../lib/growth.mjs";

export async function run(context) {
  const sizes = sizesOf(context, 1000);
  await onStores(context, ({ kind, open }) =>
    growth(context, {
      kind,
      sizes,
      promises: {
        "a page of 50": "flat",
        "a deep page of 50": "flat",
        "a session": "flat",
        "recover() of a new process, nothing open": "flat",
      },
      async at(n) {
        const store = await open(undefined, { clock: steppingClock(10) });
        await eachOf(n, (i) => store.createSession(newSession(`s${i}`)));
        const { cursor } = await store.listSessions({ limit: Math.floor(n / 2) });
        let i = 0;
        return {
          costs: {
            "a page of 50": () => store.listSessions(),
            "a deep page of 50": () => store.listSessions({ cursor }),
            "a session": () => store.getSession(`s${(i++ * 7) % n}`),
            async "recover() of a new process, nothing open"() {
              const agent = createAgent({ model: scriptedModel([]), store });
              const begun = performance.now();
              await agent.recover();
              return performance.now() - begun;
            },
          },
          close: () => store.close(),
        };
      },
    }),
  );
}
