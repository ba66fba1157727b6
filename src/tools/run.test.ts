import { describe, expect, test } from "vitest";
import { contextFor, hastyClock, prepared } from "../../test/tools/kit.ts";
import { BoughError } from "../base/errors.ts";
import type { ToolOutput } from "../events/index.ts";
import { manualClock } from "../testing/clock.ts";
import { type AnyTool, defineTool, type RunToolOptions, runTool, type ToolContext } from "./index.ts";

/** How long a poll may take on a busy machine. */
const patient = { timeout: 30_000 };
const input = { type: "object" } as const;

/** Runs a tool of this body, in a context and on a clock that the test may bring along. */
async function run(
  tool: Omit<AnyTool, "input">,
  {
    context = contextFor(),
    clock = hastyClock(),
    random = () => 0,
    ...options
  }: Partial<RunToolOptions & { context: ToolContext }> = {},
): Promise<ToolOutput> {
  return runTool(await prepared({ ...tool, input }), { a: 1 }, context, { clock, random, ...options });
}

const never = () => new Promise<never>(() => {});

function failing(times: number, error: unknown = new Error("broken")) {
  let left = times;
  return () => {
    if (left-- > 0) throw error;
    return "fine";
  };
}

describe("the output", () => {
  test("is text for a text, JSON for what is JSON, and null for nothing", async () => {
    expect(await run({ execute: () => "hello" })).toEqual({ type: "text", value: "hello" });
    expect(await run({ execute: async () => ({ a: [1, null] }) })).toEqual({ type: "json", value: { a: [1, null] } });
    expect(await run({ execute: () => undefined })).toEqual({ type: "json", value: null });
  });

  test("is an error with the message of what was thrown", async () => {
    const execute = async () => {
      throw new TypeError("no such city");
    };
    expect(await run({ execute })).toEqual({ type: "error-text", value: "no such city" });
  });

  test("is not what a result looks like, only what toOutput says", async () => {
    const result = { type: "execution-denied", reason: "I look like an output" };
    expect(await run({ execute: () => result })).toEqual({ type: "json", value: result });
    expect(await run({ execute: () => 1, toOutput: () => result })).toEqual(result);
  });

  test("is told to toOutput with the call it belongs to", async () => {
    const toOutput = (result: unknown, call: unknown) => ({ type: "json", value: [result, call] });
    expect(await run({ execute: () => 7, toOutput })).toEqual({
      type: "json",
      value: [7, { callId: "call-1", input: { a: 1 } }],
    });
  });

  test("says so when toOutput fails, and the tool is not run again (ToolsRun-3)", async () => {
    let runs = 0;
    const output = await run({
      execute: () => ++runs,
      toOutput: () => {
        throw new Error("no words");
      },
      retry: { attempts: 3 },
    });
    expect(output).toEqual({
      type: "error-text",
      value: "The tool ran, but its result can't be used: no words",
    });
    expect(runs).toBe(1);
  });

  test("is a copy: what a tool does to its result later changes nothing", async () => {
    const result = { list: [1] };
    const output = await run({ execute: () => result });
    result.list.push(2);
    expect(output.value).toEqual({ list: [1] });
  });

  test("says that nobody runs a tool without a body", async () => {
    expect(await run({})).toMatchObject({ type: "error-text", value: expect.stringContaining("can't be run here") });
  });
});

