import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { RedisClient } from "./client.ts";
import { Connection } from "./connection.ts";
import { reader, writer } from "./script.ts";

const repeatable = reader("return {'ok'}");
const once = writer("return {'ok'}");
const lost = new Error("Socket closed unexpectedly");
const offline = new Error("The client is offline");

/** A client that answers what it is given, in this order; the last for ever. */
function answering(...answers: unknown[]) {
  const sent: string[] = [];
  const client = {
    async sendCommand(args: readonly string[]) {
      sent.push(args[0]!);
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer instanceof Error) throw answer;
      return answer;
    },
    destroy() {},
  };
  const redis = new Connection(client as unknown as RedisClient, { prefix: "p", clock: undefined });
  return { redis, sent };
}

describe("a connection that breaks", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  test("what was not sent and what may be repeated is sent again", async () => {
    for (const [script, error] of [
      [repeatable, lost] as const,
      [repeatable, offline] as const,
      [once, offline] as const,
    ]) {
      const { redis, sent } = answering(error, error, ["ok"]);
      const running = redis.run(script, "s", []);
      await vi.advanceTimersByTimeAsync(1000);
      expect(await running).toEqual(["ok"]);
      expect(sent).toHaveLength(3);
    }
  });

  test("what may have run and may not run twice is told at once", async () => {
    const { redis, sent } = answering(lost, ["ok"]);
    const told = { code: "store_unavailable", retryable: false, data: { outcome: "unknown" } };
    await expect(redis.run(once, "s", [])).rejects.toMatchObject(told);
    expect(sent).toHaveLength(1);
  });

  test("patience ends", async () => {
    const { redis } = answering(lost);
    const running = redis.run(repeatable, "s", []);
    const told = expect(running).rejects.toMatchObject({ code: "store_unavailable", data: { reason: "connection" } });
    await vi.advanceTimersByTimeAsync(11_000);
    await told;
  });

  test("nothing is repeated while the store closes", async () => {
    const { redis, sent } = answering(lost);
    redis.hurry();
    await expect(redis.run(repeatable, "s", [])).rejects.toMatchObject({ code: "store_unavailable" });
    expect(sent).toHaveLength(1);
  });
});

describe("what the server answers", () => {
  test("a script it does not know is sent as a whole", async () => {
    const { redis, sent } = answering(new Error("NOSCRIPT No matching script."), ["ok"]);
    expect(await redis.run(once, "s", [])).toEqual(["ok"]);
    expect(sent).toEqual(["EVALSHA", "EVAL"]);
  });

  test.each([
    ["OOM command not allowed when used memory > 'maxmemory'.", "store_read_only"],
    ["READONLY You can't write against a read only replica.", "store_read_only"],
    ["NOPERM User app has no permissions", "store_unsupported"],
    ["MOVED 3999 127.0.0.1:6381", "store_unsupported"],
    ["WRONGTYPE Operation against a key holding the wrong kind of value", "store_corrupt"],
  ])("%s is %s, and not repeated", async (message, code) => {
    const { redis, sent } = answering(new Error(message));
    await expect(redis.run(repeatable, "s", [])).rejects.toMatchObject({ code });
    expect(sent).toHaveLength(1);
  });

  test("an error of a script passes as it is: it is a bug of the store", async () => {
    const error = new Error("ERR user_script:1: attempt to index a nil value");
    const { redis } = answering(error);
    await expect(redis.run(repeatable, "s", [])).rejects.toBe(error);
  });
});
