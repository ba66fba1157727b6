// What is in the tables, and what is not; statements of several handles that meet.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import type { BranchRef, Store } from "../../src/log/index.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import { describe, facts, freshSchema, givenMain, main, opened, raw } from "./kit.ts";

const tables = ["activity", "branches", "checkpoints", "content_refs", "contents", "events", "segments", "sessions"];

async function rowCounts(schema: string): Promise<Record<string, number>> {
  const pool = await raw();
  const counts = [...tables, "terms"].map((table) => `(SELECT count(*)::int FROM ${schema}.${table}) AS ${table}`);
  return (await pool.query(`SELECT ${counts.join(", ")}`)).rows[0];
}

const idOf = (text: string) => createHash("sha256").update(text).digest("hex");

async function giveSomethingOfEverything(store: Store, ref: BranchRef): Promise<void> {
  const { branchId } = ref;
  const bytes = new TextEncoder().encode("shared");
  await store.append(ref, facts(`${branchId}-`, 3), { header: { name: branchId } });
  await store.segments!.save(ref, { to: 2, lines: ["a segment"] });
  await store.saveCheckpoint(ref, { id: "c", seq: 1, data: {} });
  await putBytes(store, ref, { bytes, mediaType: "text/plain" });
  await putBytes(store, ref, { bytes: Buffer.from(branchId), mediaType: "text/plain", name: "n" });
  const { epoch } = await claimSlot(store, ref, { runId: "r", owner: "o", leaseMs: 60_000 });
  await store.releaseRun(ref, { epoch });
}

const fork = { sessionId: "s", branchId: "fork" };
const grandchild = { sessionId: "s", branchId: "grandchild" };

