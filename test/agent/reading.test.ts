// How a run is read: its events once, its failure by somebody or by the logger, and what its signal says.

import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { type BoughError, defineTool, type LanguageModel, type Middleware } from "../../src/index.ts";
import { eventsOf, given, s, settle, until } from "./kit.ts";

describe("the events of a run", () => {
  test("are gone once its text is asked for, and whoever iterates then is told so", async () => {
    const { agent } = await given(["one", "two"]);
    const over = agent.run("Go", s);
    expect(await over.text()).toBe("one");
    await expect(eventsOf(over)).rejects.toThrow("The events of this run were discarded by text() or discardEvents().");
    const running = agent.run("Go", s);
    const text = running.text();
    await expect(eventsOf(running)).rejects.toMatchObject({ code: "invalid_argument" });
    expect(await text).toBe("two");
  });

  test("are there when its result was awaited first, or its text while it was iterated", async () => {
    const { agent } = await given(["one", "two"]);
    const awaited = agent.run("Go", s);
    await awaited.result;
    expect((await eventsOf(awaited)).at(-1)).toMatchObject({ type: "run-end" });
    const iterated = agent.run("Go", s);
    const events = eventsOf(iterated);
    expect(await iterated.text()).toBe("two");
    expect((await events).at(-1)).toMatchObject({ type: "run-end" });
  });
});

describe("the failure of a run", () => {
  async function failing() {
    const logger = { warn: vi.fn() };
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    onTestFinished(() => void process.off("unhandledRejection", unhandled));
    const { agent } = await given([{ error: new Error("gone") }, { error: new Error("gone") }], {
      logger,
      retry: { attempts: 1 },
    });
    return { agent, logger, unhandled };
  }

  test("that nobody reads reaches the logger once, and is no unhandled rejection", async () => {
    const { agent, logger, unhandled } = await failing();
    agent.run("Go", s);
    await until(() => logger.warn.mock.calls.length > 0);
    agent.run("Go", { sessionId: "nowhere" });
    await until(() => logger.warn.mock.calls.length > 1);
    await settle();
    const errors = logger.warn.mock.calls.map(([, error]) => (error as BoughError).code);
    expect(errors).toEqual(["model_failed", "session_not_found"]);
    expect(unhandled).not.toHaveBeenCalled();
  });

  test("that is read reaches its reader and nobody else", async () => {
    const { agent, logger, unhandled } = await failing();
    expect(await agent.run("Go", s).result).toMatchObject({ status: "failed" });
    await expect(agent.run("Go", s).text()).rejects.toThrow("gone");
    await expect(eventsOf(agent.run("Go", { sessionId: "nowhere" }))).rejects.toThrow("nowhere");
    await settle();
    expect(logger.warn).not.toHaveBeenCalled();
    expect(unhandled).not.toHaveBeenCalled();
  });
});

describe("the reason of a signal", () => {
  const isAbort = (reason: unknown) => reason instanceof Error && reason.name === "AbortError";

  test("is an error of the name AbortError, for tools, hooks and models", async () => {
    const reasons: unknown[] = [];
    const note = (signal: AbortSignal) => signal.addEventListener("abort", () => reasons.push(signal.reason));
    const wait = defineTool({
      description: "Waits.",
      input: z.object({}),
      execute: (_, { signal }) => {
        note(signal);
        return new Promise<never>(() => {});
      },
    });
    const hooks: Middleware = { name: "noting", beforeIteration: ({ signal }) => note(signal) };
    const model: LanguageModel = {
      specificationVersion: "v4",
      provider: "test",
      modelId: "test",
      async doStream({ abortSignal }) {
        note(abortSignal);
        const call = { type: "tool-call", toolCallId: "c", toolName: "wait", input: "{}" };
        return { stream: ReadableStream.from([call, { type: "finish", usage: {}, finishReason: "tool-calls" }]) };
      },
    };
    const { agent } = await given([], { model, tools: { wait }, middleware: [hooks] });
    const own = new AbortController();
    const ways: ((run: ReturnType<typeof agent.run>) => unknown)[] = [
      (run) => run.interrupt("enough"),
      (run) => run.park(),
      () => own.abort("mine"),
    ];
    for (const [i, stop] of ways.entries()) {
      reasons.length = 0;
      const run = i === 1 ? agent.run("Go", s) : agent.run("Go", { ...s, signal: own.signal });
      await eventsOf(run, (event) => void (event.type === "tool-start" && stop(run)));
      expect(reasons).toHaveLength(3);
      expect(reasons.every(isAbort), String(reasons)).toBe(true);
      if (i === 0) expect(String(reasons[0])).toBe("AbortError: The run was interrupted: enough.");
      if (i === 2) expect((reasons[0] as Error).cause).toBe("mine");
    }
  });

  test("is one after the run is over, too", async () => {
    let left: AbortSignal | undefined;
    const keeping: Middleware = {
      name: "keeping",
      beforeIteration({ signal }) {
        left = signal;
      },
    };
    const { agent } = await given(["ok"], { middleware: [keeping] });
    await agent.run("Go", s).result;
    expect(left).toMatchObject({ aborted: true });
    expect(isAbort(left!.reason)).toBe(true);
  });
});
