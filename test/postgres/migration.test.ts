import { expect, test } from "vitest";
import { migrate, migrations } from "../../src/stores/postgres/schema.ts";
import { manualClock } from "../../src/testing/clock.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { database, describe, facts, freshSchema, givenMain, main, opened, raw, server } from "./kit.ts";

const kill = "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(10)";

/** As the tables were before appends changed no index. */
async function undoHotAppends(client: Awaited<ReturnType<typeof raw>>, schema: string): Promise<void> {
  await client.query(`ALTER TABLE ${schema}.activity DROP COLUMN active_step, DROP COLUMN space`);
  await client.query(`CREATE INDEX activity_by_time ON ${schema}.activity (active_at DESC, id)`);
  await client.query(`ALTER TABLE ${schema}.branches DROP COLUMN listed`);
  await client.query(`CREATE INDEX branches_claimed ON ${schema}.branches (claimed_at) WHERE run_id IS NOT NULL`);
}

/** As the tables were before content was cut into chunks. */
async function undoContentMigration(client: Awaited<ReturnType<typeof raw>>, schema: string): Promise<void> {
  await undoHotAppends(client, schema);
  for (const table of ["chunks", "uploads", "freed"]) await client.query(`DROP TABLE ${schema}.${table}`);
  await client.query(`DROP FUNCTION ${schema}.drop_bytes() CASCADE`);
  await client.query(
    `ALTER TABLE ${schema}.contents DROP COLUMN size, DROP COLUMN place, DROP COLUMN place_session, ADD COLUMN bytes bytea`,
  );
  await client.query(`ALTER TABLE ${schema}.content_refs DROP COLUMN seq, DROP COLUMN info`);
}

