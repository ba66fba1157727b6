// The ways to a server: a URL, a pool, anything with query(); and what is asked of the server.

import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { postgresStore } from "../../src/stores/postgres/index.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { describe, facts, freshSchema, givenMain, main, opened, raw, server } from "./kit.ts";

describe("sources", () => {
  test("a pool is used and stays open", async () => {
    const pool = await raw();
    const store = await postgresStore(pool, { schema: freshSchema() });
    await givenMain(store, facts("e", 2));
    await store.close();
    expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
  });

  test("anything with query() will do: it is watched by polling", async () => {
    const pool = await raw();
    const schema = freshSchema();
    const store = await postgresStore({ query: (text, values) => pool.query(text, values) }, { schema, pollMs: 20 });
    const other = await opened({ schema });
    await givenMain(store, facts("e", 2));
    const watching = store.watch(main, 2, new AbortController().signal);
    await other.append(main, facts("f", 1));
    await watching;
    expect(await store.read(main, { after: 2 })).toHaveLength(1);
    await store.close();
  });

  test("bytes come back as they were from a driver that gives them as text, and never as others", async () => {
    const pool = await raw();
    const given = async (bytea: (bytes: Buffer) => unknown) => {
      const query = async (text: string, values?: unknown[]) => {
        const { rows } = await pool.query(text, values);
        return { rows: rows?.map((row) => (row.bytes ? { ...row, bytes: bytea(row.bytes) } : row)) };
      };
      const store = await postgresStore({ query }, { schema: freshSchema() });
      onTestFinished(() => store.close());
      await givenMain(store);
      const { id } = await putBytes(store, main, { bytes: new Uint8Array([0, 1, 255]), mediaType: "a/b" });
      return (await getBytes(store, main, id))?.bytes;
    };
    expect(await given((bytes) => `\\x${bytes.toString("hex")}`)).toEqual(new Uint8Array([0, 1, 255]));
    await expect(given((bytes) => bytes.toString())).rejects.toMatchObject({ code: "store_unsupported" });
  });

  test("one connection is enough", async () => {
    const client = new pg.Client({ connectionString: server().url });
    await client.connect();
    onTestFinished(() => client.end());
    const store = await postgresStore(client, { schema: freshSchema() });
    await givenMain(store, facts("e", 2));
    expect(await store.read(main)).toHaveLength(2);
    await store.close();
  });

  test("a pooler that loses prepared statements is worked with all the same", async () => {
    const pool = await raw();
    const lost = Object.assign(new Error("prepared statement does not exist"), { code: "26000" });
    let named = 0;
    const lossy = {
      query: (text: string, values?: unknown[]) => pool.query(text, values),
      async connect() {
        const client = await pool.connect();
        const query = (text: unknown, values?: unknown[]) => {
          if (typeof text === "string") return client.query(text, values);
          named += 1;
          return Promise.reject(lost);
        };
        return { query, release: client.release.bind(client), on: client.on.bind(client) };
      },
    };
    const store = await postgresStore(lossy, { schema: freshSchema() });
    await givenMain(store, facts("e", 2));
    expect(await store.read(main)).toHaveLength(2);
    expect(named).toBe(1);
    await store.close();
  });

  test("a notification wakes a watcher that polls too seldom to matter", async () => {
    const schema = freshSchema();
    const store = await opened({ schema, pollMs: 1_000_000 });
    const other = await opened({ schema });
    await givenMain(store);
    const watching = store.watch(main, 0, new AbortController().signal);
    const operator = await raw();
    const listening = "SELECT 1 FROM pg_stat_activity WHERE query LIKE $1 AND state = 'idle'";
    while ((await operator.query(listening, [`LISTEN "${schema}%`])).rows.length === 0);
    await other.append(main, facts("e", 1));
    await watching;
    expect(await store.read(main)).toHaveLength(1);
  });

  test("a pool of one connection is not taken up by listening", async () => {
    const pool = new pg.Pool({ connectionString: server().url, max: 1 });
    onTestFinished(() => pool.end());
    const schema = freshSchema();
    const store = await postgresStore(pool, { schema, pollMs: 20 });
    const other = await opened({ schema });
    await givenMain(store);
    const watching = store.watch(main, 0, new AbortController().signal);
    await other.append(main, facts("e", 1));
    await watching;
    await store.close();
  });

  test("a watcher takes one connection, however many watch", async () => {
    const schema = freshSchema();
    const store = await opened({ schema, applicationName: schema, maxConnections: 3 });
    await givenMain(store);
    const watching = Array.from({ length: 40 }, () => store.watch(main, 0, new AbortController().signal));
    expect(await store.read(main)).toEqual([]);
    await store.append(main, facts("e", 1));
    await Promise.all(watching);
    const { rows } = await (await raw()).query(
      "SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'LISTEN%'",
      [schema],
    );
    expect(rows).toHaveLength(1);
  });
});

