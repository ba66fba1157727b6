// Answers and writes that come late: the index must not go back to what it knew before (session-index.ts, X2 and X4).

import { describe, expect, onTestFinished, test } from "vitest";
import { makeClient, type RedisClient } from "../../src/stores/redis/client.ts";
import { Connection } from "../../src/stores/redis/connection.ts";
import { listSessions } from "../../src/stores/redis/listing.ts";
import { maintain } from "../../src/stores/redis/maintain.ts";
import { SessionIndex } from "../../src/stores/redis/session-index.ts";
import { createSession, deleteSession, updateSession } from "../../src/stores/redis/sessions.ts";
import { freshPrefix, raw, sharedServer } from "./kit.ts";
import { missing } from "./server.ts";

/** A client that keeps commands back: those that `hold` picks wait until `letGo`. */
function holding(client: RedisClient) {
  let picks: ((args: readonly unknown[]) => boolean) | undefined;
  let release = () => {};
  let caught = () => {};
  const sendCommand: RedisClient["sendCommand"] = async (args, options) => {
    if (picks?.(args)) {
      picks = undefined;
      const gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      caught();
      await gate;
    }
    return client.sendCommand(args, options);
  };
  const held = (pick: (args: readonly unknown[]) => boolean) =>
    new Promise<void>((resolve) => {
      picks = pick;
      caught = resolve;
    });
  return { client: Object.assign(Object.create(client), { sendCommand }) as RedisClient, held, letGo: () => release() };
}

describe.skipIf(missing)("the index", () => {
  const server = sharedServer();

  async function given() {
    const prefix = freshPrefix();
    const connect = async () => {
      const client = await makeClient(server().url);
      client.on("error", () => {});
      await client.connect();
      onTestFinished(() => client.destroy());
      return client;
    };
    const slow = holding(await connect());
    const slowRedis = new Connection(slow.client, { prefix, clock: undefined });
    const late = new SessionIndex(slowRedis, "late");
    const redis = new Connection(await connect(), { prefix, clock: undefined });
    const index = new SessionIndex(redis, "prompt");
    const create = (k: string) =>
      createSession(redis, { id: "s", metadata: { k }, state: {}, branch: { id: "main", header: {}, events: [] } });
    const found = async (k: string) => {
      const { sessions } = await listSessions(redis, index, { metadata: { k } });
      return sessions.map(({ id }) => id);
    };
    // A write to the index: the first key is the index's, and the session is named.
    const write = (args: readonly unknown[]) => args[3] === `{${prefix}}` && args[5] === "s";
    return { prefix, slow, slowRedis, late, redis, index, create, found, write };
  }

  test("does not take an older state of a session for a newer one", async () => {
    const { slow, late, redis, index, create, found, write } = await given();
    await create("old");
    const caught = slow.held(write);
    const settling = late.settle("s");
    await caught;
    await updateSession(redis, "s", { metadata: { k: "new" } }, undefined);
    await index.settle("s");
    slow.letGo();
    await settling;
    expect(await found("new")).toEqual(["s"]);
  });

  test("does not drop a session that was created again", async () => {
    const { slow, late, redis, index, create, found, write } = await given();
    await create("old");
    await index.settle("s");
    await deleteSession(redis, "s");
    const caught = slow.held(write);
    const settling = late.settle("s");
    await caught;
    await create("new");
    await index.settle("s");
    slow.letGo();
    await settling;
    expect(await found("new")).toEqual(["s"]);
  });

  test("keeps the mark of a session that changes while the mark is being taken away", async () => {
    const { prefix, slow, late, redis, create, found, write } = await given();
    const client = await raw(server().url);
    await late.changing("s", () => create("old"));
    const caught = slow.held(write);
    const closing = late.close();
    await caught;
    await late.changing("s", () => updateSession(redis, "s", { metadata: { k: "new" } }, undefined));
    slow.letGo();
    await closing;
    expect(await client.zRange(`{${prefix}}:marks`, 0, -1)).toEqual(["late.0 s"]);
    expect(await found("new")).toEqual(["s"]);
  });

  test("is not called incomplete by a maintenance that finds a session of which it is to be told yet", async () => {
    const { slow, slowRedis, late, index, create } = await given();
    const caught = slow.held((args) => args[0] === "SCAN");
    const maintaining = maintain(slowRedis, late);
    await caught;
    await index.changing("s", () => create("new"));
    slow.letGo();
    expect(await maintaining).toEqual({ sessions: 1, branches: 1, events: 0, problems: [] });
  });

  test("a change waits until its mark is acknowledged", async () => {
    const { prefix, slow, late, create, redis } = await given();
    await create("old");
    const caught = slow.held((args) => String(args[5]).endsWith(" s") && args[3] === `{${prefix}}`);
    const changing = late.changing("s", (gated) => updateSession(gated, "s", { metadata: { k: "new" } }, undefined));
    await caught;
    for (let i = 0; i < 5; i++) await redis.command("PING");
    const fields = await redis.command<string[]>("HGETALL", `{${prefix}:s}`);
    expect(fields).toContain('"old"');
    slow.letGo();
    expect(await changing).toMatchObject({ metadata: { k: "new" } });
  });
});
