// Reads a store's version without opening the store, since opening migrates it.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { paths } from "../stores/file/layout.ts";
import { checkSchema } from "../stores/postgres/open.ts";
import { openPool, schemaOf } from "../stores/postgres/source.ts";
import { makeClient, prefixOf } from "../stores/redis/client.ts";
import { formatKey } from "../stores/redis/keys.ts";
import { type Database, loadDriver } from "../stores/sqlite/driver.ts";
import { applicationId } from "../stores/sqlite/schema.ts";
import { placeOf } from "./place.ts";

/** 0 if there is no store yet; undefined if this kind of store has no version, or if the data is not Bough's. */
export async function storeVersion(url: string): Promise<number | undefined> {
  const place = placeOf(url);
  if (place?.kind === "sqlite") return sqliteVersion(place.path);
  if (place?.kind === "file") return fileVersion(place.path);
  if (/^postgres(ql)?:/i.test(url)) return postgresVersion(url);
  return /^rediss?:/i.test(url) ? redisVersion(url) : undefined;
}

async function sqliteVersion(path: string): Promise<number | undefined> {
  if (!existsSync(path)) return 0;
  const { DatabaseSync } = await loadDriver();
  const read = (parameters: string, pragma: string): unknown => {
    let database: Database | undefined;
    try {
      database = new DatabaseSync(`${pathToFileURL(path).href}?${parameters}`);
      const row = database.prepare(`PRAGMA ${pragma}`).get() as Record<string, unknown> | undefined;
      return row?.[pragma];
    } catch {
      return undefined;
    } finally {
      database?.close();
    }
  };
  // Opened as immutable, so that SQLite does not run recovery on another program's file.
  if (read("mode=ro&immutable=1", "application_id") !== applicationId) return undefined;
  const version = read("mode=ro", "user_version");
  return typeof version === "number" ? version : undefined;
}

function fileVersion(path: string): number | undefined {
  try {
    const found = /"format":(\d+)/.exec(readFileSync(join(path, paths.identity), "utf8"));
    return found ? Number(found[1]) : undefined;
  } catch {
    return 0;
  }
}

async function postgresVersion(url: string): Promise<number | undefined> {
  const { pool, end } = await openPool(url, { max: 1, applicationName: "bough", timeoutMs: 10_000 });
  try {
    const table = `"${checkSchema(schemaOf(url))}".migrations`;
    const { rows } = await pool.query("SELECT to_regclass($1) IS NOT NULL AS there", [table]);
    if (!rows[0]?.there) return 0;
    const found = await pool.query(`SELECT max(version) AS version FROM ${table}`);
    return Number(found.rows[0]?.version ?? 0);
  } catch {
    // Opening the store reports the reason.
    return undefined;
  } finally {
    await end();
  }
}

async function redisVersion(url: string): Promise<number | undefined> {
  const client = await makeClient(url);
  const failed = new Promise<never>((_, reject) => client.on("error", reject));
  try {
    await Promise.race([client.connect(), failed]);
    return Number((await client.sendCommand(["GET", formatKey(prefixOf(url))])) ?? 0);
  } catch {
    // As above.
    return undefined;
  } finally {
    client.destroy();
  }
}
