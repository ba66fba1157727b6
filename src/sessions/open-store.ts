import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import type { Store } from "../log/store.ts";

/**
 * The store meant by an option: an object as it is, a directory, a URL, or memory when nothing is said. Backends are
 * loaded only when they are asked for.
 */
export async function openStore(store: Store | string | undefined, options: { clock: Clock }): Promise<Store> {
  if (typeof store === "object") return store;
  if (store === undefined || store === "memory:")
    return (await import("../stores/memory/index.ts")).memoryStore(options);
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(store)?.[1]?.toLowerCase();
  if (scheme === "sqlite") {
    return (await import("../stores/sqlite/index.ts")).sqliteStore(pathOf(store), options);
  }
  if (scheme === undefined || scheme === "file") {
    return (await import("../stores/file/index.ts")).fileStore(pathOf(store), options);
  }
  throw new BoughError("store_unsupported", `There is no store for "${scheme}:"; use a directory or sqlite:PATH.`, {
    data: { store },
  });
}

/** "sqlite:./a.db", "sqlite:///a.db" and "file:./dir" name paths; anything without a scheme is one. */
function pathOf(store: string): string {
  return store.replace(/^(sqlite|file):(\/\/(?=\/))?/i, "");
}
