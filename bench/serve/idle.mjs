// What a subscriber costs that only waits: how much larger the server's process is with a thousand more of them, after
// garbage was collected. Some are there before, so that what is there once for all is not counted. On one branch, on a
// branch for each, and, for comparison, on Node's server with nothing else. Each in a new process.

import { show } from "../lib/table.mjs";
import { liveOf, withBare, withBough } from "./lib/servers.mjs";
import { subscribe } from "./lib/subscribers.mjs";

const many = 1000;
const before = 500;
const most = 30_000;

export async function run(context) {
  const bare = await costOf(
    (work) => withBare(work),
    () => liveOf("one"),
  );
  const own = (i) => liveOf(`s${i}`);
  const row = (what, { rss, used }) => {
    // Whatever is larger: what was free in the heap before may be used now.
    const each = Math.max(rss, used);
    context.row({
      what,
      measured: show.bytes(each),
      limit: show.bytes(most),
      ratio: each / most,
      target: { max: 1 },
      note: `resident ${show.bytes(rss)}, in the heap ${show.bytes(used)} · bare node:http: resident ${show.bytes(bare.rss)}, in the heap ${show.bytes(bare.used)}`,
      figures: { rss, used, bare },
    });
  };
  context.progress("on one branch");
  row(
    "all on one branch",
    await costOf(
      (work) => withSessions(context, ["one"], work),
      () => liveOf("one"),
    ),
  );
  context.progress("on branches of their own");
  const names = Array.from({ length: many + before }, (_, i) => `s${i}`);
  row("each on a branch of its own", await costOf((work) => withSessions(context, names, work), own));
}

function withSessions(context, names, work) {
  return withBough(context, async (served) => {
    for (const name of names) await served.createSession(name);
    await work(served);
  });
}

/** Bytes for each. */
async function costOf(withServer, pathOf) {
  let cost;
  await withServer(async (served) => {
    const subscribers = await subscribe(served, pathOf, before);
    const less = await served.call("memory");
    subscribers.push(...(await subscribe(served, (i) => pathOf(before + i), many)));
    const more = await served.call("memory");
    const { open } = await served.call("connections");
    if (open < before + many) throw new Error(`only ${open} of ${before + many} are connected`);
    cost = { rss: (more.rss - less.rss) / many, used: (more.used - less.used) / many };
    for (const each of subscribers) each.close();
  });
  return cost;
}
