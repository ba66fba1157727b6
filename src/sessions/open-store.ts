import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import { maskUrl } from "../base/mask-url.ts";
import type { Blobs } from "../log/blobs.ts";
import type { Store } from "../log/store.ts";

/**
 * Opens the store of a `store` option: an object as it is, a directory, a URL, or memory if it is omitted. Backends are
 * loaded on demand.
 */
export async function openStore(
  store: Store | string | undefined,
  { clock, blobs }: { clock?: Clock; blobs?: Blobs } = {},
): Promise<Store> {
  const options = { ...(clock && { clock }), ...(blobs && { blobs }) };
  if (typeof store === "object" && store !== null) return store;
  if (store !== undefined && typeof store !== "string") {
    throw new BoughError("store_unsupported", "store must be a store object, a directory or a URL.");
  }
  if (store === undefined || store === "memory:")
    return (await import("../stores/memory/index.ts")).memoryStore(options);
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(store)?.[1]?.toLowerCase();
  if (scheme === "sqlite") {
    return (await import("../stores/sqlite/index.ts")).sqliteStore(pathOf(store), options);
  }
  if (scheme === "postgres" || scheme === "postgresql") {
    return (await import("../stores/postgres/index.ts")).postgresStore(store, options);
  }
  if (scheme === "redis" || scheme === "rediss") {
    return (await import("../stores/redis/index.ts")).redisStore(store, options);
  }
  if (scheme === undefined || scheme === "file") {
    if (blobs)
      throw new BoughError("store_unsupported", "A directory keeps its own content; blobs needs another store.");
    return (await import("../stores/file/index.ts")).fileStore(pathOf(store), clock ? { clock } : {});
  }
  throw new BoughError(
    "store_unsupported",
    `There is no store for "${scheme}:"; use a directory, sqlite:PATH, postgres:// or redis://.`,
    {
      data: { store: maskUrl(store) },
    },
  );
}

/**
 * The path in a store's name: "sqlite:./a.db", "sqlite://./a.db", "sqlite:///a.db" and "file:./dir" have one; a name without
 * a scheme is one. An empty path is refused: it would mean the working directory, or a temporary database.
 */
export function pathOf(store: string): string {
  const path = store.replace(/^(sqlite|file):(\/\/)?/i, "");
  if (path.trim() !== "") return path;
  throw new BoughError(
    "store_unsupported",
    `"${store}" has no path; use for example "sqlite:./bough.db" or "./data".`,
    { data: { store } },
  );
}
