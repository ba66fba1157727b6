// A fork of a fork of a fork: a turn at its end costs a turn.

import { openSessions } from "bough";
import { pooledTurns, writeShortTurn } from "../lib/conversation.mjs";
import { growth, onStores, sizesOf } from "../lib/growth.mjs";

export async function run(context) {
  const sizes = sizesOf(context, 20);
  const next = pooledTurns();
  await onStores(context, ({ kind, open }) =>
    growth(context, {
      kind,
      sizes,
      promises: { "a turn": "flat", "a turn of a new process": "linear" },
      async at(n) {
        const store = await open();
        const sessions = await openSessions(store);
        await sessions.createSession("s");
        let ref = { sessionId: "s", branchId: "main" };
        await writeShortTurn(sessions, ref, next());
        for (let i = 0; i < n; i++) {
          const { id } = await sessions.forkBranch(ref, {});
          ref = { ...ref, branchId: id };
          if (i % 10 === 0) await writeShortTurn(sessions, ref, next());
        }
        return {
          costs: {
            "a turn": () => writeShortTurn(sessions, ref, next()).then(() => {}),
            async "a turn of a new process"() {
              const cold = await openSessions(store);
              const begun = performance.now();
              await writeShortTurn(cold, ref, next());
              return performance.now() - begun;
            },
          },
          close: () => sessions.close(),
        };
      },
    }),
  );
}
