// Connections that end, answers that are lost, a server that goes away: what was acknowledged is there, once.

import { expect, test } from "vitest";
import type { Appended, Store } from "../../src/log/index.ts";
import type { PostgresRetry } from "../../src/stores/postgres/database.ts";
import { packSegment } from "../../src/stores/postgres/segments.ts";
import { putBytes } from "../../src/testing/content.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import { describe, facts, freshSchema, givenMain, main, opened, raw, server } from "./kit.ts";
import { lossyProxy } from "./proxy.ts";

const run = { runId: "r", owner: "o", leaseMs: 60_000 };

async function givenLossyStore(options: { timeoutMs?: number } = {}) {
  const proxy = await lossyProxy();
  const retries: PostgresRetry[] = [];
  const schema = freshSchema();
  const store = await opened({ ...options, url: proxy.url, schema, onRetry: (retry) => retries.push(retry) });
  await givenMain(store);
  return { proxy, retries, store, schema };
}

describe("a lost answer", () => {
  test("an append is asked for again and written once", async () => {
    const { proxy, retries, store } = await givenLossyStore();
    proxy.loseAnswerTo("lost-0");
    expect(await store.append(main, facts("lost-", 2), { expectedSeq: 0 })).toEqual({ first: 1, last: 2 });
    expect(proxy.lost).toBe(1);
    expect(retries).toMatchObject([{ attempt: 1, error: expect.any(Error) }]);
    expect(await store.read(main)).toHaveLength(2);
  });

  test("an append with a claim gets the claim that its first try made", async () => {
    const { proxy, store } = await givenLossyStore();
    proxy.loseAnswerTo("lost-0");
    const { claim } = await store.append(main, facts("lost-", 1), { claim: run });
    expect(await store.listRuns()).toEqual([claim]);
    proxy.loseAnswerTo("end-0");
    const { epoch } = claim!;
    expect(await store.append(main, facts("end-", 1), { epoch, release: true })).toEqual({ first: 2, last: 2 });
    expect(proxy.lost).toBe(2);
    expect(await store.listRuns()).toEqual([]);
  });

  test("appends that went together are all asked for again, each written once", async () => {
    const { proxy, store } = await givenLossyStore();
    const ids = Array.from({ length: 12 }, (_, i) => `b${i}`);
    for (const id of ids) await store.createBranch("s", { id, header: {}, events: [] });
    proxy.loseAnswerTo("b3-1");
    const refs = ids.map((branchId) => ({ sessionId: "s", branchId }));
    const answers = await Promise.all(refs.map((ref) => store.append(ref, facts(`${ref.branchId}-`, 2))));
    expect(proxy.lost).toBe(1);
    expect(answers).toEqual(ids.map(() => ({ first: 1, last: 2 })));
    for (const ref of refs) expect(await store.read(ref)).toHaveLength(2);
  });

  test("an answer that never comes is given up, and the append asked for again", async () => {
    const { proxy, store } = await givenLossyStore({ timeoutMs: 300 });
    proxy.loseAnswerTo("lost-0", "silent");
    expect(await store.append(main, facts("lost-", 1))).toEqual({ first: 1, last: 1 });
    expect(proxy.lost).toBeGreaterThan(0);
    expect(await store.read(main)).toHaveLength(1);
  });

  test("claims, segments and content may be asked for twice", async () => {
    const { proxy, store } = await givenLossyStore();
    await store.append(main, facts("e", 1));
    proxy.loseAnswerTo("lost-run");
    const claim = await claimSlot(store, main, { ...run, runId: "lost-run" });
    expect(await store.listRuns()).toEqual([{ ...claim, expiresAt: expect.any(Number) }]);
    proxy.loseAnswerTo(await packSegment(["lost-segment"]));
    await store.segments!.save(main, { to: 1, lines: ["lost-segment"] });
    expect(await store.segments!.get(main, 1)).toEqual({ to: 1, lines: ["lost-segment"] });
    proxy.loseAnswerTo("lost-content");
    const bytes = new TextEncoder().encode("bytes");
    const record = await putBytes(store, main, { bytes, mediaType: "text/plain", name: "lost-content" });
    expect(await store.content!.list(main)).toEqual([record]);
    expect(proxy.lost).toBe(3);
  });

  test("what must not be done twice is told to be unknown", async () => {
    const { proxy, retries, store } = await givenLossyStore();
    proxy.loseAnswerTo("lost-session");
    const branch = { id: "main", header: {}, events: [] };
    const created = store.createSession({ id: "lost-session", metadata: {}, state: {}, branch });
    await expect(created).rejects.toMatchObject({
      code: "store_unavailable",
      retryable: false,
      data: { outcome: "unknown" },
    });
    expect(retries).toEqual([]);
    expect(await store.getSession("lost-session")).toBeDefined();
  });
});

