// The way to the database: one statement at a time, each on its own, tried again where that is safe.
//
//   Database-1. A statement is a transaction. There are no others, so a pooler in between, or a process that dies, leaves none open.
//   Database-2. What certainly had no effect is tried again; what may have had one only if having it twice is having it once
//       (`again`). Otherwise the caller's error says that the outcome is unknown.
//   Database-3. Tries are bounded, each waits longer than the one before, and each is shown to `onRetry`. A read that the server
//       gave up for its length is not tried again, and one without an answer only once more, on another connection.
//   Database-4. A statement whose answer is not waited for any more does not go on: on connections of our own the server ends it
//       (source.ts), on those of a given pool it is cancelled from another one.
//   Database-5. The schema is called "bough" in every statement; its real name, which was checked, is put in here.

import { createHash } from "node:crypto";
import {
  aftermathOf,
  explain,
  isConnectionLost,
  isGivenUp,
  isPassing,
  isUnprepared,
  Unanswered,
  Unsent,
} from "./faults.ts";
import { canSpareOne, isPool, type PostgresClient, type PostgresPool, type PostgresQueryable } from "./source.ts";

/** A statement that will be retried, and why. */
export interface PostgresRetry {
  /** The number of attempts so far. */
  readonly attempt: number;
  readonly delayMs: number;
  readonly error: unknown;
}

export interface DatabaseOptions {
  readonly schema: string;
  /** The maximum number of attempts. */
  readonly attempts: number;
  /** The timeout of a statement. */
  readonly timeoutMs: number;
  readonly onRetry?: ((retry: PostgresRetry) => void) | undefined;
}

interface Statement {
  readonly name: string;
  readonly text: string;
  readonly writes: boolean;
}

/** Connections whose end is listened for; stores may share them. */
const heard = new WeakSet<PostgresClient>();

const shortestDelayMs = 25;
const longestDelayMs = 2_000;

/** What the server shows of a statement is cut off, at 1,024 bytes unless set otherwise. */
const cancelSql = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
  WHERE pid = $1 AND state = 'active' AND usename = current_user AND left(query, 200) = $2`;
const cancelMs = 1_000;

export class Database {
  readonly schema: string;
  readonly #source: PostgresQueryable;
  readonly #pool: PostgresPool | undefined;
  readonly #options: DatabaseOptions;
  readonly #statements = new Map<string, Statement>();
  #prepares = true;

  constructor(source: PostgresQueryable, options: DatabaseOptions) {
    this.#source = source;
    this.#pool = isPool(source) ? source : undefined;
    this.#options = options;
    this.schema = options.schema;
  }

  /** Runs a statement that may run twice: a read, or a write that does nothing the second time. */
  again<Row>(sql: string, ...values: unknown[]): Promise<Row[]> {
    return this.#run<Row>(this.#statement(sql), values, true);
  }

  /** Runs a statement that may get lost: once, ignoring its outcome. */
  async hint(sql: string, ...values: unknown[]): Promise<void> {
    try {
      await this.#try(this.#statement(sql), values);
    } catch {
      // Receivers of the hint also poll.
    }
  }

  /** Runs a write that must not run twice. */
  once<Row>(sql: string, ...values: unknown[]): Promise<Row[]> {
    return this.#run<Row>(this.#statement(sql), values, false);
  }

  /** Runs several statements as one transaction; they have no values. */
  script(statements: readonly string[]): Promise<unknown> {
    return this.#run({ name: "", text: this.#named(statements.join(";\n")), writes: true }, undefined, true);
  }

  /** Whether a connection can be had for listening. */
  get canListen(): boolean {
    return this.#pool !== undefined && canSpareOne(this.#pool);
  }

  /** A connection for listening, where the source has such. */
  async connect(): Promise<PostgresClient | undefined> {
    if (!this.#pool || !this.canListen) return undefined;
    const client = await this.#pool.connect();
    hear(client);
    return client;
  }

  #named(sql: string): string {
    return sql.replaceAll("bough.", `"${this.schema}".`);
  }

  #statement(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (!statement) {
      const text = this.#named(sql);
      // The name tells the text: stores of several schemas may share a connection.
      const name = `bough_${createHash("sha256").update(text).digest("hex").slice(0, 24)}`;
      statement = { name, text, writes: /\b(INSERT|UPDATE|DELETE)\b/.test(text) };
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  async #run<Row>(statement: Statement, values: unknown[] | undefined, again: boolean): Promise<Row[]> {
    let unanswered = 0;
    for (let attempt = 1; ; attempt++) {
      try {
        return (await this.#try(statement, values)) as Row[];
      } catch (error) {
        if (isUnprepared(error)) this.#prepares = false;
        if (error instanceof Unanswered) unanswered += 1;
        const safe = isPassing(error) && (again || aftermathOf(error) === "nothing");
        const tooLong = !statement.writes && (isGivenUp(error) || unanswered > 1);
        if (!safe || tooLong || attempt >= this.#options.attempts) throw explain(error);
        await this.#pause(attempt, error);
      }
    }
  }

  async #try(statement: Statement, values: unknown[] | undefined): Promise<unknown[]> {
    if (!this.#pool) return (await this.#source.query(statement.text, values)).rows;
    const client = await this.#pool.connect().catch((error) => {
      throw new Unsent(error);
    });
    hear(client);
    try {
      const { rows } = await this.#answer(client, statement, values);
      client.release();
      return rows;
    } catch (error) {
      if (error instanceof Unanswered) await this.#cancel(client, statement);
      client.release(isConnectionLost(error));
      throw error;
    }
  }

  /**
   * Ends what a connection still does (Database-4). Behind a pooler the number of its process may be that of another one's, so the
   * statement must be ours. Whether this works is not waited for long: the pool may have no other connection.
   */
  async #cancel(client: PostgresClient, { text }: Statement): Promise<void> {
    const pid = (client as { processID?: number | null }).processID;
    if (typeof pid !== "number" || !this.#pool) return;
    const asked = this.#pool.query(cancelSql, [pid, text.slice(0, 200)]).catch(() => {});
    await within(cancelMs, asked);
  }

  #answer(
    client: PostgresClient,
    { name, text }: Statement,
    values: unknown[] | undefined,
  ): Promise<{ rows: unknown[] }> {
    const { timeoutMs } = this.#options;
    const prepared = values && this.#prepares ? { name, text, values } : undefined;
    const asked = prepared ? client.query(prepared) : client.query(text, values);
    // A script is a migration, which takes as long as the tables are large.
    if (!values) return asked;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Unanswered(timeoutMs)), timeoutMs);
      asked.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }

  async #pause(attempt: number, error: unknown): Promise<void> {
    const longest = Math.min(shortestDelayMs * 2 ** (attempt - 1), longestDelayMs);
    const delayMs = Math.round(longest * (0.5 + Math.random() / 2));
    this.#options.onRetry?.({ attempt, delayMs, error });
    await new Promise((resolve) => setTimeout(resolve, delayMs));
  }
}

function within(ms: number, work: Promise<unknown>): Promise<unknown> {
  let timer: ReturnType<typeof setTimeout>;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** The end of a connection is an error of the statement on it; as an event without a listener it would end the process. */
function hear(client: PostgresClient): void {
  if (heard.has(client)) return;
  heard.add(client);
  client.on("error", () => {});
}
