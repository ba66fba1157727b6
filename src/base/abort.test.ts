import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { untilAborted } from "./abort.ts";

test("gives what the work gives, and leaves no listener behind", async () => {
  const { signal } = new AbortController();
  expect(await untilAborted(signal, Promise.resolve(1))).toBe(1);
  await expect(untilAborted(signal, Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("gives the signal's reason when it aborts, or has aborted, whatever the work does", async () => {
  const controller = new AbortController();
  const waiting = untilAborted(controller.signal, new Promise(() => {}));
  controller.abort("enough");
  await expect(waiting).rejects.toBe("enough");
  await expect(untilAborted(controller.signal, new Promise(() => {}))).rejects.toBe("enough");
});

test("waits for whatever can be awaited, not only for promises", async () => {
  // biome-ignore lint/suspicious/noThenProperty: it is what this is about
  const query = { then: (done: (value: number) => void) => queueMicrotask(() => done(7)) };
  expect(await untilAborted(new AbortController().signal, query as PromiseLike<number>)).toBe(7);
});
