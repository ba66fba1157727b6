// The stores that are measured, each in a place of its own, and what they leave on the disk.

import { readdirSync, statSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { openSessions } from "bough";

const factories = {
  memory: async () => (await import("bough/stores/memory")).memoryStore(),
  file: async (place) => (await import("bough/stores/file")).fileStore(place),
  sqlite: async (place, options) => (await import("bough/stores/sqlite")).sqliteStore(join(place, "bough.db"), options),
  postgres: async (url, options) => (await import("bough/stores/postgres")).postgresStore(url, options),
  redis: async (url) => (await import("bough/stores/redis")).redisStore(url),
};

/** Those that are measured by bench:log; the others need a server, and their place is a URL. */
export const storeKinds = ["memory", "file", "sqlite"];
export const durableKinds = ["file", "sqlite"];

/** A new directory below the one of this run. */
export function newPlace(dir, name) {
  return mkdtemp(join(dir, `${name}-`));
}

export async function openStoreAt(kind, place, options) {
  return factories[kind](place, options);
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

/** The driver that the store takes on this Node: its own SQLite where that is new enough, else the package. */
async function sqliteDriver() {
  const builtin = process.getBuiltinModule?.("node:sqlite");
  const [major, minor, patch] = (process.versions.sqlite ?? "0.0.0").split(".").map(Number);
  const isNew = major > 3 || (major === 3 && (minor > 51 || (minor === 51 && patch >= 3)));
  return builtin && isNew ? builtin : import("@photostructure/sqlite");
}

/** Imports what the store imports only when it is opened, so that opening it can be timed without. */
export async function importDrivers(kind) {
  if (kind === "sqlite") await sqliteDriver();
  if (kind === "file") await import("fs-native-extensions");
  // The one that the store finds; bench/ has another.
  if (kind === "postgres") await import("../../node_modules/pg/esm/index.mjs");
}