describe("migrations", () => {
  test("a first opening killed before any of its statements has not happened, and the next one does it", async () => {
    const [first] = migrations;
    for (let at = 0; at <= first!.length; at++) {
      const schema = freshSchema();
      const way = await database(schema);
      await expect(migrate(way, [[...first!.slice(0, at), kill, ...first!.slice(at)]])).rejects.toThrow();
      const there = await way.again<{ there: boolean }>("SELECT to_regnamespace($1) IS NOT NULL AS there", schema);
      expect(there).toEqual([{ there: false }]);
    }
    const schema = freshSchema();
    await expect(migrate(await database(schema), [[...first!, kill]])).rejects.toThrow();
    const store = await opened({ schema });
    expect(await store.maintain()).toEqual({ sessions: 0, branches: 0, events: 0, problems: [] });
    await givenMain(store, facts("e", 2));
    expect(await store.read(main)).toHaveLength(2);
  });

  test("a later migration that fails halfway leaves the version before it", async () => {
    const schema = freshSchema();
    const store = await opened({ schema });
    await givenMain(store, facts("e", 1));
    const way = await database(schema);
    const good = ["CREATE TABLE bough.more (a int)", "INSERT INTO bough.more VALUES (1)"];
    await expect(migrate(way, [...migrations, [...good, "CREATE TABLE bough.more (a int)"]])).rejects.toThrow();
    await expect(way.again("SELECT * FROM bough.more")).rejects.toThrow();
    expect(await store.append(main, facts("f", 1))).toEqual({ first: 2, last: 2 });
    await migrate(way, [...migrations, good]);
    expect(await way.again("SELECT a FROM bough.more")).toEqual([{ a: 1 }]);
  });

  test("turns that were left open in a schema of the first version are found", async () => {
    const schema = freshSchema();
    const store = await opened({ schema });
    for (const id of ["open", "idle"]) {
      const branch = { id: "main", header: {}, events: [] };
      await store.createSession({ id, metadata: {}, state: {}, branch });
      await store.append({ sessionId: id, branchId: "main" }, facts("a", 1), { header: { turn: "t" } });
    }
    await store.append({ sessionId: "idle", branchId: "main" }, facts("b", 1), { header: { turn: null } });
    const client = await raw();
    await undoContentMigration(client, schema);
    await client.query(`ALTER TABLE ${schema}.branches DROP COLUMN open_in`);
    await client.query(`DELETE FROM ${schema}.migrations WHERE version > 1`);
    const { branches } = await (await opened({ schema })).listOpen();
    expect(branches.map(({ sessionId }) => sessionId)).toEqual(["open"]);
  });

  test("content of a schema of the second version keeps its bytes, and every fork sees it as before", async () => {
    const schema = freshSchema();
    const store = await opened({ schema });
    const branch = { id: "main", header: {}, events: facts("e", 2) };
    await store.createSession({ id: "s", metadata: {}, state: {}, branch });
    await store.createBranch("s", { id: "fork", header: {}, events: [], parent: { branchId: "main", seq: 1 } });
    const client = await raw();
    await undoContentMigration(client, schema);
    await client.query(`DELETE FROM ${schema}.migrations WHERE version > 2`);
    const all = [new Uint8Array(0), new Uint8Array(262_144).fill(1), new Uint8Array(700_000).map((_, i) => i % 251)];
    for (const [i, bytes] of all.entries()) {
      await client.query(
        `WITH c AS (INSERT INTO ${schema}.contents (session_no, id, bytes) SELECT no, $1, $2 FROM ${schema}.sessions RETURNING no)
          INSERT INTO ${schema}.content_refs (branch_no, content_no, size, media_type, created_at)
          SELECT b.no, c.no, $3, 'a/b', $4 FROM c, ${schema}.branches b WHERE b.id = 'main'`,
        [`c${i}`, Buffer.from(bytes), bytes.length, i],
      );
    }
    const again = await opened({ schema });
    for (const branchId of ["main", "fork"]) {
      for (const [i, bytes] of all.entries()) {
        const got = await getBytes(again, { sessionId: "s", branchId }, `c${i}`);
        expect(got!.record).toMatchObject({ size: bytes.length, seq: 0, info: {} });
        expect(Buffer.compare(got!.bytes, bytes)).toBe(0);
      }
    }
    expect(await again.content!.usage("s")).toBe(962_144);
    const { id } = await putBytes(again, { sessionId: "s", branchId: "main" }, { bytes: all[2]!, mediaType: "a/b" });
    expect(id).toHaveLength(64);
    expect((await again.maintain()).problems).toEqual([]);
  });

  test("claims, spaces and the order of sessions of a schema of the third version are found", async () => {
    const schema = freshSchema();
    const clock = manualClock();
    const store = await opened({ schema, clock, leaseNow: () => clock.now() });
    const branch = { id: "main", header: {}, events: [] };
    for (const id of ["~a~1", "one", "~a~2", "two"]) {
      await store.createSession({ id, metadata: {}, state: {}, branch });
      clock.advance(700);
    }
    const claims = [];
    for (const [sessionId, leaseMs] of [
      ["two", 1000],
      ["one", 100_000_000],
    ] as const) {
      const claim = { runId: "r", owner: "o", leaseMs };
      claims.push((await store.append({ sessionId, branchId: "main" }, facts(sessionId, 1), { claim })).claim!);
      clock.advance(1);
    }
    const client = await raw();
    await undoHotAppends(client, schema);
    await client.query(`DELETE FROM ${schema}.migrations WHERE version > 3`);
    const again = await opened({ schema, clock, leaseNow: () => clock.now() });
    const idsOf = async (query: object) => (await again.listSessions(query)).sessions.map(({ id }) => id);
    expect(await idsOf({})).toEqual(["one", "two", "~a~2", "~a~1"]);
    expect(await idsOf({ space: "~a~" })).toEqual(["~a~2", "~a~1"]);
    expect(await idsOf({ space: "" })).toEqual(["one", "two"]);
    expect(await again.listRuns()).toEqual(claims);
    expect(await again.listRuns({ endsBefore: clock.now() + 60_000 })).toEqual([claims[0]]);
  });

  test("stores that open a new schema at once all get in", async () => {
    const schema = freshSchema();
    const stores = await Promise.all(["a", "b", "c", "d", "e"].map(() => opened({ schema })));
    const branch = { id: "main", header: {}, events: [] };
    await Promise.all(stores.map((store, i) => store.createSession({ id: `${i}`, metadata: {}, state: {}, branch })));
    expect((await stores[0]!.listSessions()).sessions).toHaveLength(5);
  });

  test("a newer schema is refused, by an opening and by a handle that was open already", async () => {
    const schema = freshSchema();
    const store = await opened({ schema });
    await givenMain(store);
    const newer = migrations.length + 1;
    await (await raw()).query(`INSERT INTO ${schema}.migrations (version) VALUES (${newer})`);
    const refusal = { code: "store_too_new", data: { found: newer, supported: migrations.length } };
    await expect(opened({ schema })).rejects.toMatchObject(refusal);
    await expect(store.append(main, facts("e", 1))).rejects.toMatchObject(refusal);
    expect(await store.read(main)).toEqual([]);
  });

  test("a role that was given its schema needs no right to make one", async () => {
    const schema = freshSchema();
    const pool = await raw();
    await pool.query(`CREATE ROLE tenant LOGIN; CREATE SCHEMA ${schema} AUTHORIZATION tenant`);
    const url = server().url.replace("postgres@", "tenant@");
    await givenMain(await opened({ schema, url }), facts("e", 1));
    const refused = { code: "store_unsupported", data: { reason: "42501" } };
    await expect(opened({ schema: freshSchema(), url })).rejects.toMatchObject(refused);
  });

  test("a role that may not read the tables is refused when it opens the store, not at its first request", async () => {
    const schema = freshSchema();
    await givenMain(await opened({ schema }), facts("e", 1));
    const pool = await raw();
    await pool.query(`CREATE ROLE looker LOGIN; GRANT USAGE ON SCHEMA ${schema} TO looker;
      GRANT SELECT ON ${schema}.migrations TO looker`);
    const url = server().url.replace("postgres@", "looker@");
    const refused = { code: "store_unsupported", data: { reason: "42501" } };
    await expect(opened({ schema, url })).rejects.toMatchObject(refused);
  });

  test.each(["migrations (id text)", "sessions (id text)"])(
    "a schema with another program's table %s is refused",
    async (table) => {
      const schema = freshSchema();
      const pool = await raw();
      await pool.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.${table}`);
      await expect(opened({ schema })).rejects.toMatchObject({ code: "store_unsupported" });
      const { rows } = await pool.query("SELECT tablename FROM pg_tables WHERE schemaname = $1", [schema]);
      expect(rows).toEqual([{ tablename: table.split(" ")[0] }]);
    },
  );

  test("schemas of one database know nothing of each other", async () => {
    const [one, two] = [await opened(), await opened()];
    await givenMain(one, facts("e", 1));
    expect(await two.getSession("s")).toBeUndefined();
    await givenMain(two, facts("f", 3));
    expect(await one.read(main)).toHaveLength(1);
  });

  test.each(["", "Bough", "1a", "a-b", 'a"b', "a b", "a.b", "pg_a", "x".repeat(49), "a;drop"])(
    "a schema can't be called %j",
    async (schema) => {
      await expect(opened({ schema })).rejects.toMatchObject({ code: "invalid_argument", data: { schema } });
    },
  );
});
