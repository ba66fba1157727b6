import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../../src/base/json.ts";
import {
  type Answer,
  errorLimits,
  type IterationLimitOptions,
  iterationLimit,
  repeatedCalls,
} from "../../src/middleware/index.ts";
import { FakeRun, fakeTool, nothingKept } from "./fake-run.ts";

describe("iterationLimit", () => {
  /** Iterations of one run, until one is stopped. */
  async function iterate(run: FakeRun, options: IterationLimitOptions, from = 1): Promise<number> {
    const { beforeIteration } = iterationLimit(options);
    for (let iteration = from; iteration < 100; iteration++) {
      await beforeIteration?.(run.iteration(iteration));
      if (run.stopped.length > 0) return iteration - 1;
    }
    return 100;
  }

  test("a turn makes 10 model calls, and is stopped before the next", async () => {
    const run = new FakeRun();
    expect(await iterate(run, {})).toBe(10);
    expect(run.limits).toEqual([["iterations", 10]]);
    expect(run.stopped).toEqual(["iteration-limit"]);
    expect(run.asked).toEqual([]);
  });

  test("a person may let it go on, by a number or by the extension", async () => {
    const answers: JsonObject[] = [{ approved: true }, { approved: true, iterations: 5 }, { approved: false }];
    const run = new FakeRun({ answer: () => answers.shift()! });
    expect(await iterate(run, { max: 4, onLimit: "ask", extension: 2 })).toBe(11);
    expect(run.asked).toEqual([
      { kind: "continuation", key: "4", request: { iteration: 5, limit: 4 } },
      { kind: "continuation", key: "6", request: { iteration: 7, limit: 6 } },
      { kind: "continuation", key: "11", request: { iteration: 12, limit: 11 } },
    ]);
    expect(run.limits.map(([, limit]) => limit)).toEqual([4, 6, 11]);
  });

  test("an answer is used once for all its iterations", async () => {
    const run = new FakeRun({ answer: ({ key }) => ({ approved: key === "2", iterations: 3 }) });
    expect(await iterate(run, { max: 2, onLimit: "ask" })).toBe(5);
    expect(run.asked).toHaveLength(2);
  });

  test("a run that takes the turn up counts on with the answers that were given", async () => {
    const kept = nothingKept();
    const answer = ({ key }: { key?: string }) => ({ approved: key !== "8" });
    expect(await iterate(new FakeRun({ kept, answer }), { max: 2, onLimit: "ask" })).toBe(8);
    kept.answers.delete("continuation  8");
    const resumed = new FakeRun({ kept, answer, resumed: true });
    expect(await iterate(resumed, { max: 2, onLimit: "ask" }, 7)).toBe(8);
    expect(resumed.asked.map(({ key }) => key)).toEqual(["8"]);
  });

  test("a run that takes the turn up far behind several limits asks about each of them first", async () => {
    const run = new FakeRun({ answer: ({ key }) => ({ approved: key === "2" }), resumed: true });
    expect(await iterate(run, { max: 2, onLimit: "ask" }, 7)).toBe(6);
    expect(run.asked.map(({ key }) => key)).toEqual(["2", "5"]);
  });

  test.each<[string, JsonObject | Answer]>([
    ["no answer", { answered: false, reason: "expired" }],
    ["no clear answer", { approved: "yes" }],
    ["no iterations", { approved: true, iterations: 0 }],
  ])("%s is no", async (_, answer) => {
    const run = new FakeRun({ answer: () => answer });
    expect(await iterate(run, { max: 1, onLimit: "ask" })).toBe(1);
    expect(run.stopped).toEqual(["iteration-limit"]);
  });

  test("numbers that would never end or never begin are refused", () => {
    for (const options of [{ max: 0 }, { extension: 0 }, { max: 1.5 }, { extension: Number.NaN }]) {
      expect(() => iterationLimit(options)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    }
  });
});

describe("errorLimits", () => {
  const kinds: Record<string, string> = { e: "error-text", j: "error-json", d: "execution-denied", ".": "text" };

  /** Batches of outputs, one letter each; returns the batch after which the turn was stopped. */
  async function feed(batches: string[], options: Parameters<typeof errorLimits>[0] = {}) {
    const run = new FakeRun();
    const { afterTools } = errorLimits(options);
    for (const [i, batch] of batches.entries()) {
      await afterTools?.(
        run.batch(),
        [...batch].map((letter) => ({ type: kinds[letter]! })),
      );
      if (run.stopped.length > 0) return { run, stoppedAfter: i + 1 };
    }
    return { run, stoppedAfter: undefined };
  }

  test.each<[string, string[], number | undefined]>([
    ["five errors in a row, over several batches", ["ee", "j", "ee"], 3],
    ["five errors in a row inside a batch that ends well", [".eeeee."], 1],
    ["four errors in a row", ["eeee.", "eeee"], undefined],
    ["denials and results between", ["eeeed", "ee"], undefined],
    ["twenty errors, never in a row", Array(20).fill("e."), 20],
    ["nineteen errors, never in a row", Array(19).fill("e."), undefined],
  ])("%s", async (_, batches, expected) => {
    const { stoppedAfter, run } = await feed(batches);
    expect(stoppedAfter).toBe(expected);
    expect(run.stopped).toEqual(expected === undefined ? [] : ["error-limit"]);
    expect(run.limits).toHaveLength(run.stopped.length);
  });

  test("the limit that was reached is named", async () => {
    expect((await feed(["ee"], { consecutive: 2 })).run.limits).toEqual([["consecutive-errors", 2]]);
    expect((await feed(["e.e"], { total: 2 })).run.limits).toEqual([["errors", 2]]);
  });

  test("runs are counted apart", async () => {
    const { afterTools } = errorLimits({ consecutive: 2 });
    for (const run of [new FakeRun(), new FakeRun()]) {
      await afterTools?.(run.batch(), [{ type: "error-text" }]);
      expect(run.stopped).toEqual([]);
    }
  });
});

describe("repeatedCalls", () => {
  async function call(run: FakeRun, input: Json, name = "send") {
    const context = run.call(fakeTool({ name }), { input });
    await hook?.(context);
    return context.blocked;
  }
  const { beforeToolCall: hook } = repeatedCalls();

  test("the third same call in a row is not run, and says why; the fourth ends the turn", async () => {
    const run = new FakeRun();
    expect([await call(run, { to: "a" }), await call(run, { to: "a" })]).toEqual([undefined, undefined]);
    expect(await call(run, { to: "a" })).toMatchObject({ type: "error-text", value: expect.stringMatching(/3 times/) });
    expect(run.stopped).toEqual([]);
    expect(await call(run, { to: "a" })).toMatchObject({ type: "error-text" });
    expect(run.stopped).toEqual(["repeated-call"]);
    expect(run.limits).toEqual([["repeated-calls", 3]]);
  });

  test("another input or another tool begins anew", async () => {
    const run = new FakeRun();
    for (let i = 0; i < 4; i++) {
      expect(await call(run, { to: "a" })).toBeUndefined();
      expect(await call(run, { to: "a" })).toBeUndefined();
      expect(await call(run, i % 2 ? { to: "b" } : { to: "a" }, i % 2 ? "send" : "other")).toBeUndefined();
    }
  });

  test("the order of an input's keys makes no difference, the order of a list does", async () => {
    const run = new FakeRun();
    await call(run, { a: 1, b: { c: [1, 2], d: 2 } });
    await call(run, { b: { d: 2, c: [1, 2] }, a: 1 });
    expect(await call(run, { b: { c: [1, 2], d: 2 }, a: 1 })).toBeDefined();
    expect(await call(run, { a: 1, b: { c: [2, 1], d: 2 } })).toBeUndefined();
  });
});
