import { trace } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { afterEach, describe, expect, test } from "vitest";
import type { AgentOptions, Middleware } from "../../src/index.ts";
import { add, adding, eventsOf, given, s } from "./kit.ts";

/** An SDK as an application registers it. */
function register(): InMemorySpanExporter {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  return exporter;
}
afterEach(() => trace.disable());

const namesIn = (exporter: InMemorySpanExporter) => exporter.getFinishedSpans().map(({ name }) => name);

async function addingAgent(options: Partial<AgentOptions> = {}) {
  return given([adding(), "Three.", "More."], { name: "Ada", tools: { add }, ...options });
}

describe("telemetry of an agent", () => {
  test("makes spans of a turn, its model calls and its tool calls when an SDK is registered", async () => {
    const exporter = register();
    const { agent } = await addingAgent();
    const run = agent.run("Go", s);
    await run.result;
    expect(namesIn(exporter)).toEqual(["chat scripted", "execute_tool add", "chat scripted", "invoke_agent Ada"]);
    const turn = exporter.getFinishedSpans().at(-1)!;
    expect(turn.attributes).toMatchObject({
      "gen_ai.conversation.id": "s",
      "gen_ai.agent.name": "Ada",
      "bough.run.id": run.runId,
      "bough.turn.status": "completed",
      "bough.turn.iterations": 2,
      "gen_ai.usage.input_tokens": 20,
    });
    expect(JSON.stringify(exporter.getFinishedSpans().map(({ attributes }) => attributes))).not.toContain("Three.");
  });

  test("puts texts on the spans only when it is told to", async () => {
    const exporter = register();
    const { agent } = await addingAgent({ telemetry: { recordContent: true } });
    await agent.run("Go", s).result;
    expect(JSON.stringify(exporter.getFinishedSpans().map(({ attributes }) => attributes))).toContain("Three.");
  });

  test("has what viewers show of a trace: what was asked and answered, of which session and user, with which tools", async () => {
    const exporter = register();
    const { agent } = await addingAgent({ telemetry: { recordContent: true } });
    await agent.run("Go", { ...s, identity: { user: "ada" } }).result;
    const [first, tool, , turn] = exporter.getFinishedSpans().map(({ attributes }) => attributes);
    expect(turn).toMatchObject({ "session.id": "s", "user.id": "ada" });
    expect(JSON.parse(turn!["gen_ai.input.messages"] as string)).toEqual([
      { role: "user", parts: [{ type: "text", content: "Go" }] },
    ]);
    expect(JSON.parse(turn!["gen_ai.output.messages"] as string)).toEqual([
      { role: "assistant", parts: [{ type: "text", content: "Three." }], finish_reason: "stop" },
    ]);
    expect(first).toMatchObject({ "session.id": "s", "gen_ai.response.finish_reasons": ["tool_call"] });
    expect(JSON.parse(first!["gen_ai.output.messages"] as string)[0].finish_reason).toBe("tool_call");
    expect(JSON.parse(first!["gen_ai.tool.definitions"] as string)).toMatchObject([{ type: "function", name: "add" }]);
    expect(tool!["gen_ai.tool.call.result"]).toBe("3");
  });

  test("goes to a tracer that is given, and to no other", async () => {
    const others = register();
    const exporter = new InMemorySpanExporter();
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    const { agent } = await addingAgent({ telemetry: { tracer: provider.getTracer("own") } });
    await agent.run("Go", s).result;
    expect(namesIn(exporter)).toEqual(["chat scripted", "execute_tool add", "chat scripted", "invoke_agent Ada"]);
    expect(namesIn(others)).toEqual([]);
    expect(JSON.stringify(exporter.getFinishedSpans().map(({ attributes }) => attributes))).not.toContain("Three.");
  });

  test("can be turned off", async () => {
    const exporter = register();
    const { agent } = await addingAgent({ telemetry: false });
    await agent.run("Go", s).result;
    expect(namesIn(exporter)).toEqual([]);
  });

  test("begins and ends with the SDK, while the agent lives", async () => {
    const { agent } = await addingAgent();
    await agent.run("Go", s).result;
    const exporter = register();
    await agent.run("More", s).result;
    expect(namesIn(exporter)).toEqual(["chat scripted", "invoke_agent Ada"]);
    trace.disable();
  });

  test("stands in a run that has a configuration of its own", async () => {
    const exporter = register();
    const { agent } = await addingAgent();
    await agent.run("Go", { ...s, config: { limits: { iterations: 5 }, permissionMode: "allow" } }).result;
    expect(namesIn(exporter).at(-1)).toBe("invoke_agent Ada");
  });

  test("ends every span of a run that fails, is interrupted or is handed over", async () => {
    const exporter = register();
    const failing = await given([{ error: Object.assign(new Error("No"), { statusCode: 404 }) }]);
    await failing.agent.run("Go", s).result;
    const stopped = await addingAgent();
    const run = stopped.agent.run("Go", s);
    await eventsOf(run, (event) => event.type === "tool-start" && void run.interrupt());
    const parked = await addingAgent();
    const left = parked.agent.run("Go", s);
    await eventsOf(left, (event) => event.type === "tool-start" && void left.park());
    const turns = exporter.getFinishedSpans().filter(({ name }) => name.startsWith("invoke_agent"));
    expect(turns.map(({ attributes }) => attributes["bough.turn.status"] ?? attributes["bough.run.aborted"])).toEqual([
      "failed",
      true,
      true,
    ]);
  });

  test("costs a run nothing without an SDK: the model's stream is read as it is", async () => {
    const wrappers: string[] = [];
    const looking: Middleware = {
      name: "looks",
      wrapModelCall(_context, request, next) {
        const stream = next(request);
        wrappers.push(stream.constructor.name);
        return stream;
      },
    };
    const { agent } = await given(["1", "2"], { middleware: [looking] });
    await agent.run("Go", s).result;
    register();
    await agent.run("Go", s).result;
    expect(wrappers[0]).toBe("PartStream");
    expect(wrappers[1]).not.toBe("PartStream");
  });
});
