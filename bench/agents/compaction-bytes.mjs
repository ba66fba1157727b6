// A compaction stores its summary and little else, however much it covers: in the files of a file store, which anybody can look at.

import { createAgent } from "bough";
import { scriptedModel } from "bough/scripted";
import { pooledTurns } from "../lib/conversation.mjs";
import { growTo } from "../lib/history.mjs";
import { filesBelow, newPlace, openStoreAt, sizeOf } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";

const ref = { sessionId: "s", branchId: "main" };
const summary = "They agreed on the plan, and on what is left of it. ".repeat(80);
const pins = 10;
/** What a compaction may take besides its summary. */
const besides = 1024;

export async function run(context) {
  const messages = context.quick ? 2000 : 10_000;
  const place = await newPlace(context.dir, "compaction-bytes");
  const open = async () => createAgent({ model: scriptedModel(() => ""), store: await openStoreAt("file", place) });
  await used(open, async (agent) => {
    await agent.createSession(ref.sessionId);
    await growTo(agent, ref, messages, { next: pooledTurns(), progress: context.progress });
    const branch = await agent.loadBranch(ref);
    for (const { id } of branch.messages.slice(100, 100 + pins)) await agent.pin(ref, id);
  });
  const before = logBytes(place);
  const replacements = [{ role: "user", content: summary }];
  await used(open, (agent) => agent.compact(ref, { keep: { turns: 30 }, strategy: () => ({ replacements }) }));
  const more = logBytes(place) - before - Buffer.byteLength(summary);
  context.row({
    what: `log of a compaction of ${messages.toLocaleString("en")} messages, ${pins} of them pinned, without its summary`,
    measured: show.bytes(more),
    limit: show.bytes(besides),
    ratio: more / besides,
    target: { max: 1 },
    figures: { more, besides },
  });
}

/** Closed before anything is measured, so that all of it is in its place. */
async function used(open, work) {
  const agent = await open();
  await work(agent);
  await agent.close();
}

function logBytes(place) {
  const logs = filesBelow(place).filter((path) => path.endsWith("events.jsonl"));
  return logs.reduce((sum, path) => sum + sizeOf(path), 0);
}
