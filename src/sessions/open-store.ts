import type { Clock } from "../base/clock.ts";
import { BoughError } from "../base/errors.ts";
import { maskUrl } from "../base/mask-url.ts";
import { refuse } from "../log/index.ts";
import type { Store } from "../log/store.ts";

/**
 * The store meant by an option: an object as it is, a directory, a URL, or memory when nothing is said. Backends are
 * loaded only when they are asked for.
 */
export async function openStore(store: Store | string | undefined, options: { clock: Clock }): Promise<Store> {
  if (typeof store === "object" && store !== null) return store;
  if (store !== undefined && typeof store !== "string") {
    throw new BoughError("store_unsupported", "A store is an object, a directory or a URL.");
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
    return (await import("../stores/file/index.ts")).fileStore(pathOf(store), options);
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
 * A store that is opened when it is first used: whoever has to wait anyway waits for that too. One that can't be opened is
 * tried again by whoever comes next; one that was closed stays closed, used before or not.
 */
export function lazyStore(store: Store | string | undefined, options: { clock: Clock }): Store {
  if (typeof store === "object" && store !== null) return store;
  type Method = (...given: unknown[]) => unknown;
  type Methods = Readonly<Record<string, Method>>;
  let opened: Methods | undefined;
  let opening: Promise<Methods> | undefined;
  let isClosed = false;
  const open = async (): Promise<Methods> => {
    if (isClosed) throw refuse.closed();
    opening ??= (openStore(store, options) as Promise<unknown> as Promise<Methods>).catch((error) => {
      opening = undefined;
      throw error;
    });
    opened = await opening;
    return opened;
  };
  const close = async () => {
    isClosed = true;
    const open = await opening?.catch(() => undefined);
    await open?.close?.();
  };
  const methods = new Map<string, Method>([["close", close]]);
  const methodOf = (name: string): Method => {
    return (...given) => (opened ? opened[name]!(...given) : open().then((store) => store[name]!(...given)));
  };
  return new Proxy({} as Store, {
    get(_, name) {
      // Awaiting the store itself must not look like a promise.
      if (typeof name === "symbol" || name === "then") return undefined;
      if (name === "kind") return opened?.kind ?? "unopened";
      // What is not opened has nobody to hear; whoever asks has used the store before.
      if (name === "live") return opened?.live;
      const method = methods.get(name) ?? methodOf(name);
      methods.set(name, method);
      return method;
    },
  });
}

/**
 * The path that a store's name means: "sqlite:./a.db", "sqlite://./a.db", "sqlite:///a.db" and "file:./dir" have one; what
 * has no scheme is one. No path is no place: it would be the working directory, or a file that is gone when it is closed.
 */
export function pathOf(store: string): string {
  const path = store.replace(/^(sqlite|file):(\/\/)?/i, "");
  if (path.trim() !== "") return path;
  throw new BoughError("store_unsupported", `"${store}" names no place for a store.`, { data: { store } });
}