/** Appends batches one after the other until told to stop. */
async function keepAppending(store: Store, name: string, stop: () => boolean): Promise<Map<number, string[]>> {
  const acknowledged = new Map<number, string[]>();
  for (let i = 0; !stop(); i++) {
    const batch = facts(`${name}-${i}-`, 2);
    const { first } = (await store.append(main, batch)) as Appended;
    acknowledged.set(
      first,
      batch.map(({ id }) => id),
    );
  }
  return acknowledged;
}

async function expectAcknowledged(store: Store, acknowledged: readonly Map<number, string[]>[]): Promise<void> {
  const log = await store.read(main, { limit: 100_000 });
  expect(log.map(({ seq }) => seq)).toEqual(log.map((_, i) => i + 1));
  expect(new Set(log.map(({ id }) => id)).size).toBe(log.length);
  for (const [first, ids] of acknowledged.flatMap((each) => [...each])) {
    expect(log.slice(first - 1, first - 1 + ids.length).map(({ id }) => id)).toEqual(ids);
  }
  expect(log).toHaveLength(acknowledged.reduce((sum, each) => sum + 2 * each.size, 0));
}

describe("a connection or a server that goes away", () => {
  test("connections ended by an operator in mid-use cost nothing but time", async () => {
    const schema = freshSchema();
    const stores = [
      await opened({ schema, applicationName: schema, attempts: 20 }),
      await opened({ schema, applicationName: schema, attempts: 20 }),
    ];
    await givenMain(stores[0]!);
    const operator = await raw();
    let kills = 0;
    const writers = stores.map((store, i) => keepAppending(store, `w${i}`, () => kills >= 40));
    while (kills < 40) {
      const { rows } = await operator.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
        [schema],
      );
      kills += rows.length;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await expectAcknowledged(stores[0]!, await Promise.all(writers));
  });

  test.each(["fast", "immediate"] as const)("a %s restart of the server costs nothing but time", async (how) => {
    const store = await opened({ attempts: 30 });
    await givenMain(store);
    let restarted = false;
    const writer = keepAppending(store, "w", () => restarted);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await server().restart(how);
    await new Promise((resolve) => setTimeout(resolve, 50));
    restarted = true;
    await expectAcknowledged(store, [await writer]);
  });

  test("a server that is not there is store_unavailable, after as many tries as were allowed", async () => {
    const retries: PostgresRetry[] = [];
    const onRetry = (retry: PostgresRetry) => retries.push(retry);
    const nowhere = opened({ url: "postgres://postgres@127.0.0.1:1/postgres", attempts: 3, onRetry });
    await expect(nowhere).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
    expect(retries.map(({ attempt }) => attempt)).toEqual([1, 2]);
  });

  test("by default, it is tried again for as long as a restart takes", async () => {
    const retries: PostgresRetry[] = [];
    const onRetry = (retry: PostgresRetry) => retries.push(retry);
    const nowhere = opened({ url: "postgres://postgres@127.0.0.1:1/postgres", onRetry });
    await expect(nowhere).rejects.toMatchObject({ code: "store_unavailable" });
    expect(retries.reduce((sum, { delayMs }) => sum + delayMs, 0)).toBeGreaterThan(1_500);
  });

  test("a watcher survives the end of every connection, listens again and still hears", async () => {
    const schema = freshSchema();
    const store = await opened({ schema, applicationName: schema });
    const other = await opened({ schema });
    await givenMain(store);
    let woken = false;
    const watching = store.watch(main, 0, new AbortController().signal).then(() => {
      woken = true;
    });
    const operator = await raw();
    const listeners = async () => {
      const { rows } = await operator.query(
        "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'LISTEN%' AND state = 'idle'",
        [schema],
      );
      return rows.map(({ pid }) => pid);
    };
    while ((await listeners()).length === 0);
    const [before] = await listeners();
    await operator.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", [
      schema,
    ]);
    while ((await listeners()).every((pid) => pid === before)) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(woken).toBe(false);
    await other.append(main, facts("e", 1));
    await watching;
  });
});
