import { DatabaseSync } from "@photostructure/sqlite";
import type { Damage, Damaged } from "./damage.ts";
import { lastBatch } from "./scenario.mjs";

const sql = (...statements: string[]): Damage => {
  return ({ path }) => {
    const database = new DatabaseSync(path);
    for (const statement of statements) database.exec(statement);
    database.close();
  };
};

const main = "(SELECT no FROM branches WHERE id = 'main' AND session_no = (SELECT no FROM sessions WHERE id = 's'))";
const head = `(SELECT head FROM branches WHERE no = ${main})`;
const dropLast = (facts: number) =>
  sql(
    `DELETE FROM events WHERE key >> 32 = ${main} AND key & 4294967295 > ${head} - ${facts}`,
    `UPDATE branches SET head = head - ${facts} WHERE no = ${main}`,
  );

export const sqliteDamages: Record<string, Damaged> = {
  "a lost last batch": { damage: dropLast(lastBatch), seen: /^lost: s\/main: the batch .* is not there/ },
  "half a batch": { damage: dropLast(1), seen: /^half: s\/main: of a batch of 4 only the first 3 are there/ },
  "a fact that is there twice": {
    damage: sql(
      "DROP INDEX events_by_id",
      `INSERT INTO events (key, id, data) SELECT key + 1, id, data FROM events WHERE key = (${main} << 32) | ${head}`,
      `UPDATE branches SET head = head + 1 WHERE no = ${main}`,
    ),
    seen: /^(wrong|half): s\/main: fact \d+ \(e\d+\) is there/,
  },
  "a whole batch that is there twice": {
    damage: sql(
      "DROP INDEX events_by_id",
      `INSERT INTO events (key, id, data) SELECT key + ${lastBatch}, id, data FROM events
        WHERE key >> 32 = ${main} AND key & 4294967295 > ${head} - ${lastBatch}`,
      `UPDATE branches SET head = head + ${lastBatch} WHERE no = ${main}`,
    ),
    seen: /^wrong: s\/main: fact \d+ \(e\d+\) is there a second time/,
  },
  "a fact under another number": {
    damage: sql(
      // The two results of the tools change places.
      `UPDATE events SET key = -1 WHERE key = (${main} << 32) | 9`,
      `UPDATE events SET key = (${main} << 32) | 9 WHERE key = (${main} << 32) | 10`,
      `UPDATE events SET key = (${main} << 32) | 10 WHERE key = -1`,
    ),
    seen: /^wrong: s\/main: fact e\d+ was told 9, is 10/,
  },
  "a fact with other data": {
    damage: sql(`UPDATE events SET data = replace(data, 'Done', 'Gone') WHERE key >> 32 = ${main}`),
    seen: /^wrong: s\/main: fact \d+ \(e\d+\) has other data/,
  },
  "a lost fork": {
    damage: sql(
      "DELETE FROM events WHERE key >> 32 = (SELECT no FROM branches WHERE id = 'fork')",
      "DELETE FROM branches WHERE id = 'fork'",
    ),
    seen: /^lost: branch s\/fork was acknowledged/,
  },
  "a lost session": {
    damage: sql(
      "DELETE FROM events WHERE key >> 32 IN (SELECT no FROM branches WHERE session_no = 2)",
      "DELETE FROM branches WHERE session_no = 2",
      "DELETE FROM sessions WHERE no = 2",
    ),
    seen: /^lost: session held was acknowledged/,
  },
  "a lost session update": {
    damage: sql(`UPDATE sessions SET version = version - 1, metadata = '{"title":"old"}' WHERE id = 's'`),
    seen: /^lost: session s: the update to version 2 is not there/,
  },
  "an update that changed another key": {
    damage: sql(`UPDATE sessions SET metadata = '{"title":"new","more":1}' WHERE id = 's'`),
    seen: /^lost: session s: no order of its updates/,
  },
  "a header that did not follow its facts": {
    damage: sql(`UPDATE branches SET header = replace(header, '"seen"', '"scene"') WHERE no = ${main}`),
    seen: /^lost: s\/main: the header is/,
  },
  "a lost claim": {
    damage: sql("UPDATE branches SET run_id = NULL, epoch = NULL, owner = NULL, expires_at = NULL, claimed_at = NULL"),
    seen: /^lost: held\/main: the claim of run e\d+ is gone/,
  },
  "a lost checkpoint": {
    damage: sql("DELETE FROM checkpoints"),
    seen: /^lost: s\/main: checkpoint mark was saved and is not there/,
  },
  "lost content": {
    damage: sql("DELETE FROM content_refs", "DELETE FROM contents"),
    seen: /^lost: s\/main: content [0-9a-f]+ was acknowledged/,
  },
  "content with other bytes": {
    damage: sql("UPDATE chunks SET bytes = zeroblob(length(bytes))"),
    seen: /^(wrong|broken): .*(other bytes|damaged)/,
  },
  "an activity that was forgotten": {
    damage: sql("UPDATE sessions SET active_at = created_at, active_step = created_at >> 10"),
    seen: /^lost: session s: it was active at/,
  },
};
