import { describe, expect, test } from "vitest";
import type { ReadOptions, Store, StoredEvent } from "../log/store.ts";
import { memoryStore } from "../stores/memory/index.ts";
import { checkLog, checkLogs } from "./check-log.ts";
import { facts, givenFork, givenSession } from "./contract/kit.ts";

type Read = (good: Store, ref: { sessionId: string; branchId: string }, options: ReadOptions) => Promise<StoredEvent[]>;

/** A store with a main branch of six facts and a fork at four, whose reads go through `read`. */
async function given(read: Read = async (good, ref, options) => [...(await good.read(ref, options))]) {
  const good = memoryStore();
  const main = await givenSession(good, { events: facts("e", 6) });
  const fork = await givenFork(good, main, "fork", 4, facts("f", 2));
  const store = new Proxy(good, {
    get(target, key) {
      if (key === "read") return (ref: typeof main, options: ReadOptions = {}) => read(good, ref, options);
      const value = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { store, main, fork };
}

describe("checkLog", () => {
  test("a legal log has no problems", async () => {
    const { store } = await given();
    expect(await checkLogs(store)).toEqual([]);
  });

  test("a branch that is not there is one", async () => {
    const { store, main } = await given();
    expect(await checkLog(store, { ...main, branchId: "x" })).toEqual(['"s"/"x": there is no such branch']);
  });

  const broken: [string, "main" | "fork", Read, RegExp][] = [
    [
      "a gap",
      "main",
      async (good, ref, options) => (await good.read(ref, options)).filter(({ seq }) => seq !== 3),
      /fact 3 has the sequence number 4/,
    ],
    [
      "a missing end",
      "main",
      async (good, ref, options) => (await good.read(ref, options)).filter(({ seq }) => seq < 6),
      /the record says 6, the log has 5 facts/,
    ],
    [
      "an id that is there twice",
      "main",
      async (good, ref, options) => (await good.read(ref, options)).map((event) => ({ ...event, id: "same" })),
      /the id "same" is repeated at 2/,
    ],
    [
      "another log when read backward",
      "main",
      async (good, ref, options) =>
        (await good.read(ref, options)).map((event) => (options.reverse ? { ...event, data: "x" } : event)),
      /read backward the log differs/,
    ],
    [
      "another log in small pages",
      "main",
      async (good, ref, options) =>
        (await good.read(ref, options)).map((event) => (options.limit === 3 ? { ...event, data: "x" } : event)),
      /read in pages of 3 the log differs/,
    ],
    [
      "a fork that differs from its parent",
      "fork",
      async (good, ref, options) =>
        (await good.read(ref, options)).map((event) =>
          ref.branchId === "fork" && event.seq === 2 ? { ...event, data: "x" } : event,
        ),
      /up to 4 it differs from its parent/,
    ],
  ];
  test.each(broken)("%s is found", async (_, branch, read, problem) => {
    const { store, [branch]: ref } = await given(read);
    const problems = await checkLog(store, ref);
    expect(problems).toContainEqual(expect.stringMatching(problem));
    expect(await checkLogs(store)).toEqual(expect.arrayContaining(problems));
  });

  test("a read that goes back does not go on for ever", async () => {
    const { store, main } = await given(async (good, ref) => [...(await good.read(ref, { limit: 1 }))]);
    await expect(checkLog(store, main)).rejects.toThrow(/returned an earlier fact/);
  });
});
