// Wide sessions: one branch costs one branch, all cost what they are.

import { openSessions } from "bough";
import { pooledTurns, writeShortTurn } from "../lib/conversation.mjs";
import { eachOf, growth, onStores, sizesOf } from "../lib/growth.mjs";

const main = { sessionId: "s", branchId: "main" };

export async function run(context) {
  const sizes = sizesOf(context, 100);
  const next = pooledTurns();
  await onStores(context, ({ kind, open }) =>
    growth(context, {
      kind,
      sizes,
      promises: {
        getBranch: "flat",
        "a fork": "flat",
        "a turn": "flat",
        listBranches: { promise: "linear", once: true },
      },
      async at(n) {
        const sessions = await openSessions(await open());
        await sessions.createSession("s");
        await writeShortTurn(sessions, main, next());
        await eachOf(n, (i) => sessions.forkBranch(main, { newBranchId: `b${i}` }));
        return {
          costs: {
            getBranch: () => sessions.getBranch({ ...main, branchId: `b${n >> 1}` }).then(() => {}),
            "a fork": () => sessions.forkBranch(main, {}).then(() => {}),
            "a turn": () => writeShortTurn(sessions, { ...main, branchId: `b${n >> 1}` }, next()).then(() => {}),
            listBranches: () => sessions.listBranches("s").then(() => {}),
          },
          close: () => sessions.close(),
        };
      },
    }),
  );
}
