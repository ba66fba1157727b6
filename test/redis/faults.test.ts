// What the network, the server and its operators do to a store in use.

import { describe, expect, test } from "vitest";
import type { RedisWarning } from "../../src/stores/redis/index.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import { checkLog } from "../../src/testing/index.ts";
import { facts, freshPrefix, givenMain, main, opened, raw, sharedServer, startProxy } from "./kit.ts";
import { missing, startServer } from "./server.ts";

describe.skipIf(missing)("a store in use", () => {
  const server = sharedServer();

  test("an append whose answer is lost is repeated and written once", async () => {
    const proxy = await startProxy(server());
    const store = await opened(proxy.url, { prefix: freshPrefix() });
    await givenMain(store);
    for (let i = 0; i < 5; i++) {
      proxy.loseAnswerTo(`lost${i}-`);
      const options = { expectedSeq: 2 * i, header: { i } };
      expect(await store.append(main, facts(`lost${i}-`, 2), options)).toEqual({ first: 2 * i + 1, last: 2 * i + 2 });
    }
    expect(proxy.lost).toBe(5);
    expect(await checkLog(store, main)).toEqual([]);
    expect(await store.getBranch(main)).toMatchObject({ seq: 10, header: { i: 4 } });
  });

  test("a claim whose answer is lost is the same claim when it is repeated", async () => {
    const proxy = await startProxy(server());
    const store = await opened(proxy.url, { prefix: freshPrefix() });
    await givenMain(store);
    proxy.loseAnswerTo("the-run");
    const claim = await claimSlot(store, main, { runId: "the-run", owner: "o", leaseMs: 60_000 });
    expect(proxy.lost).toBe(1);
    expect(await store.listRuns()).toMatchObject([{ runId: "the-run", epoch: claim.epoch }]);
    proxy.loseAnswerTo("last-fact");
    await store.append(main, facts("last-fact", 1), { epoch: claim.epoch, release: true });
    expect(await store.listRuns()).toEqual([]);
  });

  test("an update whose answer is lost is not repeated: the caller is told that its outcome is not known", async () => {
    const proxy = await startProxy(server());
    const store = await opened(proxy.url, { prefix: freshPrefix() });
    await givenMain(store);
    await store.updateSession("s", { state: { first: true } });
    proxy.loseAnswerTo("patched-key");
    const updating = store.updateSession("s", { metadata: { "patched-key": 1 } });
    await expect(updating).rejects.toMatchObject({
      code: "store_unavailable",
      retryable: false,
      data: { reason: "connection", outcome: "unknown" },
    });
    expect(await store.getSession("s")).toMatchObject({ version: 3, metadata: { "patched-key": 1 } });
  });

  test("connections killed by the server are made again, appends go on, and it is said once each time", async () => {
    const warnings: RedisWarning[] = [];
    const store = await opened(server().url, { prefix: freshPrefix(), onWarning: (warning) => warnings.push(warning) });
    const client = await raw(server().url);
    await givenMain(store);
    let killing = true;
    const killer = (async () => {
      while (killing) {
        await client.sendCommand(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
    })();
    const writers = Array.from({ length: 8 }, async (_, w) => {
      for (let i = 0; i < 20; i++) await store.append(main, facts(`w${w}-${i}-`, 3));
    });
    await Promise.all(writers);
    killing = false;
    await killer;
    expect(await checkLog(store, main)).toEqual([]);
    expect((await store.getBranch(main))!.seq).toBe(8 * 20 * 3);
    expect(warnings.map(({ code }) => code)).toContain("connection");
  });

  test("scripts that the server forgot are sent again", async () => {
    const store = await opened(server().url, { prefix: freshPrefix() });
    const client = await raw(server().url);
    await givenMain(store);
    for (let i = 0; i < 3; i++) {
      await client.sendCommand(["SCRIPT", "FLUSH"]);
      expect(await store.append(main, facts(`a${i}-`, 1))).toEqual({ first: i + 1, last: i + 1 });
      await client.sendCommand(["SCRIPT", "FLUSH"]);
      expect(await store.read(main)).toHaveLength(i + 1);
    }
  });

  test("a watcher hears of another handle although its connections are killed", async () => {
    const prefix = freshPrefix();
    const [one, two] = [await opened(server().url, { prefix, pollMs: 50 }), await opened(server().url, { prefix })];
    const client = await raw(server().url);
    await givenMain(one);
    const heard = one.watch(main, 0, new AbortController().signal);
    for (const type of ["pubsub", "normal"]) {
      await client.sendCommand(["CLIENT", "KILL", "TYPE", type, "SKIPME", "yes"]);
    }
    await two.append(main, facts("a", 1));
    await heard;
    expect(await one.read(main)).toHaveLength(1);
  });

  test("a message wakes a watcher long before the next look", async () => {
    const prefix = freshPrefix();
    const [one, two] = [
      await opened(server().url, { prefix, pollMs: 3_600_000 }),
      await opened(server().url, { prefix }),
    ];
    await givenMain(one);
    for (let i = 0; i < 3; i++) {
      const heard = one.watch(main, i, new AbortController().signal);
      await two.append(main, facts(`a${i}`, 1));
      await heard;
    }
    const heard = one.watch(main, 3, new AbortController().signal);
    await two.deleteSession("s");
    await heard;
  });

  test("a clock that runs on one node decides nothing: leases are the server's", async () => {
    const store = await opened(server().url, { prefix: freshPrefix() });
    await givenMain(store);
    const before = Date.now();
    const claim = await claimSlot(store, main, { runId: "r1", owner: "o", leaseMs: 60 });
    expect(Math.abs(claim.claimedAt - before)).toBeLessThan(60_000);
    const next = async (): Promise<number> => {
      try {
        return (await claimSlot(store, main, { runId: "r2", owner: "o", leaseMs: 60 })).epoch;
      } catch (error) {
        expect(error).toMatchObject({ code: "run_active" });
        await new Promise((resolve) => setTimeout(resolve, 10));
        return next();
      }
    };
    expect(await next()).toBeGreaterThan(claim.epoch);
    await expect(store.append(main, facts("a", 1), { epoch: claim.epoch })).rejects.toMatchObject({
      code: "epoch_stale",
    });
  });
});

describe.skipIf(missing)("a server that keeps everything (appendfsync always)", () => {
  test("killed again and again it loses nothing that was acknowledged, and appends under way are repeated", async () => {
    const server = await startServer({ appendonly: "yes", appendfsync: "always" });
    try {
      const warnings: RedisWarning[] = [];
      const store = await opened(server.url, { onWarning: (warning) => warnings.push(warning) });
      expect(warnings).toEqual([]);
      expect(store.durability).toMatchObject({ powerLoss: "nothing", processDeath: "nothing" });
      await givenMain(store);
      const acknowledged = new Map<string, number>();
      let writing = true;
      const writers = Array.from({ length: 4 }, async (_, w) => {
        for (let i = 0; writing; i++) {
          const batch = facts(`w${w}-${i}-`, 2);
          const { first } = await store.append(main, batch);
          for (const [at, { id }] of batch.entries()) acknowledged.set(id, first + at);
        }
      });
      for (let kills = 0; kills < 3; kills++) {
        const before = acknowledged.size;
        while (acknowledged.size < before + 40) await new Promise((resolve) => setTimeout(resolve, 5));
        await server.kill();
        await server.start();
      }
      writing = false;
      await Promise.all(writers);
      const log = await store.read(main, { limit: 100_000 });
      expect(log.map(({ seq }) => seq)).toEqual(log.map((_, i) => i + 1));
      expect(new Map(log.map(({ id, seq }) => [id, seq]))).toEqual(acknowledged);
      expect((await store.maintain()).problems).toEqual([]);
    } finally {
      await server.dispose();
    }
  });
});