describe("a generator", () => {
  test("shows what it yields, and the last value is the result", async () => {
    const context = contextFor();
    const execute = async function* () {
      yield { step: 1 };
      yield { step: 2 };
    };
    expect(await run({ execute }, { context })).toEqual({ type: "json", value: { step: 2 } });
    expect(context.shown).toEqual([{ step: 1 }, { step: 2 }]);
  });

  test("has what it returns as its result, when it returns something", async () => {
    const execute = async function* () {
      yield "half";
      return "whole";
    };
    expect(await run({ execute })).toEqual({ type: "text", value: "whole" });
  });

  test("shows also what is not JSON", async () => {
    const context = contextFor();
    const execute = async function* () {
      yield 10n;
    };
    await run({ execute }, { context });
    expect(context.shown).toEqual(["10"]);
  });

  test("is closed and shows nothing more after an abort", async () => {
    const stop = new AbortController();
    const context = contextFor({ signal: stop.signal });
    let goOn = () => {};
    let isClosed = false;
    const execute = async function* () {
      try {
        yield 1;
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
        yield 2;
      } finally {
        isClosed = true;
      }
    };
    const running = run({ execute }, { context });
    await expect.poll(() => context.shown, patient).toEqual([1]);
    stop.abort();
    await expect(running).rejects.toMatchObject({ code: "aborted" });
    goOn();
    await expect.poll(() => isClosed, patient).toBe(true);
    expect(context.shown).toEqual([1]);
  });
});

describe("retries", () => {
  test("come as often as the tool says, after waits that double", async () => {
    const clock = hastyClock();
    const notices: unknown[] = [];
    const output = await run(
      { execute: failing(3), retry: { attempts: 4 } },
      { clock, onRetry: ({ error, ...notice }) => notices.push({ ...notice, message: (error as Error).message }) },
    );
    expect(output).toEqual({ type: "text", value: "fine" });
    expect(clock.slept).toEqual([1000, 2000, 4000]);
    expect(notices).toEqual(
      [1000, 2000, 4000].map((delayMs, i) => ({ attempt: i + 1, attempts: 4, delayMs, message: "broken" })),
    );
  });

  test("wait no longer than thirty seconds, and up to a quarter shorter", async () => {
    const clock = hastyClock();
    await run({ execute: failing(3), retry: { attempts: 3, delayMs: 20_000 } }, { clock, random: () => 0.8 });
    expect(clock.slept).toEqual([16_000, 24_000]);
  });

  test("end with the last error, which is told once", async () => {
    const told: unknown[] = [];
    let runs = 0;
    const execute = () => {
      throw new Error(`no ${++runs}`);
    };
    const output = await run({ execute, retry: { attempts: 3 } }, { onError: (error) => void told.push(error) });
    expect(output).toEqual({ type: "error-text", value: "no 3" });
    expect(told).toEqual([new Error("no 3")]);
  });

  test("do not come for invalid arguments, or for errors that the tool does not name", async () => {
    const refused = new BoughError("invalid_argument", "not this");
    expect(await run({ execute: failing(1, refused), retry: { attempts: 2 } })).toMatchObject({ value: "not this" });
    const retry = { attempts: 2, when: (error: unknown) => (error as Error).message === "busy" };
    expect(await run({ execute: failing(1), retry })).toMatchObject({ value: "broken" });
    expect(await run({ execute: failing(1, new Error("busy")), retry })).toMatchObject({ value: "fine" });
  });

  test("are known to the tool by the attempt's number", async () => {
    const seen: number[] = [];
    const execute = (_: unknown, { attempt }: ToolContext) => {
      seen.push(attempt);
      throw new Error("again");
    };
    await run({ execute, retry: { attempts: 3 } }, { context: contextFor({ attempt: 2 }) });
    expect(seen).toEqual([2, 3, 4]);
  });

  test("end with an abort during the wait", async () => {
    const stop = new AbortController();
    const clock = manualClock();
    let runs = 0;
    const execute = () => {
      runs++;
      throw new Error("again");
    };
    const context = contextFor({ signal: stop.signal });
    const running = run({ execute, retry: { attempts: 3 } }, { context, clock });
    await expect.poll(() => clock.sleeping, patient).toBe(1);
    stop.abort();
    await expect(running).rejects.toMatchObject({ code: "aborted" });
    expect(runs).toBe(1);
  });

  test("go on with the error's result when the one who is told of it throws", async () => {
    const onError = async () => {
      throw new Error("in the hook");
    };
    expect(await run({ execute: failing(1) }, { onError })).toEqual({ type: "error-text", value: "broken" });
  });
});

