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

/** A store that is opened when it is first used: whoever has to wait anyway waits for that too. */
export function lazyStore(store: Store | string | undefined, options: { clock: Clock }): Store {
  if (typeof store === "object") return store;
  let opened: Record<string, unknown> | undefined;
  let opening: Promise<Store> | undefined;
  const open = async () => {
    opening ??= openStore(store, options);
    opened = (await opening) as unknown as Record<string, unknown>;
    return opened;
  };
  type Method = (...given: unknown[]) => unknown;
  const methods = new Map<PropertyKey, Method>();
  const methodOf = (name: string): Method => {
    return (...given) =>
      opened ? (opened[name] as Method)(...given) : open().then((store) => (store[name] as Method)(...given));
  };
  return new Proxy({} as Store, {
    get(_, name) {
      // Awaiting the store itself must not look like a promise.
      if (typeof name === "symbol" || name === "then") return undefined;
      if (name === "kind") return opened?.kind ?? "unopened";
      // One that nobody used has nothing to close.
      if (name === "close" && !opening) return async () => {};
      let method = methods.get(name);
      if (!method) methods.set(name, (method = methodOf(name)));
      return method;
    },
  });
}

/** "sqlite:./a.db", "sqlite:///a.db" and "file:./dir" name paths; anything without a scheme is one. */
function pathOf(store: string): string {
  return store.replace(/^(sqlite|file):(\/\/(?=\/))?/i, "");
}