describe("rows", () => {
  test("a deleted branch, a deleted content and a deleted session leave none behind", async () => {
    const schema = freshSchema();
    const store = await opened({ schema });
    const empty = await rowCounts(schema);
    await store.createSession({
      id: "s",
      metadata: { user: "u", tags: ["a"] },
      state: { plan: 1 },
      branch: { id: "main", header: {}, events: facts("e", 2) },
    });
    await giveSomethingOfEverything(store, main);
    const before = await rowCounts(schema);
    await store.createBranch("s", { id: "fork", header: {}, events: [], parent: { branchId: "main", seq: 2 } });
    await giveSomethingOfEverything(store, fork);
    await store.createBranch("s", { id: "grandchild", header: {}, events: [], parent: { branchId: "fork", seq: 3 } });
    await giveSomethingOfEverything(store, grandchild);
    expect(await rowCounts(schema)).not.toEqual(before);
    await store.deleteBranch(fork, { recursive: true });
    expect(await rowCounts(schema)).toEqual(before);
    await store.content!.delete(main, idOf("shared"));
    expect(await rowCounts(schema)).toMatchObject({ contents: 1, content_refs: 1 });
    await store.updateSession("s", { metadata: { user: "other", tags: null } });
    expect(await rowCounts(schema)).toMatchObject({ terms: 1 });
    await store.deleteSession("s");
    expect(await rowCounts(schema)).toEqual(empty);
    expect((await store.maintain()).problems).toEqual([]);
  });

  test("text comes back as it was, even what PostgreSQL's text can't hold", async () => {
    const schema = freshSchema();
    const store = await opened({ schema });
    const texts = ["", "\0", "a\0b", "a\0c", "\u0001", "\u0001a", "\ud800", "x\udfffy", "\u{1f600}", "\u2028'\"\\"];
    const metadata = Object.fromEntries(texts.map((text) => [text, text]));
    const branch = { id: "main", header: metadata, events: texts.map((data, i) => ({ id: `e${i}`, data })) };
    await store.createSession({ id: "s", metadata, state: metadata, branch });
    for (const [to, data] of texts.entries()) await store.segments!.save(main, { to, lines: [data] });
    for (const text of texts) {
      await putBytes(store, main, { bytes: Buffer.from(JSON.stringify(text)), mediaType: text, name: text });
    }
    await store.append(main, [{ id: "\0", data: "\0" }], { header: { "\0new": "\0", "a\0b": null } });
    expect(await store.append(main, [{ id: "\0", data: "\0" }])).toEqual({ first: 11, last: 11 });
    const again = await opened({ schema });
    expect((await again.read(main)).map(({ data }) => data)).toEqual([...texts, "\0"]);
    const { "a\0b": _, ...header } = metadata;
    expect((await again.getBranch(main))!.header).toEqual({ ...header, "\0new": "\0" });
    for (const [to, data] of texts.entries())
      expect(await again.segments!.get(main, to)).toEqual({ to, lines: [data] });
    expect(await again.getSession("s")).toMatchObject({ metadata, state: metadata });
    const contents = await again.content!.list(main);
    expect(contents.map(({ name }) => name).sort()).toEqual([...texts].sort());
    for (const text of texts) {
      expect((await again.listSessions({ metadata: { [text]: text } })).sessions).toHaveLength(1);
      expect((await again.listSessions({ metadata: { [text]: "\ufffd" } })).sessions).toHaveLength(0);
    }
  });

  test("metadata longer than an index takes can be searched", async () => {
    const store = await opened();
    const long = "x".repeat(60_000);
    const branch = { id: "main", header: {}, events: [] };
    await store.createSession({ id: "s", metadata: { long }, state: {}, branch });
    expect((await store.listSessions({ metadata: { long } })).sessions).toHaveLength(1);
    expect((await store.listSessions({ metadata: { long: long.slice(1) } })).sessions).toHaveLength(0);
  });

  test("a search for what many sessions have, alone and with what few have, pages through all of them", async () => {
    const schema = freshSchema();
    const store = await opened({ schema });
    const branch = { id: "main", header: {}, events: [] };
    for (const [id, user] of Object.entries({ a: "rare", b: "rare", c: "other" })) {
      await store.createSession({ id, metadata: { kind: "chat", user }, state: {}, branch });
    }
    await (await raw()).query(
      `INSERT INTO ${schema}.sessions (id, created_at, version, metadata, state)
          SELECT 'n' || i, i, 1, '{"kind":"chat"}', '{}' FROM generate_series(1, 1200) i;
        INSERT INTO ${schema}.activity SELECT no, created_at, id FROM ${schema}.sessions WHERE id LIKE 'n%';
        INSERT INTO ${schema}.terms SELECT s.no, t.key, t.term FROM ${schema}.sessions s,
          (SELECT key, term FROM ${schema}.terms GROUP BY key, term HAVING count(*) = 3) t WHERE s.id LIKE 'n%'`,
    );
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.listSessions({ metadata: { kind: "chat" }, limit: 500, ...(cursor && { cursor }) });
      found.push(...page.sessions.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor);
    expect(found.slice(0, 3).sort()).toEqual(["a", "b", "c"]);
    expect(found.slice(3)).toEqual(Array.from({ length: 1200 }, (_, i) => `n${1200 - i}`));
    const { sessions } = await store.listSessions({ metadata: { kind: "chat", user: "rare" } });
    expect(sessions.map(({ id }) => id).sort()).toEqual(["a", "b"]);
  });

  test("numbers in a header stay what they were", async () => {
    const store = await opened();
    const header = { big: 1e21, small: 1e-7, zero: -0, float: 0.1, nested: { b: 1, a: [1e300] }, none: null };
    const branch = { id: "main", header, events: [] };
    await store.createSession({ id: "s", metadata: {}, state: {}, branch });
    await store.append(main, facts("e", 1), { header: { also: 2e21 } });
    const kept = (await store.getBranch(main))!.header;
    expect(JSON.stringify(kept.nested)).toBe('{"b":1,"a":[1e+300]}');
    expect(kept).toEqual({ ...header, zero: 0, also: 2e21 });
  });

  test("a chain of 1,000 forks can be read at both ends and through the middle", async () => {
    const store = await opened();
    await givenMain(store, facts("root", 1));
    await store.segments!.save(main, { to: 1, lines: ["the root's"] });
    await putBytes(store, main, { bytes: new Uint8Array([1]), mediaType: "x" });
    const depth = 1_000;
    const ids = ["main", ...Array.from({ length: depth }, (_, i) => `b${i}`)];
    for (const [i, id] of ids.slice(1).entries()) {
      const events = [{ id: `of ${id}`, data: `${i}` }];
      await store.createBranch("s", { id, header: {}, events, parent: { branchId: ids[i]!, seq: i + 1 } });
    }
    const last = { sessionId: "s", branchId: ids.at(-1)! };
    const whole = await store.read(last, { limit: 20_000 });
    expect(whole.map(({ seq }) => seq)).toEqual(Array.from({ length: depth + 1 }, (_, i) => i + 1));
    expect(await store.read(last, { limit: 5 })).toEqual(whole.slice(0, 5));
    expect(await store.read(last, { after: 500, limit: 5 })).toEqual(whole.slice(500, 505));
    expect(await store.read(last, { limit: 5, reverse: true })).toEqual(whole.slice(-5).reverse());
    expect(await store.segments!.get(last, 900)).toEqual({ to: 1, lines: ["the root's"] });
    expect(await getBytes(store, last, idOf("\u0001"))).toMatchObject({ bytes: new Uint8Array([1]) });
    expect(await store.deleteBranch({ sessionId: "s", branchId: "b0" }, { recursive: true })).toHaveLength(depth);
  });

  test("a missing fact is damage, told by a read of its branch only and by maintain", async () => {
    const schema = freshSchema();
    const store = await opened({ schema });
    await givenMain(store, facts("e", 3));
    await store.createBranch("s", { id: "other", header: {}, events: facts("o", 1) });
    await (await raw()).query(`DELETE FROM ${schema}.events WHERE seq = 2`);
    await expect(store.read(main)).rejects.toMatchObject({ code: "store_corrupt", data: { ...main, low: 1, high: 3 } });
    expect(await store.read({ sessionId: "s", branchId: "other" })).toHaveLength(1);
    expect((await store.maintain()).problems).toMatchObject([{ code: "corrupt", ...main }]);
  });
});

