import { describe, expect, test } from "vitest";
import { BoughError } from "../base/errors.ts";
import { problem } from "../wire/problem.ts";
import { isRemoteError } from "./errors.ts";
import { createClient } from "./index.ts";

interface Asked {
  readonly url: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
}

/** A client whose server answers by script; the last answer stays. */
function clientOf(...answers: (() => Response | Promise<Response>)[]) {
  const asked: Asked[] = [];
  const slept: number[] = [];
  const fetch = (async (url: string, init: RequestInit) => {
    const { method = "GET", headers, body } = init;
    asked.push({ url, method, headers: headers as Record<string, string>, body: body as string | undefined });
    return answers[Math.min(asked.length, answers.length) - 1]!();
  }) as unknown as typeof globalThis.fetch;
  const clock = {
    now: () => 0,
    sleep: (ms: number, signal?: AbortSignal) => {
      if (ms < 60_000) slept.push(ms);
      return ms < 60_000
        ? Promise.resolve()
        : new Promise<void>((wake) => signal?.addEventListener("abort", () => wake()));
    },
  };
  const client = createClient({ url: "http://far/prefix/", token: async () => "t", fetch, clock, random: () => 0 });
  return { client, asked, slept, branch: client.branch({ agentId: "a b", sessionId: "ü", branchId: "x?y" }) };
}

const json = (body: unknown, status = 200) => Response.json(body, { status });
const refuse = (code: Parameters<typeof problem>[0], data = {}) => {
  const told = problem(code, "Because.", data);
  return json(told, told.status);
};
const breaks = () => Promise.reject(new TypeError("fetch failed"));

test("ids are encoded, the prefix stays, the token is asked for each time", async () => {
  const { branch, asked } = clientOf(() => json({ seq: 1 }));
  await branch.state({ last: 5 });
  expect(asked).toMatchObject([
    {
      url: "http://far/prefix/agents/a%20b/sessions/%C3%BC/branches/x%3Fy/state?last=5",
      headers: { authorization: "Bearer t" },
    },
  ]);
});

describe("a refusal", () => {
  test("is an error with the server's code, status and data, for everybody who knows BoughErrors", async () => {
    const { branch } = clientOf(() => refuse("run_active", { runId: "r" }));
    const error = await branch.submit("Hi").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "run_active", status: 409, data: { runId: "r" }, retryable: false });
    expect((error as Error).message).toBe("Because.");
    expect([BoughError.is(error, "run_active"), isRemoteError(error, "run_active")]).toEqual([true, true]);
    expect([BoughError.is(error, "turn_open"), isRemoteError(error, "rate_limited")]).toEqual([false, false]);
    expect(isRemoteError(new BoughError("run_active", "Near."))).toBe(false);
  });

  test.each([
    [401, "unauthorized", false],
    [403, "forbidden", false],
    [404, "route_not_found", false],
    [418, "server_failed", false],
    [429, "rate_limited", true],
    [501, "server_failed", false],
    [502, "unreachable", true],
  ])("that is no problem document goes by its status: %i is %s", async (status, code, retryable) => {
    const { client } = clientOf(() => new Response("<h1>no</h1>", { status }));
    await expect(client.createSession()).rejects.toMatchObject({ code, status, retryable });
  });
});

