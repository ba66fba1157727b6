// Secrets in the texts of errors: not in the log, not in the stream, not in the next prompt. Everything else passes unchanged.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { systemClock } from "../../src/base/clock.ts";
import { type AgentOptions, defineTool, redactSecrets } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { given as givenServer, until } from "../server/kit.ts";
import { eventsOf, given, main, ofType, s } from "./kit.ts";

const key = "sk-CANARY0123456789";
const url = "postgres://ada:CANARYpw@db.internal/app";
const calling = { calls: [{ name: "lookUp", input: {} }] };

/** As a provider package throws it. */
function refusal(message = `Incorrect API key provided: ${key}.`): Error {
  return Object.assign(new Error(message), { name: "AI_APICallError", statusCode: 401, isRetryable: false });
}

function toolThat(execute: () => unknown) {
  return { lookUp: defineTool({ description: "Looks up.", input: z.object({}), execute }) };
}

const throwing = toolThat(() => {
  throw new Error(`connect ECONNREFUSED ${url} with ${key}`);
});

/** All that can be seen of a run: the log as it is stored, every event, and every prompt. */
async function seen(script: Parameters<typeof given>[0], options: Partial<AgentOptions> = {}) {
  const { agent, store, model } = await given(script, options);
  const run = agent.run("Go", s);
  const events = await eventsOf(run);
  const result = await run.result;
  const log = await store.read(main, { limit: 1000 });
  const { error } = result;
  const all = JSON.stringify([
    events,
    log,
    model.calls.map(({ prompt }) => prompt),
    error && { ...error, message: error.message },
  ]);
  return { events, result, all, log: log.map(({ data }) => data).join("\n") };
}

describe("an error of a provider", () => {
  test("loses its key in log, stream and result, and keeps its status", async () => {
    const { all, result, events, log } = await seen([{ error: refusal() }]);
    expect(all).not.toContain("CANARY");
    expect(result.error).toMatchObject({
      code: "model_failed",
      message: "The model call failed: Incorrect API key provided: ***.",
      data: { status: 401 },
    });
    const [ended] = ofType(events, "turn.ended");
    expect(ended?.error).toMatchObject({ code: "model_failed", status: 401 });
    expect(events.at(-1)).toMatchObject({ type: "run-end", error: { code: "model_failed", status: 401 } });
    expect(log).toContain('"status":401');
    expect(result.error?.cause).toMatchObject({ message: expect.stringContaining(key) });
  });

  test("loses its key also where the text is cut, and before each retry", async () => {
    const long = `${"x".repeat(480)} ${"y".repeat(5)} sk-CANARY${"z".repeat(200)}`;
    const passing = Object.assign(new Error(long), { statusCode: 503, isRetryable: true });
    const { all, events } = await seen([{ error: passing }, "Fine."], {
      clock: systemClock,
      retry: { attempts: 2, baseMs: 1 },
    });
    expect(ofType(events, "model-retry")).toHaveLength(1);
    expect(all).not.toContain("CANARY");
  });
});

describe("an error of a tool", () => {
  test("loses its secrets in log, stream and prompt", async () => {
    const { all, events } = await seen([calling, "Sorry."], { tools: throwing });
    expect(all).not.toContain("CANARY");
    expect(ofType(events, "tool.returned")[0]?.output).toEqual({
      type: "error-text",
      value: "connect ECONNREFUSED postgres://ada:***@db.internal/app with ***",
    });
    expect(ofType(events, "error-report")).toHaveLength(1);
  });

  test("loses them in an output that says it is an error, however deep", async () => {
    const tools = {
      lookUp: {
        ...toolThat(() => "").lookUp,
        toModelOutput: () => ({ type: "error-json" as const, value: { tried: [{ with: key }], at: 3 } }),
      },
    };
    const { all, events } = await seen([calling, "Sorry."], { tools });
    expect(all).not.toContain("CANARY");
    expect(ofType(events, "tool.returned")[0]?.output).toEqual({
      type: "error-json",
      value: { tried: [{ with: "***" }], at: 3 },
    });
  });
});

test("an error of a hook and of a background task loses its secrets", async () => {
  const tools = {
    lookUp: defineTool({
      description: "Looks up.",
      input: z.object({}),
      execute: async (_, { background }) => {
        await background("later", () => Promise.reject(new Error(`later: ${key}`)));
        return "begun";
      },
    }),
  };
  const { agent, store } = await given([calling, "Done."], { tools });
  await agent.run("Go", s).result;
  await agent.close();
  const log = (await store.read(main, { limit: 1000 })).map(({ data }) => data).join("\n");
  expect(log).toContain("task.ended");
  expect(log).not.toContain("CANARY");
  const broken = {
    name: "broken",
    afterIteration() {
      throw new Error(`hook: ${key}`);
    },
  };
  expect((await seen(["Fine."], { middleware: [broken] })).all).not.toContain("CANARY");
});

test("what models say and tools return is never changed", async () => {
  const { events, log } = await seen([calling, `Your key is ${key}.`], { tools: toolThat(() => `${url} ${key}`) });
  expect(ofType(events, "tool.returned")[0]?.output).toEqual({ type: "text", value: `${url} ${key}` });
  expect(log).toContain(`Your key is ${key}.`);
});

test("a function of one's own takes the place of the default, and may use it", async () => {
  const redact = (text: string) => redactSecrets(text).replaceAll("db.internal", "a host");
  const { events } = await seen([calling, "Sorry."], { tools: throwing, redact });
  expect(ofType(events, "tool.returned")[0]?.output.value).toBe(
    "connect ECONNREFUSED postgres://ada:***@a host/app with ***",
  );
});

test("false leaves every text as it is", async () => {
  const { events } = await seen([calling, "Sorry."], { tools: throwing, redact: false });
  expect(ofType(events, "tool.returned")[0]?.output.value).toContain(key);
});

test("what is no function is refused", async () => {
  await expect(given([], { redact: "yes" as never })).rejects.toThrow(
    "redact must be a function from string to string",
  );
});

test("a server's agents redact as the server says, unless they say otherwise", async () => {
  const model = () => scriptedModel([{ error: refusal() }]);
  const agents = { a: { model: model() }, b: { model: model(), redact: () => "own" } };
  const { ask } = await givenServer([], { agents, redact: () => "the server's" });
  for (const [agentId, told] of [
    ["a", "the server's"],
    ["b", "own"],
  ]) {
    await ask("POST", "/sessions", { sessionId: agentId });
    const branch = `/agents/${agentId}/sessions/${agentId}/branches/main`;
    expect((await ask("POST", `${branch}/inputs`, { input: "Go" })).status).toBeLessThan(300);
    const ended = await until(async () => {
      const { events } = (await ask("GET", `/sessions/${agentId}/branches/main/events`)).body;
      return events.find(({ type }: { type: string }) => type === "turn.ended");
    });
    expect(ended.error.message).toContain(told);
  }
});
