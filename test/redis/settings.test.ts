// What a server must be like, and what a store says about the one it has.

import { inspect } from "node:util";
import { createCluster } from "redis";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { RedisWarning } from "../../src/stores/redis/index.ts";
import { redisStore } from "../../src/stores/redis/index.ts";
import { facts, freshPrefix, givenMain, main, opened, raw, sharedServer } from "./kit.ts";
import { freePort, missing, startServer } from "./server.ts";

describe.skipIf(missing)("the server's settings", () => {
  const server = sharedServer();

  async function told(settings: Record<string, string>) {
    const client = await raw(server().url);
    await client.sendCommand(["CONFIG", "SET", "no-appendfsync-on-rewrite", "no"]);
    for (const [name, value] of Object.entries(settings)) await client.sendCommand(["CONFIG", "SET", name, value]);
    const warnings: RedisWarning[] = [];
    const store = await opened(server().url, {
      prefix: freshPrefix(),
      onWarning: (warning) => warnings.push(warning),
    });
    return { durability: store.durability, warnings };
  }

  test.each([
    [{ appendonly: "no", save: "" }, "everything", "everything", /nothing on disk/],
    [{ appendonly: "no", save: "3600 1" }, "sinceSnapshot", "sinceSnapshot", /last snapshot/],
    [{ appendonly: "yes", appendfsync: "everysec", save: "" }, "nothing", "seconds", /two seconds/],
    [{ appendonly: "yes", appendfsync: "no" }, "nothing", "seconds", /operating system/],
    [
      { appendonly: "yes", appendfsync: "always", "no-appendfsync-on-rewrite": "yes" },
      "nothing",
      "seconds",
      /rewrites/,
    ],
  ])("%o: what can be lost is told once", async (settings, processDeath, powerLoss, words) => {
    const { durability, warnings } = await told(settings);
    expect(durability).toMatchObject({ processDeath, powerLoss, description: expect.stringMatching(words) });
    expect(warnings).toEqual([{ code: "durability", message: durability.description }]);
  });

  test("appendfsync always: nothing can be lost, and nothing is told", async () => {
    const { durability, warnings } = await told({ appendonly: "yes", appendfsync: "always" });
    expect(durability).toMatchObject({ processDeath: "nothing", powerLoss: "nothing" });
    expect(warnings).toEqual([]);
  });

  test("settings that may not be read: it says that it can't know, and works", async () => {
    const client = await raw(server().url);
    await client.sendCommand(["CONFIG", "SET", "appendonly", "no"]);
    await client.sendCommand("ACL SETUSER app on >secret ~* &* +@all -config".split(" "));
    const url = server().url.replace("redis://", "redis://app:secret@");
    const warnings: RedisWarning[] = [];
    const store = await opened(url, { prefix: freshPrefix(), onWarning: (warning) => warnings.push(warning) });
    expect(store.durability).toMatchObject({ processDeath: "unknown", powerLoss: "unknown" });
    expect(warnings).toMatchObject([{ code: "durability", message: expect.stringMatching(/durability is unknown/) }]);
    await givenMain(store, facts("e", 1));
    expect(await store.read(main)).toHaveLength(1);
  });

  test("a server that evicts keys is refused, whichever it evicts first", async () => {
    const client = await raw(server().url);
    const kinds = ["lru", "lfu", "random"].flatMap((kind) => [`allkeys-${kind}`, `volatile-${kind}`]);
    for (const policy of [...kinds, "volatile-ttl"]) {
      await client.sendCommand(["CONFIG", "SET", "maxmemory-policy", policy]);
      const opening = redisStore(server().url, { prefix: freshPrefix() });
      await expect(opening).rejects.toMatchObject({ code: "store_unsupported", data: { policy } });
      const url = server().url.replace("redis://", "redis://blind:secret@");
      await client.sendCommand("ACL SETUSER blind on >secret ~* &* +@all -config".split(" "));
      await expect(redisStore(url)).rejects.toMatchObject({ code: "store_unsupported", data: { policy } });
    }
    await client.sendCommand(["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    await opened(server().url, { prefix: freshPrefix() });
  });

  test("a server whose memory is full refuses writes, still reads, and lets sessions be deleted", async () => {
    const client = await raw(server().url);
    const store = await opened(server().url, { prefix: freshPrefix() });
    await givenMain(store, facts("e", 2));
    await client.sendCommand(["CONFIG", "SET", "maxmemory", "1"]);
    try {
      await expect(store.append(main, facts("f", 1))).rejects.toMatchObject({ code: "store_read_only" });
      expect(await store.read(main)).toHaveLength(2);
      expect((await store.listSessions()).sessions).toHaveLength(1);
      await store.deleteSession("s");
      expect(await store.getSession("s")).toBeUndefined();
    } finally {
      await client.sendCommand(["CONFIG", "SET", "maxmemory", "0"]);
    }
  });

  test("a user who may not publish, as new users may not, writes and deletes wholly all the same, and is heard", async () => {
    const client = await raw(server().url);
    await client.sendCommand("ACL SETUSER silent on >secret ~* +@all resetchannels".split(" "));
    const prefix = freshPrefix();
    const silent = await opened(server().url.replace("redis://", "redis://silent:secret@"), { prefix, pollMs: 20 });
    await givenMain(silent);
    const heard = (await opened(server().url, { prefix, pollMs: 20 })).watch(main, 0, new AbortController().signal);
    expect(await silent.append(main, facts("e", 2))).toEqual({ first: 1, last: 2 });
    await heard;
    const fork = { sessionId: "s", branchId: "fork" };
    await silent.createBranch("s", { id: "fork", header: {}, events: [], parent: { branchId: "main", seq: 1 } });
    expect(await silent.deleteBranch(fork)).toEqual(["fork"]);
    await silent.deleteSession("s");
    expect(await silent.getSession("s")).toBeUndefined();
  });

  test("one server of a cluster of several is refused, and so is a client of a cluster", async () => {
    const [one, other] = [
      await startServer({ "cluster-enabled": "yes" }),
      await startServer({ "cluster-enabled": "yes" }),
    ];
    onTestFinished(() => Promise.all([one.dispose(), other.dispose()]).then(() => {}));
    const [near, far] = [await raw(one.url), await raw(other.url)];
    const refusal = { code: "store_unsupported", data: { servers: 2 } };
    await near.sendCommand(["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    await vi.waitFor(
      async () => expect(await near.sendCommand(["CLUSTER", "INFO"])).toContain("cluster_state:ok"),
      9_000,
    );
    await givenMain(await opened(one.url, { prefix: freshPrefix() }), facts("e", 1));
    await near.sendCommand(["CLUSTER", "DELSLOTSRANGE", "9000", "16383"]);
    await far.sendCommand(["CLUSTER", "ADDSLOTSRANGE", "9000", "16383"]);
    await near.sendCommand(["CLUSTER", "MEET", "127.0.0.1", String(other.port)]);
    await vi.waitFor(
      async () => expect(await near.sendCommand(["CLUSTER", "INFO"])).toContain("cluster_size:2"),
      9_000,
    );
    await expect(redisStore(one.url, { prefix: freshPrefix() })).rejects.toMatchObject(refusal);
    const cluster = createCluster({ rootNodes: [{ url: one.url }] });
    await expect(redisStore(cluster as never)).rejects.toMatchObject({ code: "invalid_argument" });
  }, 30_000);

  test("data of a newer format is refused", async () => {
    const prefix = freshPrefix();
    const client = await raw(server().url);
    await client.set(`{${prefix}}:format`, "5");
    await expect(redisStore(server().url, { prefix })).rejects.toMatchObject({
      code: "store_too_new",
      data: { found: 5, supported: 4 },
    });
  });

  test("turns that were left open in data of the first format are found", async () => {
    const prefix = freshPrefix();
    const store = await redisStore(server().url, { prefix, onWarning: () => {} });
    await givenMain(store, facts("e", 1));
    await store.append({ sessionId: "s", branchId: "main" }, facts("f", 1), { header: { turn: "t" } });
    await store.close();
    const client = await raw(server().url);
    await client.del([`{${prefix}}:open`, `{${prefix}:s}:open`]);
    await client.set(`{${prefix}}:format`, "1");
    const again = await opened(server().url, { prefix });
    expect((await again.listOpen()).branches).toMatchObject([{ sessionId: "s", branchId: "main" }]);
    expect(await client.get(`{${prefix}}:format`)).toBe("4");
  });

  test("a client is duplicated: the store works beside it and does not close it", async () => {
    const client = await raw(server().url);
    const store = await redisStore(client, { prefix: freshPrefix(), onWarning: () => {} });
    await givenMain(store, facts("e", 1));
    const heard = store.watch(main, 1, new AbortController().signal);
    await store.append(main, facts("f", 1));
    await heard;
    await store.close();
    expect(await client.sendCommand(["PING"])).toBe("PONG");
  });

  test("an address where no server answers is told, not waited for", async () => {
    for (const host of ["127.0.0.1", "localhost"]) {
      const url = `redis://${host}:${await freePort()}`;
      await expect(redisStore(url)).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
    }
    const wrong = server().url.replace("redis://", "redis://nobody:wrong@");
    await expect(redisStore(wrong)).rejects.toMatchObject({ code: "store_unsupported" });
    await expect(redisStore(`${server().url}/999`)).rejects.toMatchObject({ code: "store_unsupported" });
  });

  test("and nothing is said of commands that could not be sent", async () => {
    const refused = await redisStore(`redis://127.0.0.1:${await freePort()}`).catch((error: Error) => error);
    expect(String(refused)).not.toContain("is not known");
  });

  test.each(["redis://user:secret@[x", "redis://user:secret@host/name", "http://user:secret@host", undefined, {}])(
    "what is neither a URL of a server nor a client of one is refused, and not shown: %j",
    async (source) => {
      const refused = await redisStore(source as string).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: "invalid_argument" });
      expect(inspect(refused)).not.toContain("secret");
    },
  );
});
