// Servers of this run, with their data on its disk: the tests' own ways of starting them, and the servers' own settings.

import { chmodSync } from "node:fs";
import { createJiti } from "jiti";
import pg from "pg";

const jiti = createJiti(import.meta.url);

/** How many connections each system has in its pool. */
export const connections = 20;

/** Does the work with a PostgreSQL server that keeps its word about syncs; `newDatabase` gives the URL of an empty one. */
export async function withPostgres({ dir }, work) {
  const { binaries, startServer } = await jiti.import("../../test/postgres/server.ts");
  const [bin] = binaries();
  if (!bin) throw new Error("there is no PostgreSQL on this machine");
  // The server has a user of its own where we are root.
  chmodSync(dir, 0o711);
  const server = await startServer(bin, { max_connections: "200" }, dir);
  const admin = new pg.Client(server.url);
  await admin.connect();
  let made = 0;
  const newDatabase = async () => {
    const name = `bench_${++made}`;
    await admin.query(`CREATE DATABASE ${name}`);
    return server.url.replace(/postgres$/, name);
  };
  try {
    return await work({ newDatabase });
  } finally {
    await admin.end();
    await server.stop();
  }
}

/** The same with Redis, every write synced before it is answered; `missing` says why there is none. */
export async function withRedis({ dir }, work) {
  const { missing, startServer } = await jiti.import("../../test/redis/server.ts");
  if (missing) throw new Error(missing);
  const server = await startServer({ appendonly: "yes", appendfsync: "always" }, dir);
  try {
    return await work(server);
  } finally {
    await server.dispose();
  }
}

/** What all tables of a database take, with their indexes. */
export async function storedBytes(url) {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query(
    `SELECT sum(pg_total_relation_size(c.oid))::float8 AS bytes FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')`,
  );
  await client.end();
  return rows[0].bytes;
}
