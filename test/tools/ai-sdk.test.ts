// Tools as the AI SDK and its providers make them, run as they are.

import { anthropic } from "@ai-sdk/anthropic";
import { openai } from "@ai-sdk/openai";
import { dynamicTool, jsonSchema, type ModelMessage, tool } from "ai";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { runTool, type Tool, toolSpec } from "../../src/tools/index.ts";
import { contextFor, hastyClock, prepared } from "./kit.ts";

const city = z.object({ city: z.string() });

async function run(made: Tool, input: unknown, context = contextFor()) {
  return runTool(made, input, context, { clock: hastyClock(), random: () => 0 });
}

describe("a tool() of the AI SDK", () => {
  test("gives its description, its schema and its result", async () => {
    const weather = await prepared(
      tool({ description: "Weather.", inputSchema: city, execute: async (input) => ({ sunny: input.city }) }),
    );
    expect(toolSpec(weather)).toMatchObject({
      type: "function",
      description: "Weather.",
      inputSchema: { properties: { city: { type: "string" } } },
    });
    expect(await weather.parse({ city: 1 })).toMatchObject({ problem: expect.stringContaining("- city: ") });
    expect(await run(weather, { city: "Rome" })).toEqual({ type: "json", value: { sunny: "Rome" } });
  });

  test("gets the options it knows: the call's id, the messages and a signal", async () => {
    let seen: { toolCallId: string; messages: ModelMessage[]; abortSignal?: AbortSignal } | undefined;
    const probe = await prepared(
      tool({
        inputSchema: city,
        execute: async (_, options) => {
          seen = options;
        },
      }),
    );
    const message = { id: "m", turnId: "t", createdAt: 0, role: "user", content: "hi" } as const;
    await run(probe, {}, contextFor({ callId: "call-7", messages: [message] }));
    expect(seen).toMatchObject({ toolCallId: "call-7", messages: [message] });
    expect(seen?.abortSignal).toBeInstanceOf(AbortSignal);
  });

  test("makes its own output with toModelOutput", async () => {
    const picture = await prepared(
      tool({
        inputSchema: city,
        execute: async () => "QUJD",
        toModelOutput: ({ output, input, toolCallId }) => ({
          type: "content",
          value: [
            { type: "text", text: `${toolCallId} ${input.city}` },
            { type: "image-data", data: output, mediaType: "image/png" },
          ],
        }),
      }),
    );
    expect(await run(picture, { city: "Rome" })).toEqual({
      type: "content",
      value: [
        { type: "text", text: "call-1 Rome" },
        { type: "file", data: { type: "data", data: "QUJD" }, mediaType: "image/png" },
      ],
    });
  });

  test("shows what its generator yields", async () => {
    const context = contextFor();
    const slow = await prepared(
      tool({
        inputSchema: city,
        async *execute() {
          yield { status: "looking" };
          yield { status: "found" };
        },
      }),
    );
    expect(await run(slow, {}, context)).toEqual({ type: "json", value: { status: "found" } });
    expect(context.shown).toEqual([{ status: "looking" }, { status: "found" }]);
  });

  test("asks for permission where it needs approval", async () => {
    const execute = async () => 1;
    expect((await prepared(tool({ inputSchema: city, execute, needsApproval: true }))).permission).toBe(true);
    const far = await prepared(
      tool({
        inputSchema: city,
        execute,
        needsApproval: async (input, { messages }) => messages.length === 0 && input.city !== "here",
      }),
    );
    const rule = far.permission as (input: unknown) => Promise<boolean>;
    expect([await rule({ city: "far" }), await rule({ city: "here" })]).toEqual([true, false]);
  });

  test("may be given Bough's own words as well", async () => {
    const pay = { ...tool({ inputSchema: city, execute: async () => 1 }), effect: "once", timeoutMs: 9 };
    expect(await prepared(pay)).toMatchObject({ effect: "once", timeoutMs: 9 });
  });

  test("may describe itself with a function, have a JSON Schema, and be dynamic or the client's", async () => {
    const described = tool({ description: () => "Made.", inputSchema: city, execute: async () => 1 });
    expect(await prepared(described)).toMatchObject({ description: "Made." });
    const schema = { type: "object", properties: { n: { type: "number" } } } as const;
    const loose = await prepared(dynamicTool({ inputSchema: jsonSchema(schema), execute: async (input) => input }));
    expect(loose.inputSchema).toEqual(schema);
    expect(await run(loose, { n: 1 })).toEqual({ type: "json", value: { n: 1 } });
    const onClient = await prepared(tool({ inputSchema: city, outputSchema: z.string() }));
    expect(onClient.execute).toBeUndefined();
  });
});

describe("a provider's tool", () => {
  test("that the provider runs is told by its id and arguments", async () => {
    const search = await prepared(openai.tools.webSearch({ searchContextSize: "low" }));
    expect(toolSpec(search)).toEqual({
      type: "provider",
      id: "openai.web_search",
      name: "probe",
      args: expect.objectContaining({ searchContextSize: "low" }),
    });
    expect(search.execute).toBeUndefined();
  });

  test("that runs here is told by its id, and its input is checked", async () => {
    const bash = await prepared(anthropic.tools.bash_20250124({ execute: async ({ command }) => `ran ${command}` }));
    expect(toolSpec(bash)).toMatchObject({ type: "provider", id: "anthropic.bash_20250124" });
    expect(await bash.parse({ command: 5 })).toMatchObject({ problem: expect.stringContaining("- command: ") });
    expect(await run(bash, { command: "ls" })).toEqual({ type: "text", value: "ran ls" });
  });
});
