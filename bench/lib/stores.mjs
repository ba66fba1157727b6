// The stores that are measured, each in a place of its own, and what they leave on the disk.

import { readdirSync, statSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { openSessions } from "bough";

const factories = {
  memory: async () => (await import("bough/stores/memory")).memoryStore(),
  file: async (place) => (await import("bough/stores/file")).fileStore(place),
  sqlite: async (place) => (await import("bough/stores/sqlite")).sqliteStore(join(place, "bough.db")),
};

export const storeKinds = Object.keys(factories);
export const durableKinds = ["file", "sqlite"];

/** A new directory below the one of this run. */
export function newPlace(dir, name) {
  return mkdtemp(join(dir, `${name}-`));
}

export async function openStoreAt(kind, place) {
  return factories[kind](place);
}

export async function openAt(kind, place) {
  return openSessions(await openStoreAt(kind, place));
}

/** The apparent size of a file, or of all files below a directory. */
export function sizeOf(path) {
  return filesBelow(path).reduce((sum, file) => sum + statSync(file).size, 0);
}

export function filesBelow(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).flatMap((name) => filesBelow(join(path, name)));
}

/** SQLite as the store uses it, for what is measured beside it: same library, same settings. */
export async function bareSqlite(path) {
  const { DatabaseSync } = await sqliteDriver();
  const database = new DatabaseSync(path);
  for (const pragma of ["journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 4000"]) {
    database.prepare(`PRAGMA ${pragma}`).get();
  }
  return database;
}

/** The store's own choice of driver. */
async function sqliteDriver() {
  return (await insideStore("sqlite", "driver.js")).loadDriver();
}

/** Imports what the store imports only when it is opened, so that opening it can be timed without. */
export async function importDrivers(kind, place) {
  if (kind === "sqlite") await sqliteDriver();
  if (kind !== "file") return;
  const { nodeFiles } = await insideStore("file", "node-files.js");
  const unlock = await nodeFiles.lock(join(place, "..", `${process.pid}.lock`));
  unlock?.();
}

/** A file of the built store that is not part of the package's entry points. */
function insideStore(kind, file) {
  return import(new URL(file, import.meta.resolve(`bough/stores/${kind}`)).href);
}
