// The real provider packages through the whole agent, against a mock server: whatever the wire does, the status is right,
// the log is legal, and the next turn works.

import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import type { LanguageModel } from "../../src/index.ts";
import { providerModels, providerNames, recorded } from "../models/kit.ts";
import { add, eventsOf, expectLegal, factTypes, given, ofType, s, said, until } from "./kit.ts";

const mock = new LLMock({ port: 0 });
let models: Record<string, LanguageModel>;
beforeAll(async () => {
  await mock.start();
  models = providerModels(mock);
});
beforeEach(() => {
  mock.clearChaos();
  mock.clearFixtures();
  mock.clearRequests();
  mock.on({ userMessage: "next" }, { content: "Next." });
});
afterAll(() => mock.stop());

/** What a provider package sent. */
function parsed(body: unknown): Record<string, unknown> {
  return typeof body === "string" ? JSON.parse(body) : (body as Record<string, unknown>);
}

const long = "word ".repeat(40);
const cut = { chunkSize: 5, latency: 2, truncateAfterChunks: 20 };

describe.each(providerNames)("%s", (name) => {
  /** An agent on the provider; waits of zero between attempts, so that no clock has to be moved. */
  const agentOn = (options: Parameters<typeof given>[1] = {}) =>
    given([], { model: models[name]!, retry: { baseMs: 0 }, ...options });

  /** After whatever happened: the log is legal, and the provider takes what comes of it. */
  async function worksOn({ agent, store }: Awaited<ReturnType<typeof agentOn>>): Promise<void> {
    mock.clearChaos();
    expectLegal((await agent.loadBranch("s")).messages);
    expect(await store.listRuns()).toEqual([]);
    expect(await agent.run("next", s).text()).toBe("Next.");
  }

  test("a streamed answer", async () => {
    const usage = { input_tokens: 11, output_tokens: 4, prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 };
    mock.on({ userMessage: "hello" }, { content: "Hi there, friend!", usage }, { chunkSize: 5 });
    const given = await agentOn();
    const run = given.agent.run("hello", s);
    const events = await eventsOf(run);
    expect(ofType(events, "text-delta").length).toBeGreaterThan(2);
    const result = await run.result;
    expect(result).toMatchObject({ status: "completed", reason: "stop", text: "Hi there, friend!" });
    expect(result.usage).toMatchObject({ inputTokens: 11, outputTokens: 4 });
    expect(await factTypes(given.agent)).toEqual(["turn.started", "message.added", "message.added", "turn.committed"]);
    await worksOn(given);
  });

  test("tools in parallel, their results in order, and the conversation after them", async () => {
    const toolCalls = [
      { id: "call_a", name: "add", arguments: '{"a":1,"b":2}' },
      { id: "call_b", name: "add", arguments: '{"a":3,"b":4}' },
    ];
    mock.on({ userMessage: "sum", hasToolResult: false }, { content: "Adding.", toolCalls });
    mock.on({ userMessage: "sum", hasToolResult: true }, { content: "3 and 7." });
    const given = await agentOn({ tools: { add } });
    const { messages, text } = await given.agent.run("sum", s).result;
    expect(text).toBe("3 and 7.");
    expect(said(messages)).toEqual(["user: sum", "assistant: Adding. add() add()", "tool: 3 7", "assistant: 3 and 7."]);
    await worksOn(given);
  });

  test("a call whose input does not fit is told so, and the model goes on", async () => {
    const toolCalls = [{ id: "call_a", name: "add", arguments: '{"a":"one"}' }];
    mock.on({ userMessage: "sum", hasToolResult: false }, { toolCalls });
    mock.on({ userMessage: "sum", hasToolResult: true }, { content: "Sorry." });
    const given = await agentOn({ tools: { add } });
    expect(await given.agent.run("sum", s).text()).toBe("Sorry.");
    await worksOn(given);
  });

  test("a limit of requests is waited out as long as it says", async () => {
    const failure = { error: { message: "Slow down", type: "rate_limit_error" }, status: 429, retryAfter: 7 };
    mock.on({ userMessage: "busy", sequenceIndex: 0 }, failure);
    mock.on({ userMessage: "busy" }, { content: "Now." });
    const given = await agentOn();
    const run = given.agent.run("busy", s);
    const asleep = given.clock.sleeping;
    const events = await eventsOf(run, async (event) => {
      if (event.type !== "model-retry") return;
      await until(() => given.clock.sleeping > asleep + 1);
      given.clock.advance(event.delayMs);
    });
    expect(ofType(events, "model-retry")).toMatchObject([{ delayMs: 7_000, error: { code: "429" } }]);
    expect(await run.result).toMatchObject({ status: "completed", text: "Now." });
    await worksOn(given);
  });

  test("an overloaded provider is asked three times, then the turn fails", async () => {
    mock.on({ userMessage: "busy" }, { error: { message: "Overloaded", type: "overloaded_error" }, status: 529 });
    const given = await agentOn();
    const run = given.agent.run("busy", s);
    const events = await eventsOf(run);
    expect(ofType(events, "model-retry")).toHaveLength(2);
    expect(await run.result).toMatchObject({
      status: "failed",
      error: { code: "model_failed", data: { code: "529" } },
    });
    expect(mock.getRequests()).toHaveLength(3);
    await worksOn(given);
  });

  test("a wrong request fails at once", async () => {
    mock.on(
      { userMessage: "wrong" },
      { error: { message: "No such thing", type: "invalid_request_error" }, status: 400 },
    );
    const given = await agentOn();
    const { status, error } = await given.agent.run("wrong", s).result;
    expect([status, error?.code]).toEqual(["failed", "model_failed"]);
    expect(error?.message).toContain("No such thing");
    expect(mock.getRequests()).toHaveLength(1);
    await worksOn(given);
  });

  test("an answer that is cut off is asked for again; only the whole one is kept", async () => {
    mock.on({ userMessage: "long", sequenceIndex: 0 }, { content: long }, cut);
    mock.on({ userMessage: "long" }, { content: "In short." });
    const given = await agentOn();
    const run = given.agent.run("long", s);
    const events = await eventsOf(run);
    const [again] = ofType(events, "model-retry");
    const shown = ofType(events, "text-delta").filter(({ messageId }) => messageId === again!.messageId);
    expect(shown.length).toBeGreaterThan(0);
    expect(said((await run.result).messages)).toEqual(["user: long", "assistant: In short."]);
    await worksOn(given);
  });

  test("an answer that is always cut off fails the turn and keeps the last piece", async () => {
    mock.on({ userMessage: "long" }, { content: long }, cut);
    const given = await agentOn();
    const { status, text } = await given.agent.run("long", s).result;
    expect(status).toBe("failed");
    expect(text).toMatch(/^word /);
    expect((await given.agent.loadBranch("s")).messages).toMatchObject([{}, { role: "assistant", partial: true }]);
    await worksOn(given);
  });

  test("a provider that hangs up fails the turn", async () => {
    mock.on({ userMessage: "gone" }, { content: "never" });
    mock.setChaos({ disconnectRate: 1 });
    const given = await agentOn();
    expect((await given.agent.run("gone", s).result).status).toBe("failed");
    expect(mock.getRequests()).toHaveLength(3);
    await worksOn(given);
  });

  test("a body that is no event stream fails the turn", async () => {
    mock.on({ userMessage: "odd" }, { content: "never" });
    mock.setChaos({ malformedRate: 1 });
    const given = await agentOn();
    const { status, error, text } = await given.agent.run("odd", s).result;
    expect([status, error?.code, text]).toEqual(["failed", "model_failed", ""]);
    await worksOn(given);
  });

  // The mock's Responses API ends every answer as complete.
  test.skipIf(name === "openai responses")("an answer that ran out of tokens is complete, and says why", async () => {
    mock.on({ userMessage: "short" }, { content: "And then", finishReason: "length" });
    const given = await agentOn();
    expect(await given.agent.run("short", s).result).toMatchObject({ status: "completed", reason: "length" });
    await worksOn(given);
  });

  test("an interrupt in mid-stream keeps what was said", async () => {
    mock.on({ userMessage: "long" }, { content: long.repeat(5) }, { chunkSize: 5, latency: 4 });
    const given = await agentOn();
    const run = given.agent.run("long", s);
    await eventsOf(run, (event) => void (event.type === "text-delta" && event.text !== "" && run.interrupt("enough")));
    const { status, text } = await run.result;
    expect(status).toBe("interrupted");
    expect(text).toMatch(/^word/);
    await worksOn(given);
  });

  test("an interrupt while a tool runs leaves a conversation that the provider takes", async () => {
    const toolCalls = [{ id: "call_a", name: "add", arguments: '{"a":1,"b":2}' }];
    mock.on({ userMessage: "sum", hasToolResult: false }, { toolCalls });
    const given = await agentOn({ tools: { add: { ...add, execute: () => new Promise(() => {}) } } });
    const run = given.agent.run("sum", s);
    await eventsOf(run, (event) => void (event.type === "tool-start" && run.interrupt()));
    expect(said((await given.agent.loadBranch("s")).messages)[2]).toContain("Not executed");
    await worksOn(given);
  });

  test("an answer in the shape that was asked for", async () => {
    mock.on({ userMessage: "where" }, { content: '{"city":"Oslo"}' });
    const given = await agentOn();
    const { output } = await given.agent.run("where", { ...s, output: z.object({ city: z.string() }) }).result;
    expect(output).toEqual({ city: "Oslo" });
    await worksOn(given);
  });

  test("an answer in the shape that was asked for, given by calling a tool after another one", async () => {
    const sum = [{ id: "call_a", name: "add", arguments: '{"a":1,"b":2}' }];
    const answer = [
      { id: "call_b", name: "return_output", arguments: '{"city":"Oslo","sights":["Opera","City Hall"]}' },
    ];
    mock.on({ userMessage: "where", hasToolResult: false }, { toolCalls: sum });
    mock.on({ userMessage: "where", hasToolResult: true }, { toolCalls: answer }, { chunkSize: 6 });
    const bodies: unknown[] = [];
    const given = await agentOn({ tools: { add }, model: recorded(models[name]!, bodies) });
    const schema = z.object({ city: z.string(), sights: z.array(z.string()) });
    const run = given.agent.run("where", { ...s, output: { schema, mode: "tool" } });
    const shown = ofType(await eventsOf(run), "output-partial").map(({ output }) => output);
    const result = await run.result;
    const oslo = { city: "Oslo", sights: ["Opera", "City Hall"] };
    expect(result).toMatchObject({ status: "completed", reason: "output", output: oslo, iterations: 2 });
    expect(shown.length).toBeGreaterThan(2);
    expect(shown.at(-1)).toEqual(oslo);
    expect(bodies).toHaveLength(2);
    for (const body of bodies.map(parsed)) {
      expect(["required", { type: "any" }]).toContainEqual(body.tool_choice);
      expect(JSON.stringify(body.tools)).toContain('"return_output"');
      expect([body.response_format, body.output_config, body.text]).toEqual([undefined, undefined, undefined]);
    }
    await worksOn(given);
  });

  test("a call that does not fit the shape is told so, and the next one is the answer", async () => {
    const call = (id: string, city: unknown) => [{ id, name: "return_output", arguments: JSON.stringify({ city }) }];
    mock.on({ userMessage: "where", hasToolResult: false }, { toolCalls: call("call_a", 7) });
    mock.on({ userMessage: "where", hasToolResult: true }, { toolCalls: call("call_b", "Oslo") });
    const given = await agentOn();
    const output = { schema: z.object({ city: z.string() }), mode: "tool" } as const;
    expect(await given.agent.run("where", { ...s, output }).result).toMatchObject({ output: { city: "Oslo" } });
    await worksOn(given);
  });

  test("one of several shapes, as text and by calling its tool", async () => {
    const union = { city: z.object({ name: z.string() }), nothing: z.object({ why: z.string() }) };
    const oslo = { type: "city", value: { name: "Oslo" } };
    mock.on({ userMessage: "as text" }, { content: JSON.stringify({ output: oslo }) });
    const toolCalls = [{ id: "call_a", name: "return_city", arguments: '{"name":"Oslo"}' }];
    mock.on({ userMessage: "by tool" }, { toolCalls });
    const bodies: unknown[] = [];
    const given = await agentOn({ model: recorded(models[name]!, bodies) });
    expect((await given.agent.run("as text", { ...s, output: { union } }).result).output).toEqual(oslo);
    const { response_format, text, output_config } = parsed(bodies[0]);
    const sent = JSON.stringify(response_format ?? output_config ?? text);
    expect(sent).toContain('"output":{"anyOf":[{"type":"object"');
    expect(sent.split('"additionalProperties":false')).toHaveLength(6);
    const result = await given.agent.run("by tool", { ...s, output: { union, mode: "tool" } }).result;
    expect(result.output).toEqual(oslo);
    await worksOn(given);
    // After calls in the conversation, a tool is named where there is none.
    expect(JSON.stringify(parsed(bodies.at(-1)).tools)).toContain('"unavailable"');
  });

  test("an answer in the shape that was asked for, shown while it is written", async () => {
    mock.on({ userMessage: "where" }, { content: '{"city":"Oslo","people":700000}' }, { chunkSize: 5 });
    const given = await agentOn();
    const run = given.agent.run("where", { ...s, output: z.object({ city: z.string(), people: z.number() }) });
    const shown = ofType(await eventsOf(run), "output-partial").map(({ output }) => output);
    expect(shown.length).toBeGreaterThan(2);
    expect(shown.at(-1)).toEqual({ city: "Oslo", people: 700_000 });
    await worksOn(given);
  });
});
