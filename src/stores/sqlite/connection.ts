// One connection to the database. Owns the prepared statements and the crossing between JavaScript text and SQLite text.
//
//   SqliteConnection-1. Nothing is awaited while a transaction is open, so the next caller never finds one.
//   SqliteConnection-2. No text is changed by being stored. The drivers cut at U+0000 and replace lone surrogates, so such texts (which no
//       JSON and no checked id contains) cross as blobs; `text()` reads either.

import { isWellFormed } from "../../base/json.ts";
import type { Database, SqlValue, Statement } from "./driver.ts";

export class Connection {
  readonly #database: Database;
  readonly #statements = new Map<string, Statement>();
  /** Those that give rows without names. */
  readonly #tuples = new Map<string, Statement>();

  constructor(database: Database) {
    this.#database = database;
  }

  get<Row>(sql: string, ...values: SqlValue[]): Row | undefined {
    return this.#prepare(sql).get(...bound(values)) as Row | undefined;
  }

  /** The values of the row, in the order of its columns: names cost as much as a small row. */
  tuple(sql: string, ...values: SqlValue[]): readonly unknown[] | undefined {
    let statement = this.#tuples.get(sql);
    if (!statement) {
      statement = this.#database.prepare(sql);
      statement.setReturnArrays?.(true);
      this.#tuples.set(sql, statement);
    }
    const row = statement.get(...bound(values)) as object | undefined;
    return row === undefined || Array.isArray(row) ? row : Object.values(row);
  }

  all<Row>(sql: string, ...values: SqlValue[]): Row[] {
    return this.#prepare(sql).all(...bound(values)) as Row[];
  }

  /** Returns how many rows changed. */
  run(sql: string, ...values: SqlValue[]): number {
    return Number(this.#prepare(sql).run(...bound(values)).changes);
  }

  /** Runs a statement without a result. `get` makes no object of it, which is half of what a small one costs. */
  write(sql: string, ...values: SqlValue[]): void {
    this.#prepare(sql).get(...bound(values));
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  /** The value of a pragma, which may set it first: `pragma("journal_mode = WAL")`. */
  pragma(name: string): unknown {
    const row = this.#database.prepare(`PRAGMA ${name}`).get() as Record<string, unknown> | undefined;
    return row && Object.values(row)[0];
  }

  /** Runs `work` in a transaction that takes the write lock first; all of it is kept, or nothing. */
  transaction<T>(work: () => T): T {
    return this.#within("BEGIN IMMEDIATE", work);
  }

  /** Runs `work` on one state of the database although other processes write; it takes the write lock if it writes. */
  snapshot<T>(work: () => T): T {
    return this.#within("BEGIN", work);
  }

  /** Ends the transaction; SQLite has ended it by itself after some failures. */
  rollback(): void {
    try {
      this.run("ROLLBACK");
    } catch (error) {
      if (!/no transaction is active/.test(String(error))) throw error;
    }
  }

  /**
   * The package (unlike Node's own SQLite) lets go of the file only when its statements have been collected as garbage;
   * until then they should at least hold no memory.
   */
  close(): void {
    this.#statements.clear();
    this.#tuples.clear();
    this.#database.exec("PRAGMA shrink_memory");
    this.#database.close();
  }

  #within<T>(begin: string, work: () => T): T {
    this.write(begin);
    try {
      const result = work();
      this.write("COMMIT");
      return result;
    } catch (error) {
      this.rollback();
      throw error;
    }
  }

  #prepare(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** Text as it was bound (SqliteConnection-2). */
export function text(value: string | Uint8Array): string {
  return typeof value === "string" ? value : Buffer.from(value).toString("utf16le");
}

function bound(values: SqlValue[]): SqlValue[] {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (typeof value === "string" && !passesUnchanged(value)) values[i] = Buffer.from(value, "utf16le");
  }
  return values;
}

function passesUnchanged(value: string): boolean {
  return !value.includes("\0") && isWellFormed(value);
}
