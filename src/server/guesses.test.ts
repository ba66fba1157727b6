import { expect, test } from "vitest";
import type { Authenticate } from "./auth.ts";
import { Guesses, networkOf } from "./guesses.ts";
import { RateLimit } from "./rate.ts";

const limited = expect.objectContaining({ problem: expect.objectContaining({ status: 429 }) });
const requestWith = (key: string) => new Request("http://localhost/", { headers: { "x-api-key": key } });

function given(perMinute: number) {
  const clock = { now: 0, lookups: 0 };
  const good = new Set(["good"]);
  const guesses = new Guesses({ perMinute, now: () => clock.now });
  const authenticate: Authenticate = async (request) => {
    clock.lookups++;
    const key = request.headers.get("x-api-key")!;
    if (key === "broken") throw new Error("down");
    return good.has(key) ? { tenant: "t", scopes: [] } : undefined;
  };
  const ask = (key: string, address = "192.0.2.1") => guesses.limit(requestWith(key), address, authenticate);
  return { clock, good, ask };
}

test("Guesses-1: an address that guesses too often is refused without a lookup, until time has passed", async () => {
  const { clock, ask } = given(60);
  for (let i = 0; i < 60; i++) expect(await ask(`guess ${i}`)).toBeUndefined();
  await expect(ask("guess")).rejects.toEqual(limited);
  await expect(ask("good")).rejects.toEqual(limited);
  expect(clock.lookups).toBe(60);
  clock.now += 1000;
  expect(await ask("good")).toBeDefined();
});

test("Guesses-1: guesses at the same time are no more than guesses in a row", async () => {
  const { clock, ask } = given(10);
  await Promise.allSettled(Array.from({ length: 50 }, (_, i) => ask(`guess ${i}`)));
  expect(clock.lookups).toBe(10);
});

test("Guesses-2: other addresses, and credentials that were accepted before, get in", async () => {
  const { good, ask } = given(5);
  expect(await ask("good")).toBeDefined();
  for (let i = 0; i < 5; i++) await ask(`guess ${i}`);
  expect(await ask("good")).toBeDefined();
  expect(await ask("guess", "192.0.2.2")).toBeUndefined();
  good.delete("good");
  expect(await ask("good")).toBeUndefined();
  await expect(ask("good")).rejects.toEqual(limited);
});

test("a credential that could not be looked up is no guess", async () => {
  const { ask } = given(2);
  for (let i = 0; i < 10; i++) await expect(ask("broken")).rejects.toThrow("down");
  expect(await ask("good")).toBeDefined();
});

test("Guesses-3: no more addresses are remembered than there is room for, and the newest are", () => {
  const limit = new RateLimit({ perSecond: 1, burst: 1, now: () => 0 });
  for (let i = 0; i < 30_000; i++) limit.take(`${i}`);
  expect(limit.size).toBe(10_000);
  expect(() => limit.take("29999")).toThrow(limited);
  limit.take("0");
});

test.each([
  [undefined, "unknown"],
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
  ["2001:db8:1:2::9", "2001:db8:1:2"],
  ["2001:db8::9", "2001:db8:0:0"],
  ["fe80::1%eth0", "fe80:0:0:0"],
  ["::1", "0:0:0:0"],
])("the network of %s is %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
