// The stores that the models drive side by side.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../src/base/clock.ts";
import type { Store } from "../../src/log/index.ts";
import { fileStore } from "../../src/stores/file/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";

export interface OpenStore {
  readonly name: string;
  readonly store: Store;
  /** Closes the store and opens the same data again; nothing to do for one that has none. */
  reopen(): Promise<void>;
  dispose(): Promise<void>;
}

export interface StoreKind {
  readonly name: string;
  open(clock: Clock): Promise<OpenStore>;
}

type OpenAt = (dir: string, clock: Clock) => Promise<Store>;

const onDisk: Record<string, OpenAt> = {
  file: (dir, clock) => fileStore(join(dir, "sessions"), { clock }),
  sqlite: (dir, clock) => sqliteStore(join(dir, "bough.db"), { clock }),
};

const memory: StoreKind = {
  name: "memory",
  async open(clock) {
    const store = memoryStore({ clock, segments: true });
    return { name: "memory", store, reopen: async () => {}, dispose: () => store.close() };
  },
};

const allKinds: readonly StoreKind[] = [
  memory,
  ...Object.entries(onDisk).map(([name, openAt]) => ({
    name,
    open: (clock: Clock) => openInTemp(name, openAt, clock),
  })),
];

/** All of them, or those that BOUGH_STORES names ("memory,sqlite"). */
export const storeKinds: readonly StoreKind[] = allKinds.filter(({ name }) => {
  const wanted = process.env.BOUGH_STORES;
  return wanted === undefined || wanted.split(",").includes(name);
});

async function openInTemp(name: string, openAt: OpenAt, clock: Clock): Promise<OpenStore> {
  const dir = await mkdtemp(join(tmpdir(), `bough-model-${name}-`));
  let store = await openAt(dir, clock);
  return {
    name,
    get store() {
      return store;
    },
    async reopen() {
      await store.close();
      store = await openAt(dir, clock);
    },
    async dispose() {
      await store.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Opens a store of every kind, runs the work, and leaves nothing behind whatever happens. */
export async function withStores(
  kinds: readonly StoreKind[],
  clock: Clock,
  work: (stores: readonly OpenStore[]) => Promise<void>,
): Promise<void> {
  const stores: OpenStore[] = [];
  try {
    for (const kind of kinds) stores.push(await kind.open(clock));
    await work(stores);
  } finally {
    for (const store of stores) await store.dispose();
  }
}
