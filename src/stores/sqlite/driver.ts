import { BoughError } from "../../base/errors.ts";

export type SqlValue = null | number | string | Uint8Array;

export interface Statement {
  run(...values: SqlValue[]): { readonly changes: number | bigint };
  get(...values: SqlValue[]): unknown;
  all(...values: SqlValue[]): unknown[];
  /** Rows come as arrays instead of objects. Older Nodes have not got it. */
  setReturnArrays?(isArrays: boolean): void;
}

/** The part of `DatabaseSync` that is used here; Node's and the package's are alike in it. */
export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

export interface Driver {
  DatabaseSync: new (path: string) => Database;
}

// From 3.7.0 up to 3.51.2 a write-ahead log that is reset at the wrong moment can corrupt the file.
const oldestSafe = [3, 51, 3];

let loaded: Driver | undefined;

/** Node's own SQLite where it is there and safe, else the package. Its version is asserted on the open connection. */
export async function loadDriver(): Promise<Driver> {
  loaded ??= await findDriver();
  return loaded;
}

async function findDriver(): Promise<Driver> {
  const builtin = process.getBuiltinModule?.("node:sqlite") as Driver | undefined;
  const { sqlite } = process.versions;
  if (builtin && (sqlite === undefined || isSafe(sqlite))) return builtin;
  try {
    return (await import("@photostructure/sqlite")) as unknown as Driver;
  } catch (cause) {
    if (builtin) return builtin;
    throw new BoughError(
      "dependency_missing",
      "This version of Node has no built-in SQLite: run `npm install @photostructure/sqlite`, or use a newer Node.",
      { data: { package: "@photostructure/sqlite" }, cause },
    );
  }
}

/** Refuses a SQLite that can lose what was acknowledged. */
export function checkSqlite(version: string): void {
  if (!isSafe(version)) throw unsafe(version);
}

export function isSafe(version: string): boolean {
  const parts = version.split(".").map(Number);
  const different = oldestSafe.findIndex((least, i) => parts[i] !== least);
  return different === -1 || parts[different]! > oldestSafe[different]!;
}

function unsafe(version: string): BoughError {
  const needed = oldestSafe.join(".");
  return new BoughError(
    "store_unsupported",
    `SQLite ${version} can corrupt files that several processes write to; ${needed} is required: run \`npm install @photostructure/sqlite\`, or use a newer Node.`,
    { data: { found: version, needed } },
  );
}
