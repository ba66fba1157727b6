// Where several processes can share a store: a SQLite file, or a server that is started for the test.

import { join } from "node:path";
import pg from "pg";
import { createClient } from "redis";
import { binaries, startServer as startPostgres } from "../../postgres/server.ts";
import { missing as missingRedis, startServer as startRedis } from "../../redis/server.ts";
import { type Fault, faultProxy, type Random } from "./proxy.mjs";

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
    const terminate: Fault = (random) => terminateBackends(server.url, random);
    const place = await withFaults(server, { restart, terminate }, () => server.stop());
    return { ...place, nodeUrl: `${place.nodeUrl}?application_name=${nodeName}` };
  },
  async redis() {
    const server = await startRedis({ appendonly: "yes", appendfsync: "always" });
    const restart = () => server.kill().then(() => server.start());
    const terminate: Fault = (random) => killClients(server.url, random);
    return withFaults(server, { restart, terminate }, () => server.dispose());
  },
};

const nodeName = "node";

/** Ends connections of nodes, as an operator would, or a server that has too many. */
async function terminateBackends(url: string, random: Random): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const named = "SELECT pid FROM pg_stat_activity WHERE application_name = $1 ORDER BY backend_start";
  const { rows } = await client.query<{ pid: number }>(named, [nodeName]);
  const hit = rows.filter(() => random.chance(0.5)).map(({ pid }) => pid);
  await client.query("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", [hit]);
  await client.end();
}

async function killClients(url: string, random: Random): Promise<void> {
  const client = createClient({ url, RESP: 2 });
  await client.connect();
  const listed = (await client.sendCommand(["CLIENT", "LIST"])) as unknown as string;
  const ids = [...listed.matchAll(/^id=(\d+) /gm)].map(([, id]) => id!).filter(() => random.chance(0.5));
  // It may be gone by itself, or be the one that asks.
  for (const id of ids) await client.sendCommand(["CLIENT", "KILL", "ID", id, "SKIPME", "yes"]).catch(() => {});
  client.destroy();
}

async function withFaults(
  { url, port }: { url: string; port: number },
  own: Readonly<Record<string, Fault>>,
  stop: () => Promise<void>,
): Promise<Place> {
  const { port: nearPort, close, ...faults } = await faultProxy(port);
  return {
    url,
    nodeUrl: url.replace(`:${port}`, `:${nearPort}`),
    faults: { ...faults, ...own },
    stop: () => close().then(stop),
  };
}

/** Those whose programs are on this machine. */
export function presentPlaces(): [kind: string, open: OpenPlace][] {
  const isPresent: Record<string, boolean> = { postgres: binaries().length > 0, redis: missingRedis === undefined };
  return Object.entries(places).filter(([kind]) => isPresent[kind] ?? true);
}
