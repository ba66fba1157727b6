// What a subscriber costs that only waits: resident memory of the server's process after garbage was collected, with a
// thousand of them and without. On one branch, on a branch for each, and, for comparison, on Node's server with nothing
// else. Each in a new process.

import { show } from "../lib/table.mjs";
import { liveOf, withBare, withBough } from "./lib/servers.mjs";
import { subscribe } from "./lib/subscribers.mjs";

const many = 1000;
const most = 30_000;

export async function run(context) {
  const bare = await costOf(
    (work) => withBare(work),
    () => liveOf("one"),
  );
  const own = (i) => liveOf(`s${i}`);
  const row = (what, { rss, used }) =>
    context.row({
      what,
      measured: show.bytes(rss),
      limit: show.bytes(most),
      ratio: rss / most,
      target: { max: 1 },
      note: `of it in the heap ${show.bytes(used)} · bare node:http: ${show.bytes(bare.rss)}, in the heap ${show.bytes(bare.used)}`,
      figures: { rss, used, bare },
    });
  context.progress("on one branch");
  row(
    "all on one branch",
    await costOf(
      (work) => withSessions(context, ["one"], work),
      () => liveOf("one"),
    ),
  );
  context.progress("on branches of their own");
  const names = Array.from({ length: many }, (_, i) => `s${i}`);
  row("each on a branch of its own", await costOf((work) => withSessions(context, names, work), own));
}

function withSessions(context, names, work) {
  return withBough(context, async (served) => {
    for (const name of names) await served.createSession(name);
    await work(served);
  });
}

/** Bytes for each. A few come and go first, so that what is there once for all is not counted. */
async function costOf(withServer, pathOf) {
  let cost;
  await withServer(async (served) => {
    for (const each of await subscribe(served, pathOf, 100)) each.close();
    const before = await served.call("memory");
    const subscribers = await subscribe(served, pathOf, many);
    const after = await served.call("memory");
    const { open } = await served.call("connections");
    if (open < many) throw new Error(`only ${open} of ${many} are connected`);
    cost = { rss: (after.rss - before.rss) / many, used: (after.used - before.used) / many };
    for (const each of subscribers) each.close();
  });
  return cost;
}
