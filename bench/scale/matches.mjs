// A search by what many sessions have: a page costs a page, and all pages cost what they give.

import { eachOf, growth, newSession, onStores, sizesOf, steppingClock } from "../lib/growth.mjs";

const both = { app: "chat", plan: "pro" };

export async function run(context) {
  const sizes = sizesOf(context, 1000, 0.3);
  await onStores(context, ({ kind, open }) =>
    growth(context, {
      kind,
      sizes,
      promises: {
        "one key that all have": "flat",
        "two keys that most have": "flat",
        "a key that one has": "flat",
        "a key that only the oldest 1,001 have": "linear",
        "all pages": { promise: "linear", once: true },
      },
      async at(n) {
        const store = await open(undefined, { clock: steppingClock(10) });
        await eachOf(n, (i) => {
          const old = i < 1001 ? { old: "yes" } : {};
          const metadata = { app: "chat", plan: i % 10 ? "pro" : "free", own: `n${i}`, ...old };
          return store.createSession(newSession(`s${i}`, { metadata }));
        });
        let i = 0;
        return {
          costs: {
            "one key that all have": () => store.listSessions({ metadata: { app: "chat" } }),
            "two keys that most have": () => store.listSessions({ metadata: both }),
            "a key that one has": () => store.listSessions({ metadata: { own: `n${(i++ * 7) % n}` } }),
            "a key that only the oldest 1,001 have": () => store.listSessions({ metadata: { old: "yes" } }),
            async "all pages"() {
              let cursor;
              do ({ cursor } = await store.listSessions({ metadata: both, ...(cursor && { cursor }) }));
              while (cursor);
            },
          },
          close: () => store.close(),
        };
      },
    }),
  );
}