describe("a timeout", () => {
  test("ends an attempt that does not answer, also when the tool ignores its signal (ToolsRun-2)", async () => {
    const clock = manualClock();
    let signal: AbortSignal | undefined;
    const execute = (_: unknown, context: ToolContext) => {
      signal = context.signal;
      return never();
    };
    const running = run({ execute, timeoutMs: 50 }, { clock });
    await expect.poll(() => clock.sleeping, patient).toBe(1);
    clock.advance(50);
    expect(await running).toEqual({
      type: "error-text",
      value: 'The tool "probe" did not answer within 50 ms.',
    });
    expect(signal?.aborted).toBe(true);
  });

  test("is each attempt's own, and is retried", async () => {
    const clock = manualClock();
    const signals: AbortSignal[] = [];
    const execute = (_: unknown, { signal, attempt }: ToolContext) => {
      signals.push(signal);
      return attempt === 1 ? never() : "in time";
    };
    const running = run({ execute, timeoutMs: 50, retry: { attempts: 2, delayMs: 0 } }, { clock });
    await expect.poll(() => clock.sleeping, patient).toBe(1);
    clock.advance(50);
    expect(await running).toEqual({ type: "text", value: "in time" });
    expect(signals.map((signal) => signal.aborted)).toEqual([true, false]);
  });

  test("leaves no sleeper behind when the tool is in time", async () => {
    const clock = manualClock();
    await run({ execute: () => 1, timeoutMs: 50 }, { clock });
    expect(clock.sleeping).toBe(0);
  });
});

describe("an abort", () => {
  test("is thrown at once, whatever the tool does, with its reason as the cause (ToolsRun-1, ToolsRun-2)", async () => {
    const stop = new AbortController();
    const running = run({ execute: never }, { context: contextFor({ signal: stop.signal }) });
    stop.abort("taken over");
    await expect(running).rejects.toMatchObject({ code: "aborted", cause: "taken over" });
  });

  test("reaches the tool, and wins over what the tool answers to it", async () => {
    const stop = new AbortController();
    const execute = (_: unknown, { signal }: ToolContext) =>
      new Promise((resolve) => signal.addEventListener("abort", () => resolve(`told: ${signal.reason}`)));
    const running = run({ execute, retry: { attempts: 5 } }, { context: contextFor({ signal: stop.signal }) });
    await Promise.resolve();
    stop.abort("enough");
    await expect(running).rejects.toMatchObject({ code: "aborted" });
  });

  test("before the call keeps the tool from running", async () => {
    let runs = 0;
    const context = contextFor({ signal: AbortSignal.abort() });
    await expect(run({ execute: () => ++runs }, { context })).rejects.toMatchObject({ code: "aborted" });
    expect(runs).toBe(0);
  });

  test("does not wait for toOutput", async () => {
    const stop = new AbortController();
    let isAsked = false;
    const toOutput = () => {
      isAsked = true;
      return never();
    };
    const running = run({ execute: () => 1, toOutput }, { context: contextFor({ signal: stop.signal }) });
    await expect.poll(() => isAsked, patient).toBe(true);
    stop.abort();
    await expect(running).rejects.toMatchObject({ code: "aborted" });
  });

  test("after the end finds nobody listening", async () => {
    const stop = new AbortController();
    const { signal } = stop;
    let listening = 0;
    const counted = new Proxy(signal, {
      get(target, key) {
        if (key === "addEventListener") listening++;
        if (key === "removeEventListener") listening--;
        const value = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    await run({ execute: () => 1 }, { context: contextFor({ signal: counted }) });
    expect(listening).toBe(0);
  });
});

test("a tool may take its context apart and keep the pieces", async () => {
  const context = contextFor();
  const tool = defineTool({
    input,
    execute: async (_, { ask, emit, progress }) => {
      emit("note", { n: 1 });
      progress("half");
      return ask("which?");
    },
  });
  expect(await run(tool, { context })).toEqual({ type: "text", value: "answer to which?" });
  expect(context.emitted).toEqual([["note", { n: 1 }]]);
  expect(context.shown).toEqual(["half"]);
});