describe("when no answer comes", () => {
  test("an input is said again, with the same key, and so is a question", async () => {
    const { branch, asked, slept } = clientOf(breaks, breaks, () => json({ inputId: "i", status: "started" }, 202));
    expect(await branch.submit("Hi")).toMatchObject({ inputId: "i" });
    const keys = asked.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toMatch(/^\w{16}$/);
    expect(slept).toEqual([250, 500]);
    const other = clientOf(breaks, () => json({ sessions: [] }));
    expect(await other.client.listSessions()).toEqual({ sessions: [] });
  });

  test("bytes are asked for again, whole or as a stream, until an answer begins", async () => {
    const { branch, asked } = clientOf(
      breaks,
      () => new Response("abc"),
      breaks,
      () => new Response("def"),
    );
    expect(await (await branch.content.get("c")).text()).toBe("abc");
    expect(await new Response(await branch.content.stream("c")).text()).toBe("def");
    expect(asked).toHaveLength(4);
  });

  test("two inputs have two keys", async () => {
    const { branch, asked } = clientOf(() => json({}, 202));
    await branch.submit("Hi");
    await branch.submit("Hi");
    expect(asked[0]!.headers["idempotency-key"]).not.toBe(asked[1]!.headers["idempotency-key"]);
  });

  test("what can't be told from a second time is not repeated", async () => {
    const { branch, client, asked } = clientOf(breaks);
    for (const ask of [
      () => branch.respond("i", {}),
      () => branch.interrupt(),
      () => branch.submit(),
      () => branch.fork(),
      () => client.createSession("s"),
    ]) {
      await expect(ask()).rejects.toMatchObject({ code: "unreachable", status: 0, retryable: true });
    }
    expect(asked).toHaveLength(5);
  });

  test("it is the caller's failure after four times", async () => {
    const { branch, asked } = clientOf(breaks);
    await expect(branch.interrupt({ runId: "r" })).rejects.toMatchObject({ code: "unreachable" });
    expect(asked).toHaveLength(4);
  });
});

test("the server's wish for patience is kept, and a refusal for good is not repeated", async () => {
  const patient = clientOf(
    () => refuse("rate_limited", { retryAfterMs: 3000 }),
    () => json([]),
  );
  await patient.branch.activeRun();
  expect(patient.slept).toEqual([3000]);
  const full = clientOf(() => refuse("queue_full"));
  await expect(full.branch.submit("Hi", { ifActive: "queue" })).rejects.toMatchObject({ code: "queue_full" });
  expect(full.asked).toHaveLength(1);
});

test("an answer whose body breaks off is no answer", async () => {
  const cut = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"seq"'));
      controller.error(new Error("cut"));
    },
  });
  const { branch, asked } = clientOf(
    () => new Response(cut),
    () => json({ seq: 7 }),
  );
  expect(await branch.state()).toEqual({ seq: 7 });
  expect(asked).toHaveLength(2);
});

test("a client without the url of a server is refused at once", () => {
  const url = undefined as unknown as string; // as process.env may give it
  expect(() => createClient({ url })).toThrow("A client needs the url of a server.");
});

test("a token that can't be had is its owner's error, and nobody is asked", async () => {
  let asked = 0;
  const fetch = async () => {
    asked++;
    return Response.json({});
  };
  const token = () => Promise.reject(new Error("Log in first."));
  const client = createClient({ url: "http://far", token, fetch: fetch as unknown as typeof globalThis.fetch });
  await expect(client.listSessions()).rejects.toThrow("Log in first.");
  expect(asked).toBe(0);
});

test("whoever calls a request off gets their own reason", async () => {
  const { branch } = clientOf(breaks);
  const over = new AbortController();
  over.abort(new Error("enough"));
  await expect(branch.submit("Hi", { signal: over.signal })).rejects.toThrow("enough");
});

test("an answer may take five times as long where a model has to speak first", async () => {
  const waits: number[] = [];
  const fetch = ((_: string, { signal }: RequestInit) =>
    new Promise((_resolve, reject) => {
      if (signal!.aborted) reject(signal!.reason);
      signal!.addEventListener("abort", () => reject(signal!.reason));
    })) as unknown as typeof globalThis.fetch;
  const clock = { now: () => 0, sleep: async (ms: number) => void waits.push(ms) };
  const branch = createClient({ url: "http://far", fetch, clock, timeoutMs: 1_000, agentId: "a" }).branch({
    sessionId: "s",
  });
  const late = async (asked: Promise<unknown>, ms: number) => {
    const error = (await asked.catch((thrown: unknown) => thrown)) as Error;
    expect(error.message).toContain(`nothing came for ${ms} ms`);
    expect(waits).toEqual([ms]);
    waits.length = 0;
  };
  await late(branch.uncompact(), 1_000);
  await late(branch.compact(), 5_000);
  await late(branch.checkCompaction(), 5_000);
  await late(branch.fork(), 5_000);
});
