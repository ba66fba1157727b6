import type { Connection } from "./connection.ts";

/**
 * The epochs that one write transaction gives out. It takes as many as it could need in one statement, at the first; those
 * left over are skipped. Never used beyond its transaction: another process may have given out later ones by then.
 */
export class Epochs {
  readonly #sql: Connection;
  readonly #most: number;
  #next: number | undefined;

  constructor(sql: Connection, most: number) {
    this.#sql = sql;
    this.#most = most;
  }

  next(): number {
    this.#next ??= this.#take();
    return this.#next++;
  }

  #take(): number {
    const sql = "UPDATE epochs SET newest = newest + ? RETURNING newest";
    return this.#sql.get<{ newest: number }>(sql, this.#most)!.newest - this.#most + 1;
  }
}
