import { describe, expect, test } from "vitest";
import { MessageAssembler, type ModelPart, streamModel } from "../models/index.ts";
import { manualClock } from "../testing/clock.ts";
import { type ScriptedModel, scriptedModel } from "./scripted-model.ts";

function ask(model: ScriptedModel, signal = new AbortController().signal, said = "hi") {
  const prompt = [{ role: "user", content: [{ type: "text", text: said }] }] as const;
  return streamModel({ model, prompt, tools: [], settings: {} }, { signal });
}

async function hear(model: ScriptedModel, said?: string) {
  const assembler = new MessageAssembler();
  const parts: ModelPart[] = [];
  for await (const part of ask(model, undefined, said)) {
    assembler.add(part);
    parts.push(part);
  }
  return { assembler, parts };
}

describe("scriptedModel", () => {
  test("says its replies in order, in several deltas, and records its calls", async () => {
    const model = scriptedModel(["Hello you", { text: "Bye" }]);
    const { assembler, parts } = await hear(model);
    expect(assembler.text).toBe("Hello you");
    expect(assembler).toMatchObject({
      isFinished: true,
      finishReason: "stop",
      usage: { inputTokens: 10, outputTokens: 5 },
    });
    expect(parts.filter((part) => part.type === "text-delta").length).toBeGreaterThan(1);
    expect((await hear(model, "again")).assembler.text).toBe("Bye");
    expect(model.calls.map((call) => call.prompt[0]?.content)).toEqual([
      [{ type: "text", text: "hi" }],
      [{ type: "text", text: "again" }],
    ]);
    await expect(hear(model)).rejects.toThrow("no reply for model call 3");
  });

  test("a function finds the reply from the prompt and the number of the call", async () => {
    const model = scriptedModel((prompt, index) => `${prompt.length} ${index}`, { chunks: 1 });
    await hear(model);
    const { assembler, parts } = await hear(model);
    expect(assembler.text).toBe("1 1");
    expect(parts.filter((part) => part.type === "text-delta")).toHaveLength(1);
  });

  test("thinks, speaks and calls, the same in every run", async () => {
    const answer = {
      reasoning: "Let me see.",
      text: "Adding.",
      calls: [
        { name: "add", input: { a: 1 } },
        { name: "raw", input: "{no", id: "mine" },
      ],
    };
    const [first, second] = [await hear(scriptedModel([answer])), await hear(scriptedModel([answer]))];
    expect(first.assembler.content).toEqual([
      { type: "reasoning", text: "Let me see." },
      { type: "text", text: "Adding." },
      { type: "tool-call", toolCallId: "call-1-1", toolName: "add", input: { a: 1 } },
      { type: "tool-call", toolCallId: "mine", toolName: "raw", input: "{no" },
    ]);
    expect(first.assembler.finishReason).toBe("tool-calls");
    expect(second.parts).toEqual(first.parts);
  });

  test("fails before or after it has spoken", async () => {
    const error = new Error("down");
    await expect(hear(scriptedModel([{ error }]))).rejects.toBe(error);
    const said: ModelPart[] = [];
    const reading = (async () => {
      for await (const part of ask(scriptedModel([{ text: "half", error }]))) said.push(part);
    })();
    await expect(reading).rejects.toBe(error);
    expect(said.some((part) => part.type === "text-delta")).toBe(true);
  });

  test("is cut off without a finish part", async () => {
    const { assembler, parts } = await hear(scriptedModel([{ text: "abcdefgh", cutAfter: 4 }]));
    expect(parts).toHaveLength(4);
    expect(assembler).toMatchObject({ text: "abcd", isFinished: false });
  });

  test("waits by the sleep it is given, and stops when it is aborted", async () => {
    const clock = manualClock();
    const control = new AbortController();
    const model = scriptedModel(["hello"], { delayMs: 10, sleep: clock.sleep });
    const iterator = ask(model, control.signal)[Symbol.asyncIterator]();
    const first = iterator.next();
    await new Promise((resolve) => setImmediate(resolve));
    expect(clock.sleeping).toBe(1);
    clock.advance(10);
    expect((await first).value).toMatchObject({ type: "stream-start" });
    const second = iterator.next();
    control.abort("why");
    expect(
      await second.then(
        (result) => result.done,
        (reason) => reason === "why",
      ),
    ).toBe(true);
  });
});
