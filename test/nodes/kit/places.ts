// Where several processes can share a store: a SQLite file, or a server that is started for the test.

import { join } from "node:path";
import { binaries, startServer as startPostgres } from "../../postgres/server.ts";
import { missing as missingRedis, startServer as startRedis } from "../../redis/server.ts";
import { type Fault, faultProxy } from "./proxy.mjs";

export interface Place {
  readonly url: string;
  /** Where it is found by those to whom faults happen. */
  readonly nodeUrl?: string;
  readonly faults?: Readonly<Record<string, Fault>>;
  /** Ends what was started for it. */
  stop?(): Promise<void>;
}

/** Opens a place; what it needs on a disk goes into the folder. */
export type OpenPlace = (folder: string) => Promise<Place>;

export const places: Readonly<Record<string, OpenPlace>> = {
  sqlite: async (folder) => ({ url: `sqlite:${join(folder, "bough.db")}` }),
  async postgres() {
    const server = await startPostgres(binaries()[0]!, { fsync: "off", shared_buffers: "64MB" });
    const restart: Fault = (random) => server.restart(random.chance(0.5) ? "fast" : "immediate");
    return withFaults(server, restart, () => server.stop());
  },
  async redis() {
    const server = await startRedis({ appendonly: "yes", appendfsync: "always" });
    const restart = () => server.kill().then(() => server.start());
    return withFaults(server, restart, () => server.dispose());
  },
};

async function withFaults(
  { url, port }: { url: string; port: number },
  restart: Fault,
  stop: () => Promise<void>,
): Promise<Place> {
  const { port: nearPort, close, ...faults } = await faultProxy(port);
  return {
    url,
    nodeUrl: url.replace(`:${port}`, `:${nearPort}`),
    faults: { ...faults, restart },
    stop: () => close().then(stop),
  };
}

/** Those whose programs are on this machine. */
export function presentPlaces(): [kind: string, open: OpenPlace][] {
  const isPresent: Record<string, boolean> = { postgres: binaries().length > 0, redis: missingRedis === undefined };
  return Object.entries(places).filter(([kind]) => isPresent[kind] ?? true);
}
