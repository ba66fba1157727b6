import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import type { ModelPart, ModelRequest } from "./port.ts";
import { streamModel } from "./stream.ts";

interface Watched {
  readonly request: ModelRequest;
  readonly calls: Record<string, unknown>[];
  readonly cancelled: unknown[];
}

/** A model that says the given parts and then nothing more, unless it ends. It ignores signals. */
function watched(
  parts: unknown[],
  { ends = true, more = {}, version = "v4" as "v3" | "v4", opens = Promise.resolve() } = {},
): Watched {
  const calls: Record<string, unknown>[] = [];
  const cancelled: unknown[] = [];
  const stream = () =>
    new ReadableStream({
      start(controller) {
        for (const part of parts) controller.enqueue(part);
        if (ends) controller.close();
      },
      cancel(reason) {
        cancelled.push(reason);
      },
    });
  const model = {
    specificationVersion: version,
    provider: "test",
    modelId: "m",
    async doStream(options: Record<string, unknown>) {
      calls.push(options);
      await opens;
      return { stream: stream() };
    },
  };
  return { request: { model, prompt: [], tools: [], settings: {}, ...more }, calls, cancelled };
}

const parts = [
  { type: "text-delta", id: "1", delta: "a" },
  { type: "text-delta", id: "1", delta: "b" },
];
const never = () => new AbortController().signal;

async function read(stream: AsyncIterable<ModelPart>): Promise<ModelPart[]> {
  const said: ModelPart[] = [];
  for await (const part of stream) said.push(part);
  return said;
}

describe("parts", () => {
  test("come as the provider gives them, the very objects", async () => {
    const { request } = watched(parts);
    const said = await read(streamModel(request, { signal: never() }));
    said.forEach((part, n) => {
      expect(part).toBe(parts[n]);
    });
    expect(said).toHaveLength(2);
  });

  test("the model is called when reading begins, and an answer is read only once", async () => {
    const { request, calls } = watched(parts);
    const stream = streamModel(request, { signal: never() });
    expect(calls).toHaveLength(0);
    await read(stream);
    await expect(read(stream)).rejects.toMatchObject({ code: "invalid_argument" });
    expect(calls).toHaveLength(1);
  });

  test("what doStream throws, at once or later, is thrown by the first read", async () => {
    for (const doStream of [
      () => Promise.reject(new Error("no")),
      () => {
        throw new Error("no");
      },
    ]) {
      const { request } = watched([]);
      const stream = streamModel({ ...request, model: { ...request.model, doStream } }, { signal: never() });
      await expect(read(stream)).rejects.toThrow("no");
    }
  });
});

describe("letting go", () => {
  test("a reader who leaves cancels the provider's stream", async () => {
    const { request, cancelled } = watched(parts, { ends: false });
    for await (const _ of streamModel(request, { signal: never() })) break;
    expect(cancelled).toHaveLength(1);
  });

  test("a stream that is left before it is read calls nobody", async () => {
    const { request, calls } = watched(parts);
    const iterator = streamModel(request, { signal: never() })[Symbol.asyncIterator]();
    await iterator.return?.();
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(calls).toHaveLength(0);
  });

  test("with the signal already aborted, the model is not called and the reason is thrown", async () => {
    const { request, calls } = watched(parts);
    await expect(read(streamModel(request, { signal: AbortSignal.abort("why") }))).rejects.toBe("why");
    expect(calls).toHaveLength(0);
  });

  test("an abort ends the wait for a provider that does not answer, and its late stream is cancelled", async () => {
    let open = () => {};
    const { request, cancelled } = watched(parts, {
      ends: false,
      opens: new Promise<void>((resolve) => (open = resolve)),
    });
    const control = new AbortController();
    const reading = read(streamModel(request, { signal: control.signal }));
    control.abort("why");
    await expect(reading).rejects.toBe("why");
    open();
    await new Promise((resolve) => setImmediate(resolve));
    expect(cancelled).toHaveLength(1);
  });

  test("an abort in mid-stream ends it without a finish part, also when the provider ignores the signal", async () => {
    const { request, cancelled } = watched(parts, { ends: false });
    const control = new AbortController();
    const said: ModelPart[] = [];
    for await (const part of streamModel(request, { signal: control.signal })) {
      said.push(part);
      if (said.length === 2) control.abort("why");
    }
    expect(said).toEqual(parts);
    expect(cancelled).toEqual(["why"]);
  });

  test("a call that is over holds on to nothing of the signal", async () => {
    const { signal } = new AbortController();
    await read(streamModel(watched(parts).request, { signal }));
    for await (const _ of streamModel(watched(parts, { ends: false }).request, { signal })) break;
    const failing = watched(parts, { opens: Promise.reject(new Error("no")) });
    await read(streamModel(failing.request, { signal })).catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

describe("the call", () => {
  const options = async (more: Partial<ModelRequest>, version: "v3" | "v4" = "v4") => {
    const { request, calls } = watched([], { more, version });
    await read(streamModel(request, { signal: never() }));
    return calls[0]!;
  };
  const tool = { type: "function", name: "t", inputSchema: {} } as const;

  test("what is not asked for is not said", async () => {
    expect(Object.keys(await options({})).sort()).toEqual(["abortSignal", "prompt"]);
  });

  test("what settings carry beside is not passed on", async () => {
    const settings = { instructions: "x", tools: { a: 1 }, toolChoice: "none", prompt: [1], temperature: undefined };
    const said = await options({ settings: settings as object });
    expect(Object.keys(said).sort()).toEqual(["abortSignal", "prompt"]);
    expect(said.prompt).toEqual([]);
  });

  test("settings have the specification's names", async () => {
    const settings = {
      temperature: 0.5,
      topP: 0.9,
      topK: 3,
      maxOutputTokens: 10,
      presencePenalty: 1,
      frequencyPenalty: 2,
      seed: 4,
      headers: { a: "b" },
      providerOptions: { p: { x: 1 } },
    };
    const said = await options({ settings: { ...settings, stop: ["END"], reasoning: "low" } });
    expect(said).toMatchObject({ ...settings, stopSequences: ["END"], reasoning: "low" });
    expect(said).not.toHaveProperty("stop");
    expect(await options({ settings: { reasoning: "low" } }, "v3")).not.toHaveProperty("reasoning");
  });

  test("a schema asks for JSON", async () => {
    const responseSchema = { type: "object" };
    expect((await options({ responseSchema })).responseFormat).toEqual({ type: "json", schema: responseSchema });
  });

  test("a conversation with calls in it names a tool, also when there are none any more", async () => {
    const output = { type: "text", value: "3" };
    const result = { type: "tool-result", toolCallId: "1", toolName: "add", output } as const;
    const { tools, toolChoice } = await options({
      prompt: [{ role: "tool", content: [result] }],
      toolChoice: "required",
    });
    expect(tools).toMatchObject([{ type: "function", name: "unavailable" }]);
    expect(toolChoice).toEqual({ type: "none" });
  });

  test("tools are told with the choice among them; without tools there is no choice", async () => {
    const choice = async (toolChoice: ModelRequest["toolChoice"]) =>
      (await options({ tools: [tool], ...(toolChoice ? { toolChoice } : {}) })).toolChoice;
    expect((await options({ tools: [tool] })).tools).toEqual([tool]);
    expect(await choice(undefined)).toBeUndefined();
    expect(await choice("required")).toEqual({ type: "required" });
    expect(await choice({ tool: "t" })).toEqual({ type: "tool", toolName: "t" });
    expect(await options({ toolChoice: "required" })).not.toHaveProperty("toolChoice");
  });
});
