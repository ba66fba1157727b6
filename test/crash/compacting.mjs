// A process that compacts, takes back, pins and forks compacted, and may be killed at any time.
//   node compacting.mjs KIND PATH       says what is acknowledged, a line each

import { writeSync } from "node:fs";
import { openSessions } from "bough";

const [kind, path] = process.argv.slice(2);
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);
const sessions = await openSessions(kind === "sqlite" ? `sqlite:${path}` : path);
const main = { sessionId: "s", branchId: "main" };

await sessions.ensureSession("s");
for (let n = 1; ; n++) {
  for (const role of ["one", "two"]) {
    await sessions.appendTurn(main, [
      { role: "user", content: `${role} ${n}` },
      { role: "assistant", content: "Yes." },
    ]);
  }
  const strategy = () => ({ replacements: [{ role: "user", content: "so far" }] });
  const soft = await sessions.compact(main, { keep: { turns: 1 }, strategy });
  say({ made: soft.id });
  const { id } = await sessions.forkBranch(main, { compaction: { keep: { turns: 0 } } });
  say({ forked: id });
  const hard = await sessions.compact(main, { keep: { turns: 0 }, retention: "hard", strategy });
  say({ made: hard.id });
  await sessions.uncompact(main, hard.id);
  say({ taken: hard.id });
}
