// Turns on many branches in turn: the cache has no cliff.

import { openSessions } from "bough";
import { pooledTurns, writeShortTurn } from "../lib/conversation.mjs";
import { cpuOf, eachOf, growth, onStores, sizesOf } from "../lib/growth.mjs";

const turns = 100;

export async function run(context) {
  const sizes = sizesOf(context, 50);
  const next = pooledTurns();
  await onStores(context, ({ kind, open }) =>
    growth(context, {
      kind,
      sizes,
      rounds: 6,
      promises: { "CPU of a turn": "flat" },
      async at(n) {
        const sessions = await openSessions(await open());
        await eachOf(n, async (i) => {
          await sessions.createSession(`s${i}`);
          for (let k = 0; k < 3; k++) await writeShortTurn(sessions, { sessionId: `s${i}`, branchId: "main" }, next());
        });
        let i = 0;
        const turn = () => writeShortTurn(sessions, { sessionId: `s${i++ % n}`, branchId: "main" }, next());
        return {
          costs: {
            "CPU of a turn": async () => {
              const took = await cpuOf(async () => {
                for (let k = 0; k < turns; k++) await turn();
              });
              return took / turns;
            },
          },
          close: () => sessions.close(),
        };
      },
    }),
  );
}
