// Checkpoints that are kept: one more costs one.

import { fullHistory, lastN, openSessions } from "bough";
import { eachOf, growth, onStores, sizesOf } from "../lib/growth.mjs";

const main = { sessionId: "s", branchId: "main" };

export async function run(context) {
  const sizes = sizesOf(context, 50);
  await onStores(context, ({ kind, open }) =>
    growth(context, {
      kind,
      sizes,
      promises: { "one more, all are kept": "flat", "one more, the newest are kept": "flat" },
      async at(n) {
        const sessions = await openSessions(await open());
        await sessions.createSession("s");
        await eachOf(n, () => sessions.saveCheckpoint(main));
        const retention = { all: fullHistory(), newest: lastN(n) };
        return {
          costs: {
            "one more, all are kept": () => sessions.saveCheckpoint(main, { retention: retention.all }).then(() => {}),
            "one more, the newest are kept": () =>
              sessions.saveCheckpoint(main, { retention: retention.newest }).then(() => {}),
          },
          close: () => sessions.close(),
        };
      },
    }),
  );
}
