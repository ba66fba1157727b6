import { expect, test } from "vitest";
import { ByteBudget } from "./bytes.ts";
import { downloadBody } from "./download.ts";

const status = (code: number) => expect.objectContaining({ problem: expect.objectContaining({ status: code }) });

test("Bytes-1: bytes count when they are here, until they are released", () => {
  const budget = new ByteBudget({ perTenant: 100, perProcess: 150 });
  const [one, two, other] = [budget.hold("a"), budget.hold("a"), budget.hold("b")];
  one.check(100);
  expect(budget.size).toBe(0);
  one.take(60);
  expect(() => two.check(60)).toThrow(status(429));
  expect(() => two.take(60)).toThrow(status(429));
  two.take(40);
  other.take(50);
  expect(() => other.take(1)).toThrow(status(503));
  expect(budget.size).toBe(150);
  one.release();
  one.release();
  expect(budget.size).toBe(90);
  other.take(50);
  for (const each of [two, other]) each.release();
  expect(budget.size).toBe(0);
});

test("Bytes-2: one alone fits, however large it is", () => {
  const budget = new ByteBudget({ perTenant: 10, perProcess: 10 });
  const alone = budget.hold("a");
  alone.take(8);
  alone.take(100);
  expect(() => budget.hold("b").take(1)).toThrow(status(503));
  alone.release();
  budget.hold("b").take(1);
});

test("a download is handed out in pieces and gives its bytes up once, however it ends", async () => {
  const bytes = Uint8Array.from({ length: 200_000 }, (_, i) => i % 251);
  let done = 0;
  let open = 0;
  const pieces = async function* () {
    open += 1;
    try {
      for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
    } finally {
      open -= 1;
    }
  };
  const body = (signal = new AbortController().signal, stalledMs?: number) => {
    done = 0;
    return downloadBody(pieces(), { signal, done: () => done++, ...(stalledMs !== undefined && { stalledMs }) });
  };
  expect(Buffer.from(await new Response(body()).arrayBuffer()).equals(bytes)).toBe(true);
  expect(done).toBe(1);

  const reader = body().getReader();
  expect((await reader.read()).value).toHaveLength(65_536);
  expect(done).toBe(0);
  await reader.cancel();
  expect(done).toBe(1);

  const leaving = new AbortController();
  const left = body(leaving.signal).getReader();
  await left.read();
  leaving.abort();
  expect(done).toBe(1);
  expect((await left.read()).done).toBe(true);

  body(AbortSignal.abort());
  expect(done).toBe(1);

  const stalled = body(undefined, 1).getReader();
  await expect(stalled.closed).rejects.toThrow("not read");
  expect(done).toBe(1);

  const failing = async function* () {
    yield bytes;
    throw new Error("The store is away.");
  };
  done = 0;
  const failed = downloadBody(failing(), { signal: new AbortController().signal, done: () => done++ });
  await expect(new Response(failed).arrayBuffer()).rejects.toThrow();
  expect(done).toBe(1);
  expect(open).toBe(0);
});
