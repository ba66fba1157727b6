// Chooses and opens a store. A command that only reads never creates a store: a mistyped path, or
// another database of the same server, would look like an empty store.

import { existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Clock, systemClock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { Store } from "../log/store.ts";
import { openStore } from "../sessions/open-store.ts";
import { paths } from "../stores/file/layout.ts";
import { misuse } from "./command.ts";
import { placeOf, showUrl } from "./place.ts";
import { storeVersion } from "./store-version.ts";
import { ensureOwnFolder, ownFolder } from "./token-file.ts";

const usualPath = `${ownFolder}/bough.db`;

/** The store that was given, else BOUGH_STORE, else the default file if it exists. `how` tells the user how to give one. */
export function chooseStore(named: string | undefined, how = "--store URL"): string {
  const url = named ?? (process.env.BOUGH_STORE || undefined);
  if (url !== undefined) return url;
  if (existsSync(usualPath)) return `sqlite:${usualPath}`;
  throw misuse(`No store was given, and ${usualPath} does not exist. Pass ${how}, or set BOUGH_STORE.`);
}

/** The store of serve and chat: as `chooseStore`, else the configuration's, else the default file, created if necessary. */
export function chooseOwnStore(named: string | undefined, configured: Store | string | undefined): Store | string {
  return named ?? (process.env.BOUGH_STORE || undefined) ?? configured ?? `sqlite:${usualPath}`;
}

/** Opens a store and creates it if necessary. The default file's folder is kept out of git. */
export async function openOwnStore(store: Store | string, { clock = systemClock }: OpenOptions = {}): Promise<Store> {
  const place = typeof store === "string" && !isInMemory(store) ? placeOf(store) : undefined;
  if (place?.path === resolve(usualPath)) ensureOwnFolder();
  else if (place) makeFolderOf(place.path);
  return openStore(store, { clock });
}

export interface OpenOptions {
  /** Whether a missing store is created. */
  readonly create?: boolean;
  readonly clock?: Clock;
}

async function openNamedStore(url: string, { create = false, clock = systemClock }: OpenOptions): Promise<Store> {
  if (isInMemory(url)) {
    throw misuse(
      "A memory store belongs to one process, so this command can't read it. Give the URL of another store.",
    );
  }
  const place = placeOf(url);
  const isMissing = place ? () => !isThere(place) : async () => (await storeVersion(url)) === 0;
  if (!create && (await isMissing())) {
    const path = place?.path ?? showUrl(url);
    throw new BoughError("store_unsupported", `There is no store at ${path}.`, { data: { path } });
  }
  if (place) makeFolderOf(place.path);
  return openStore(url, { clock });
}

/** New files and folders are accessible to their owner only. */
function makeFolderOf(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
}

function isInMemory(url: string): boolean {
  return /^memory:/i.test(url) || /^sqlite::memory:$/i.test(url);
}

/** Opens a store, calls the function, and always closes the store. */
export async function withStore<T>(url: string, options: OpenOptions, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openNamedStore(url, options);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

function isThere({ kind, path }: { kind: "sqlite" | "file"; path: string }): boolean {
  return kind === "sqlite" ? existsSync(path) : existsSync(join(path, paths.identity));
}