describe("maintain", () => {
  test("facts of no branch and bytes that nothing refers to are removed and told", async () => {
    const schema = freshSchema();
    const store = await opened({ schema });
    await givenMain(store, facts("e", 2));
    const before = await rowCounts(schema);
    await (await raw()).query(
      `INSERT INTO ${schema}.events (branch_no, seq, id, data) VALUES (999, 1, 'a', ''), (999, 2, 'b', '');
        INSERT INTO ${schema}.contents (session_no, id) SELECT no, 'c' FROM ${schema}.sessions`,
    );
    expect((await store.maintain()).problems).toEqual([
      { code: "orphan", detail: "Removed 2 facts without a branch." },
      { code: "orphan", detail: "Removed 1 unreferenced contents." },
    ]);
    expect(await rowCounts(schema)).toEqual(before);
    expect((await store.maintain()).problems).toEqual([]);
  });
});

describe("several handles", () => {
  test("appends of two to one branch are gapless, whole and in the order each asked", async () => {
    const schema = freshSchema();
    const stores = [await opened({ schema }), await opened({ schema })];
    await givenMain(stores[0]!);
    const asked = stores.flatMap((store, s) =>
      Array.from({ length: 60 }, (_, i) => store.append(main, facts(`${s}-${i}-`, 3))),
    );
    const firsts = (await Promise.all(asked)).map(({ first }) => first);
    expect([...firsts].sort((a, b) => a - b)).toEqual(asked.map((_, i) => 3 * i + 1));
    for (const own of [firsts.slice(0, 60), firsts.slice(60)]) expect(own).toEqual([...own].sort((a, b) => a - b));
  });

  test("groups over the same sessions in any order never wait for each other in a circle", async () => {
    const schema = freshSchema();
    const retries: unknown[] = [];
    const onRetry = (retry: unknown) => retries.push(retry);
    const stores = await Promise.all([0, 1, 2].map(() => opened({ schema, onRetry })));
    const refs: BranchRef[] = [];
    for (let s = 0; s < 6; s++) {
      const branch = { id: "b0", header: {}, events: [] };
      await stores[0]!.createSession({ id: `s${s}`, metadata: {}, state: {}, branch });
      await stores[0]!.createBranch(`s${s}`, { ...branch, id: "b1" });
      refs.push({ sessionId: `s${s}`, branchId: "b0" }, { sessionId: `s${s}`, branchId: "b1" });
    }
    for (let round = 0; round < 15; round++) {
      await Promise.all(
        stores.flatMap((store, s) =>
          (s % 2 ? refs : [...refs].reverse()).map((ref) => store.append(ref, facts(`${round}-${s}-`, 1))),
        ),
      );
    }
    expect(retries).toEqual([]);
    for (const ref of refs) expect((await stores[0]!.getBranch(ref))!.seq).toBe(45);
  });

  test("an append that waited for another write of the session is its newest activity", async () => {
    const schema = freshSchema();
    const clock = { now: () => 7, sleep: async () => {} };
    const store = await opened({ schema, clock });
    await givenMain(store);
    const other = await (await raw()).connect();
    await other.query("BEGIN");
    await other.query(`UPDATE ${schema}.activity SET active_at = 5`);
    const appending = store.append(main, facts("e", 1), { header: { n: 1 } });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await other.query("COMMIT");
    other.release();
    await appending;
    expect((await store.getSession("s"))!.activeAt).toBe(7);
    expect(await store.getBranch(main)).toMatchObject({ activeAt: 7, seq: 1, header: { n: 1 } });
  });

  test("what one deletes while others write to it is gone, with all that was written", async () => {
    const schema = freshSchema();
    const stores = await Promise.all([0, 1].map(() => opened({ schema })));
    const empty = await rowCounts(schema);
    const bytes = new Uint8Array([1, 2, 3]);
    for (let round = 0; round < 12; round++) {
      await givenMain(stores[0]!, facts("e", 1));
      const writes = stores.flatMap((store, s) => [
        store.append(main, facts(`a${s}-`, 2)),
        store.segments!.save(main, { to: 1, lines: ["x"] }),
        store.saveCheckpoint(main, { id: `c${s}`, seq: 1, data: {} }),
        putBytes(store, main, { bytes, mediaType: "x/y" }),
        store.updateSession("s", { metadata: { [`k${s}`]: round } }),
        store.createBranch("s", { id: `f${s}`, header: {}, events: [], parent: { branchId: "main", seq: 1 } }),
      ]);
      const deleting = stores[round % 2]!.deleteSession("s");
      for (const outcome of await Promise.allSettled(writes)) {
        if (outcome.status === "fulfilled") continue;
        expect(BoughError.is(outcome.reason), String(outcome.reason)).toBe(true);
        expect(["branch_not_found", "session_not_found"]).toContain(outcome.reason.code);
      }
      await deleting;
      expect(await rowCounts(schema)).toEqual(empty);
    }
  });

  test("a deletion that waited for an append takes that append's facts along", async () => {
    const schema = freshSchema();
    const store = await opened({ schema });
    await givenMain(store, facts("e", 1));
    const other = await (await raw()).connect();
    await other.query("BEGIN");
    await other.query(`UPDATE ${schema}.branches SET head = 2`);
    await other.query(`INSERT INTO ${schema}.events SELECT no, 2, 'late', '' FROM ${schema}.branches`);
    const deleting = store.deleteBranch(main);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await other.query("COMMIT");
    other.release();
    expect(await deleting).toEqual(["main"]);
    expect(await rowCounts(schema)).toMatchObject({ branches: 0, events: 0 });
  });

  test("bytes that several branches drop and put at once are there for whoever has them", async () => {
    const schema = freshSchema();
    const stores = await Promise.all([0, 1].map(() => opened({ schema })));
    await givenMain(stores[0]!);
    const refs = ["a", "b", "c", "d"].map((branchId) => ({ sessionId: "s", branchId }));
    for (const { branchId } of refs) await stores[0]!.createBranch("s", { id: branchId, header: {}, events: [] });
    const content = { bytes: new Uint8Array([7]), mediaType: "x/y" };
    const id = idOf("\u0007");
    for (let round = 0; round < 15; round++) {
      await Promise.all(
        refs.map((ref, i) => {
          const store = stores[i % 2]!;
          return (i + round) % 2 ? putBytes(store, ref, content) : store.content!.delete(ref, id);
        }),
      );
      for (const [i, ref] of refs.entries()) {
        const found = await getBytes(stores[0]!, ref, id);
        expect(found?.bytes).toEqual((i + round) % 2 ? content.bytes : undefined);
      }
    }
    for (const ref of refs) await stores[0]!.content!.delete(ref, id);
    await stores[0]!.maintain();
    expect(await rowCounts(schema)).toMatchObject({ contents: 0, content_refs: 0 });
  });

  test("leases run by the database's clock, whatever the clocks of the handles say", async () => {
    const schema = freshSchema();
    const at = (now: number) => ({ now: () => now, sleep: async () => {} });
    const [early, late] = [await opened({ schema, clock: at(1) }), await opened({ schema, clock: at(9e15) })];
    await givenMain(early);
    const claim = await claimSlot(early, main, { runId: "r", owner: "o", leaseMs: 60_000 });
    const [{ now }] = (await (await raw()).query("SELECT extract(epoch FROM now()) * 1000 AS now")).rows;
    expect(Math.abs(claim.claimedAt - Number(now))).toBeLessThan(60_000);
    await expect(claimSlot(late, main, { runId: "r2", owner: "o", leaseMs: 1 })).rejects.toMatchObject({
      code: "run_active",
    });
    await expect(late.deleteSession("s")).rejects.toMatchObject({ code: "run_active" });
    await early.releaseRun(main, claim);
    const brief = await claimSlot(early, main, { runId: "r", owner: "o", leaseMs: 1 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    const taken = await late.append(main, facts("e", 1), { claim: { runId: "r2", owner: "o", leaseMs: 60_000 } });
    expect(taken.claim!.epoch).toBeGreaterThan(brief.epoch);
    await expect(early.append(main, facts("f", 1), { epoch: brief.epoch })).rejects.toMatchObject({
      code: "epoch_stale",
    });
  });
});
