import { expect, test, vi } from "vitest";
import { BoughError } from "../../base/errors.ts";
import type { Store } from "../../log/store.ts";
import { memoryStore } from "../../stores/memory/index.ts";
import { manualClock } from "../../testing/index.ts";
import type { AuditPage } from "../../wire/index.ts";
import { auditStore } from "./place.ts";
import { readAudit } from "./reader.ts";
import { AuditWriter } from "./writer.ts";

const start = Date.UTC(2026, 0, 31, 23, 59, 59);

/** A writer on a store whose appends go as `append` says. */
function given(append?: (write: () => ReturnType<Store["append"]>) => ReturnType<Store["append"]>) {
  const clock = manualClock(start);
  const store = auditStore(memoryStore({ clock }), "t");
  const wrapped = new Proxy(store, {
    get(target, name: keyof Store) {
      if (name === "append" && append) {
        return (...given: Parameters<Store["append"]>) => append(() => target.append(...given));
      }
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const warned: string[] = [];
  const writer = new AuditWriter({ store: wrapped, clock, warn: (message) => warned.push(message) });
  const add = (count: number) => {
    for (let i = 0; i < count; i++) writer.add({ at: clock.now(), action: "ready", requestId: `${i}` });
  };
  const readAll = async (): Promise<AuditPage["records"]> =>
    (await readAudit(store, { order: "oldest", limit: 5000 })).records;
  return { clock, writer, warned, add, readAll };
}

const unavailable = () => new BoughError("store_unavailable", "Gone.", { retryable: true });

test("what finds no room while the store is away is counted, and the count is recorded (Writer-2, Writer-1)", async () => {
  let isAway = true;
  const { writer, add, readAll, warned, clock } = given((write) => (isAway ? Promise.reject(unavailable()) : write()));
  add(1);
  await writer.flush();
  add(2500);
  await writer.flush();
  expect(warned).toHaveLength(1);
  expect(await readAll()).toEqual([]);
  isAway = false;
  // Nothing is handed over any more: it is tried again by itself.
  clock.advance(60_000);
  await vi.waitFor(async () => expect(await readAll()).toHaveLength(2001 + 1));
  const records = await readAll();
  const lost = records.filter(({ action }) => action === "audit.lost");
  expect(lost).toMatchObject([{ lost: 500, reason: "full" }]);
});

test("a batch whose answer was lost is recorded once (Writer-2)", async () => {
  let isLost = true;
  const { writer, add, readAll } = given(async (write) => {
    const appended = await write();
    if (!isLost) return appended;
    isLost = false;
    throw unavailable();
  });
  add(3);
  await writer.flush();
  add(2);
  await writer.flush();
  expect((await readAll()).map(({ requestId }) => requestId)).toEqual(["0", "1", "2", "0", "1"]);
});

test("records are written a moment later by themselves, each day's to a log of its own", async () => {
  const { writer, add, readAll, clock } = given();
  add(1);
  clock.advance(500);
  await vi.waitFor(async () => expect(await readAll()).toHaveLength(1));
  clock.advance(1000);
  add(1);
  await writer.flush();
  expect((await readAll()).map(({ id }) => id)).toEqual(["2026-01-31.2", "2026-02-01.2"]);
});

test("what can't be written when the server stops is told", async () => {
  const { writer, add, warned } = given(() => Promise.reject(unavailable()));
  add(7);
  writer.skip();
  await writer.close();
  expect(warned.at(-1)).toContain("8 audit records");
});

test("a day that was removed meanwhile is made again", async () => {
  const clock = manualClock(start);
  const store = auditStore(memoryStore({ clock }), "t");
  const writer = new AuditWriter({ store, clock, warn: () => {} });
  writer.add({ at: start, action: "ready" });
  await writer.flush();
  await store.deleteSession("2026-01-31");
  writer.add({ at: start, action: "health" });
  await writer.flush();
  await writer.flush();
  expect((await readAudit(store, {})).records).toMatchObject([{ action: "health" }]);
});
