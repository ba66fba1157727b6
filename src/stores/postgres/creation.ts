// Making sessions: those that wait together are made by one statement, and so share a round trip, a transaction, a sync and a
// connection. Owns the queue of sessions to be made.
//
//   Creation-1. One statement at a time; what is asked for meanwhile goes into the next.
//   Creation-2. A statement has each id once, and inserts them in the same order everywhere, so that two never wait for each other.
//   Creation-3. A refusal is one session's own. An error fails the whole statement, which has then made nothing: each is asked for
//       again alone, so that only the guilty one fails, unless what failed is the way to the database.

import type { JsonObject } from "../../base/json.ts";
import { checkDistinct, isOpenHeader, refuse, type SessionRecord } from "../../log/index.ts";
import type { BranchInput } from "./branches.ts";
import type { Database } from "./database.ts";
import { isOfOne } from "./faults.ts";
import { findRow, termsOf } from "./sessions.ts";
import { encodeHeader, encodeText } from "./text.ts";

/** A new session as it goes into a statement: its JSON, so that the caller's objects are not looked at again. */
interface SessionInput {
  readonly id: string;
  readonly metadata: string;
  readonly state: string;
  readonly branch: BranchInput;
  readonly now: number;
}

interface Waiting {
  readonly input: SessionInput;
  readonly resolve: (record: SessionRecord) => void;
  readonly reject: (error: unknown) => void;
}

// Bounds what one statement takes: its parts find each other by comparing them all.
const largestGroup = 64;

export class Creations {
  readonly #database: Database;
  #waiting: Waiting[] = [];
  #working = false;

  constructor(database: Database) {
    this.#database = database;
  }

  async create(input: SessionInput): Promise<SessionRecord> {
    const { id, branch } = input;
    try {
      checkDistinct({ sessionId: id, branchId: branch.id }, branch.events);
    } catch (error) {
      if (await findRow(this.#database, id)) throw refuse.sessionExists(id);
      throw error;
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ input, resolve, reject });
      if (!this.#working) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#working = true;
    // What is asked for in this turn of the event loop goes along.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) await this.#make(this.#take());
    this.#working = false;
  }

  #take(): Waiting[] {
    const group = new Map<string, Waiting>();
    const rest: Waiting[] = [];
    for (const each of this.#waiting) {
      const { id } = each.input;
      if (group.size < largestGroup && !group.has(id)) group.set(id, each);
      else rest.push(each);
    }
    this.#waiting = rest;
    return [...group.values()];
  }

  /** Settles every one of them; never rejects. */
  async #make(group: readonly Waiting[]): Promise<void> {
    try {
      const inputs = group.map(({ input }) => input);
      const made = await createTogether(this.#database, inputs);
      for (const [i, { input, resolve, reject }] of group.entries()) {
        if (made.has(i)) resolve(recordOf(input));
        else reject(refuse.sessionExists(input.id));
      }
    } catch (error) {
      if (group.length > 1 && isOfOne(error)) for (const each of group) await this.#make([each]);
      else for (const { reject } of group) reject(error);
    }
  }
}

function recordOf({ id, metadata, state, now }: SessionInput): SessionRecord {
  const documents = { metadata: JSON.parse(metadata) as JsonObject, state: JSON.parse(state) as JsonObject };
  return { id, createdAt: now, activeAt: now, version: 1, ...documents };
}

const createSql = `WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::int[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[],
      $16::bool[]) AS a (i, id, now, metadata, state, branch_id, header, facts, is_open)
  ), session AS (
    INSERT INTO bough.sessions (id, created_at, version, metadata, state)
    SELECT id, now, 1, metadata, state FROM asked ORDER BY id COLLATE "C"
    ON CONFLICT (id) DO NOTHING RETURNING no, id
  ), made AS MATERIALIZED (
    SELECT a.*, s.no AS session_no FROM session s JOIN asked a ON a.id = s.id
  ), active AS (
    INSERT INTO bough.activity (session_no, active_at, id) SELECT session_no, now, id FROM made
  ), found AS (
    INSERT INTO bough.terms (session_no, key, term)
    SELECT m.session_no, t.key, t.term FROM unnest($9::int[], $10::bytea[], $11::bytea[]) AS t (i, key, term)
    JOIN made m ON m.i = t.i
  ), branch AS (
    INSERT INTO bough.branches (session_no, id, base, head, created_at, active_at, header, open_in)
    SELECT session_no, branch_id, 0, facts, now, now, header::jsonb, CASE WHEN is_open THEN id END FROM made
    RETURNING no, session_no
  ), place AS MATERIALIZED (
    SELECT m.i, b.no FROM branch b JOIN made m ON m.session_no = b.session_no
  ), first AS (
    INSERT INTO bough.events (branch_no, seq, id, data)
    SELECT p.no, e.k, e.id, e.data
    FROM unnest($12::int[], $13::int[], $14::text[], $15::text[]) AS e (i, k, id, data) JOIN place p ON p.i = e.i
  ) SELECT i FROM made`;

/** Makes those whose id is free, in one statement; tells which. */
async function createTogether(database: Database, inputs: readonly SessionInput[]): Promise<Set<number>> {
  const each = <T>(value: (input: SessionInput) => T): T[] => inputs.map(value);
  const terms = inputs.flatMap(({ metadata }, i) => {
    const found = termsOf(JSON.parse(metadata) as JsonObject);
    return found.keys.map((key, k) => ({ i, key, term: found.terms[k] }));
  });
  const facts = inputs.flatMap(({ branch }, i) => branch.events.map(({ id, data }, k) => ({ i, k: k + 1, id, data })));
  const rows = await database.once<{ i: number }>(
    createSql,
    inputs.map((_, i) => i),
    each(({ id }) => encodeText(id)),
    each(({ now }) => now),
    each(({ metadata }) => metadata),
    each(({ state }) => state),
    each(({ branch }) => encodeText(branch.id)),
    each(({ branch }) => encodeHeader(JSON.parse(branch.header) as JsonObject)),
    each(({ branch }) => branch.events.length),
    terms.map(({ i }) => i),
    terms.map(({ key }) => key),
    terms.map(({ term }) => term),
    facts.map(({ i }) => i),
    facts.map(({ k }) => k),
    facts.map(({ id }) => encodeText(id)),
    facts.map(({ data }) => encodeText(data)),
    each(({ branch }) => isOpenHeader(JSON.parse(branch.header) as JsonObject)),
  );
  return new Set(rows.map(({ i }) => i));
}
