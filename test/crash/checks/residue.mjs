// What is left when everything was deleted: nothing. Deleting takes along every fact, record, claim, checkpoint, content and
// file, also of what crashes had left behind.

import { readdirSync } from "node:fs";
import { DatabaseSync } from "@photostructure/sqlite";
import { snapshotStore } from "bough/testing";
import { closeStore, openStoreAt } from "../kit/stores.mjs";

/** Deletes every session of the store and looks for what is left. */
export async function checkResidue({ name, path, clock, report }) {
  const store = await openStoreAt(name, path, clock);
  try {
    const { sessions, runs } = await snapshotStore(store);
    // A session on which a dead process still holds a run can be deleted when the lease is over.
    for (const { expiresAt } of runs) clock.reach(expiresAt);
    for (const { record } of sessions) await store.deleteSession(record.id);
    const { problems, ...counts } = await store.maintain();
    if (Object.values(counts).some((count) => count > 0)) report("wrong", `left over: ${JSON.stringify(counts)}`);
    for (const { code, detail } of problems) report("wrong", `deleting everything left ${code}: ${detail}`);
  } finally {
    await closeStore(store);
  }
  for (const what of name === "sqlite" ? rowsOf(path) : filesOf(path)) report("wrong", `left over: ${what}`);
}

/** Tables that count or describe, and have rows of their own. */
const ownTables = new Set(["epochs", "sqlite_sequence"]);

function rowsOf(path) {
  const database = new DatabaseSync(path);
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const left = tables
    .filter((table) => !ownTables.has(table.name))
    .map((table) => ({ ...table, ...database.prepare(`SELECT count(*) AS rows FROM "${table.name}"`).get() }))
    .filter(({ rows }) => rows > 0);
  database.close();
  return left.map((table) => `${table.rows} rows of ${table.name}`);
}

/** Files of the store itself. */
const ownFiles = /^(bough\.json|lock|wal\/.*)$/;

function filesOf(path) {
  const entries = readdirSync(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => `${entry.parentPath}/${entry.name}`);
  return files.map((file) => file.slice(path.length + 1)).filter((file) => !ownFiles.test(file));
}
