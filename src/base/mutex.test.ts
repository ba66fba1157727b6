import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KeyedMutex } from "./mutex.ts";

describe("KeyedMutex", () => {
  test("work of one key runs one at a time in the order asked; keys don't wait for each other", async () => {
    const jobs = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 12 });
    const property = fc.asyncProperty(fc.scheduler(), jobs, async (scheduler, keys) => {
      const mutex = new KeyedMutex();
      const active = new Map<string, number>();
      const begun: { key: string; i: number }[] = [];
      const all = keys.map((key, i) =>
        mutex.run(key, async () => {
          active.set(key, (active.get(key) ?? 0) + 1);
          expect(active.get(key)).toBe(1);
          begun.push({ key, i });
          await scheduler.schedule(Promise.resolve());
          active.set(key, 0);
          return i;
        }),
      );
      expect(await scheduler.waitFor(Promise.all(all))).toEqual(keys.map((_, i) => i));
      for (const key of keys) {
        const order = begun.filter((each) => each.key === key).map((each) => each.i);
        expect(order).toEqual([...order].sort((a, b) => a - b));
      }
    });
    await fc.assert(property);
  });

  test("a key that never finishes holds up nobody else", async () => {
    const mutex = new KeyedMutex();
    void mutex.run("stuck", () => new Promise(() => {}));
    expect(await mutex.run("free", async () => "done")).toBe("done");
  });

  test("a failure reaches its caller only, and the next one runs", async () => {
    const mutex = new KeyedMutex();
    const failing = mutex.run("a", async () => {
      throw new Error("mine");
    });
    const throwing = mutex.run("a", () => {
      throw new Error("at once");
    });
    const next = mutex.run("a", async () => "next");
    await expect(failing).rejects.toThrow("mine");
    await expect(throwing).rejects.toThrow("at once");
    expect(await next).toBe("next");
  });

  test("work asked for while other work of the key runs comes after it", async () => {
    const mutex = new KeyedMutex();
    const order: string[] = [];
    let inner: Promise<unknown> | undefined;
    await mutex.run("a", async () => {
      inner = mutex.run("a", async () => order.push("inner"));
      await Promise.resolve();
      order.push("outer");
    });
    await inner;
    expect(order).toEqual(["outer", "inner"]);
  });
});
