// What durability costs beyond the disk's own price: one turn (two appends, each durable before it is answered) beside two
// bare commits of the same bytes, with the same library and the same settings, on the same disk.

import { closeSync, fdatasync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { openSessions } from "bough";
import { memoryStore } from "bough/stores/memory";
import { pooledTurns, writeShortTurn } from "../lib/conversation.mjs";
import { growTo } from "../lib/history.mjs";
import { eachStore } from "../lib/runner.mjs";
import { interleave, median, quantile } from "../lib/stats.mjs";
import { bareSqlite, durableKinds, newPlace, openAt } from "../lib/stores.mjs";
import { show } from "../lib/table.mjs";

const datasync = promisify(fdatasync);
const historyLength = 100;
const bareWriters = { file: bareFile, sqlite: bareRow };
const bareNames = { file: "append + fdatasync", sqlite: "one-row FULL commit" };

export async function run(context) {
  const rounds = context.quick ? 150 : 600;
  const [begin, commit] = await textsOfOneTurn();
  await eachStore(context, durableKinds, async (kind) => {
    const place = await newPlace(context.dir, `durable-${kind}`);
    const sessions = await openAt(kind, place);
    const next = pooledTurns();
    await sessions.createSession("s");
    await growTo(sessions, { sessionId: "s", branchId: "main" }, historyLength, { next });
    const bare = await bareWriters[kind](await newPlace(context.dir, `bare-${kind}`));
    context.progress(`${kind}: ${rounds} rounds`);
    const times = await interleave(
      {
        turn: () => writeShortTurn(sessions, { sessionId: "s" }, next()),
        bare: async () => {
          await bare.write(begin);
          await bare.write(commit);
        },
      },
      { rounds, warmUp: 30, progress: context.progress },
    );
    await sessions.close();
    bare.close();
    context.row(rowOf(kind, times));
  });
}

function rowOf(kind, { turn, bare }) {
  const [quietTurn, quietBare] = [quantile(turn, 0.1), quantile(bare, 0.1)];
  return {
    what: `${kind}, beside 2 × ${bareNames[kind]}`,
    measured: show.ms(median(turn)),
    limit: show.ms(median(bare)),
    ratio: median(turn) / median(bare),
    target: { max: 2.5 },
    note: `fastest tenth: ${show.ms(quietTurn)} / ${show.ms(quietBare)} = ${show.ratio(quietTurn / quietBare)}`,
    figures: { turn: median(turn), bare: median(bare), quietTurn, quietBare },
  };
}

/** What the two appends of a turn hand to a store, as text. */
export async function textsOfOneTurn() {
  const sessions = await openSessions(memoryStore());
  await sessions.createSession("s");
  await writeShortTurn(sessions, { sessionId: "s" }, pooledTurns(1)());
  const facts = await sessions.store.read({ sessionId: "s", branchId: "main" }, { after: 1 });
  const texts = facts.map(({ id, data }) => `${id}${data}`);
  return [texts.slice(0, 2).join("\n"), `${texts.slice(2).join("\n")}\n`];
}

async function bareRow(place) {
  const database = await bareSqlite(join(place, "bare.db"));
  database.exec("CREATE TABLE facts (key INTEGER PRIMARY KEY, data TEXT NOT NULL)");
  const insert = database.prepare("INSERT INTO facts (data) VALUES (?)");
  return { write: (text) => insert.run(text), close: () => database.close() };
}

async function bareFile(place) {
  const handle = openSync(join(place, "bare.log"), "a");
  const write = (text) => {
    writeSync(handle, text);
    return datasync(handle);
  };
  return { write, close: () => closeSync(handle) };
}
