// From a source to a database that is known to be safe: a server of an age we know, UTF-8, commits that are waited for, and
// a schema of this version.
//
//   PostgresOpen-1. synchronous_commit is read, not set: the operator of the database decides it. `off` loses acknowledged
//       facts when the server crashes, so it is refused unless the caller allows just that. Appends look at it again, each
//       in its own statement, since a connection may be given another setting later.

import { BoughError } from "../../base/errors.ts";
import type { Database } from "./database.ts";
import { migrate } from "./schema.ts";

const oldestServer = 140_000;

/** Checks the server and brings the schema up to date; tells whether commits are waited for. */
export async function prepare(
  database: Database,
  options: { allowAsyncCommit: boolean },
): Promise<{ waitsForCommits: boolean }> {
  const [found] = await database.again<{ version: string; encoding: string; commit: string }>(
    `SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
      current_setting('synchronous_commit') AS commit`,
  );
  const { version, encoding, commit } = found!;
  if (Number(version) < oldestServer)
    throw unsupported(`PostgreSQL 14 or newer is required; the server has ${version}.`, { version });
  if (encoding !== "UTF8") throw unsupported(`The database's encoding must be UTF8, not ${encoding}.`, { encoding });
  const waitsForCommits = commit !== "off";
  if (!waitsForCommits && !options.allowAsyncCommit) throw asyncCommit();
  await migrate(database);
  return { waitsForCommits };
}

export function asyncCommit(): BoughError {
  return unsupported("synchronous_commit is off, so acknowledged writes could be lost; turn it on.", {
    synchronousCommit: "off",
  });
}

function unsupported(message: string, data: Record<string, unknown>): BoughError {
  return new BoughError("store_unsupported", message, { data });
}

/** A schema's name as it may stand in a statement: nothing that needs quoting, nothing PostgreSQL would cut off. */
export function checkSchema(schema: string): string {
  if (/^[a-z_][a-z0-9_]{0,47}$/.test(schema) && !schema.startsWith("pg_")) return schema;
  throw new BoughError(
    "invalid_argument",
    "A schema name must have 1 to 48 characters of a-z, 0-9 and _, and must not start with a digit or pg_.",
    {
      data: { schema },
    },
  );
}