describe("the server's settings", () => {
  const withoutSync = () => `${server().url}?options=-c%20synchronous_commit%3Doff`;

  test("commits that are not waited for are refused", async () => {
    await expect(opened({ url: withoutSync() })).rejects.toMatchObject({
      code: "store_unsupported",
      data: { synchronousCommit: "off" },
    });
  });

  test("unless that is allowed, and then the store's kind says so", async () => {
    const store = await opened({ url: withoutSync(), allowAsyncCommit: true });
    expect(store.kind).toBe("postgres-async");
    await givenMain(store);
    expect(await store.append(main, facts("e", 1))).toEqual({ first: 1, last: 1 });
    expect((await opened()).kind).toBe("postgres");
  });

  test.each(["on", "local", "remote_write", "remote_apply"])("synchronous_commit = %s will do", async (setting) => {
    const store = await opened({ url: `${server().url}?options=-c%20synchronous_commit%3D${setting}` });
    await givenMain(store);
    expect(await store.append(main, facts("e", 1))).toEqual({ first: 1, last: 1 });
  });

  test("a connection that stops waiting for commits later appends nothing", async () => {
    const pool = new pg.Pool({ connectionString: server().url, max: 1 });
    onTestFinished(() => pool.end());
    const store = await postgresStore(pool, { schema: freshSchema() });
    await givenMain(store);
    await pool.query("SET synchronous_commit = off");
    const refusal = { code: "store_unsupported" };
    await expect(store.append(main, facts("e", 1))).rejects.toMatchObject(refusal);
    await pool.query("SET synchronous_commit = on");
    expect(await store.append(main, facts("e", 1))).toEqual({ first: 1, last: 1 });
    await store.close();
  });

  test("a database whose transactions are serializable by default is used all the same", async () => {
    const schema = freshSchema();
    const url = `${server().url}?options=-c%20default_transaction_isolation%3Dserializable`;
    const stores = [await opened({ schema, url }), await opened({ schema, url })];
    await givenMain(stores[0]!);
    await Promise.all(stores.flatMap((store, s) => [0, 1, 2].map((i) => store.append(main, facts(`${s}-${i}-`, 2)))));
    expect(await stores[0]!.read(main)).toHaveLength(12);
  });

  test("a database in another encoding is refused", async () => {
    const pool = await raw();
    await pool.query("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'");
    const url = server().url.replace(/postgres$/, "latin");
    await expect(opened({ url })).rejects.toMatchObject({ code: "store_unsupported", data: { encoding: "LATIN1" } });
  });

  test.each([undefined, {}, 5])("%j is no source", async (source) => {
    await expect(postgresStore(source as never)).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("what is no URL is refused, and not shown", async () => {
    const refused = await opened({ url: "postgres://user:secret@host:port" }).catch((error) => error);
    expect(refused).toMatchObject({ code: "invalid_argument" });
    expect(JSON.stringify([refused.message, refused.data, refused.cause])).not.toContain("secret");
  });

  test("a database that is not there is refused, and its address is not in the error", async () => {
    const url = server()
      .url.replace("postgres@", "postgres:secret@")
      .replace(/postgres$/, "nowhere");
    const refused = await opened({ url }).catch((error) => error);
    expect(refused).toMatchObject({ code: "store_unsupported", data: { reason: "3D000" } });
    expect(JSON.stringify([refused.message, refused.data])).not.toContain("secret");
  });
});
