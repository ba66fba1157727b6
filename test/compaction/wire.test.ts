// Compaction on the wire: what the real provider packages send for a summary, and how they report a prompt that is too long.

import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { defineTool, type LanguageModel } from "../../src/index.ts";
import { readOverflow } from "../../src/models/overflow.ts";
import { given, main, s } from "../agent/kit.ts";
import { ask, message, type ProviderName, providerModels, providerNames, recorded } from "../models/kit.ts";
import { overflows } from "../models/overflow-texts.ts";
import { filler } from "./kit.ts";

const mock = new LLMock({ port: 0 });
let models: Record<ProviderName, LanguageModel>;
beforeAll(async () => {
  await mock.start();
  models = providerModels(mock);
});
beforeEach(() => mock.clearFixtures());
afterAll(() => mock.stop());

const isSummary = (request: unknown) => JSON.stringify(request).includes("Write a summary of this conversation");

interface Body {
  readonly tools: unknown;
  readonly system?: unknown;
  readonly messages?: readonly unknown[];
  readonly input?: readonly unknown[];
  readonly tool_choice?: unknown;
  readonly prompt_cache_key?: string;
}

/** Breakpoints move with the end of the conversation; they are no part of the prefix itself. */
function withoutMarks(value: unknown): string {
  return JSON.stringify(value, (key, each) => (key === "cache_control" ? undefined : each));
}

/** What a provider caches, in its order. */
function prefixOf({ tools, system, tool_choice, messages, input }: Body, count: number): string {
  return withoutMarks([tools, tool_choice, system, (messages ?? input)!.slice(0, count)]);
}

describe.each(providerNames)("%s", (name) => {
  async function talking() {
    mock.on({ predicate: isSummary }, { content: "They agreed on blue." });
    mock.on({ predicate: () => true }, { content: "Yes." });
    const bodies: unknown[] = [];
    const { agent } = await given([], {
      model: recorded(models[name], bodies),
      instructions: "Be brief.",
      tools: { look: defineTool({ input: {}, execute: () => "nothing" }) },
      compaction: { messages: 8, keep: { turns: 1 } },
    });
    const sent = () => bodies.map((body) => (typeof body === "string" ? JSON.parse(body) : body) as Body);
    return { agent, sent };
  }

  /** The summary's request begins, byte for byte, with all that the call before it sent. */
  function expectRides(bodies: readonly Body[]): void {
    const at = bodies.findIndex(isSummary);
    expect(at).toBeGreaterThan(0);
    const [before, summary] = [bodies[at - 1]!, bodies[at]!];
    const { length } = (before.messages ?? before.input)!;
    expect(prefixOf(summary, length)).toBe(prefixOf(before, length));
    expect(summary.prompt_cache_key).toBe(before.prompt_cache_key);
    expect(JSON.stringify(summary).split('"cache_control"').length - 1).toBeLessThanOrEqual(4);
  }

  test("a summary in a run rides the cached prefix, and so does one by hand", async () => {
    const { agent, sent } = await talking();
    for (let i = 1; i <= 5; i++) expect(await agent.run(filler(`question ${i}`, 100), s).text()).toBe("Yes.");
    expectRides(sent());
    const before = sent().length;
    await agent.uncompact(main);
    await agent.run("And now?", { ...s, config: { compaction: "off" } }).result;
    await agent.compact(main, { keep: { turns: 1 } });
    expectRides(sent().slice(before));
  });

  test("forks share the cache key, and another session has its own", async () => {
    const { agent, sent } = await talking();
    await agent.run("One?", s).result;
    await agent.forkBranch(main, { newBranchId: "f" });
    await agent.run("Two?", { sessionId: "s", branchId: "f" }).result;
    await agent.createSession("other");
    await agent.run("Three?", "other").result;
    const [first, fork, other] = sent().map((body) => body.prompt_cache_key);
    expect(fork).toBe(first);
    if (name.startsWith("openai")) expect(other).not.toBe(first);
  });

  // Errors of Anthropic's API have no code.
  const possible = overflows.filter(([of]) => name !== "anthropic messages" || of !== "OpenAI, code only");
  test.each(possible)("the refusal of %s is known as an overflow", async (_, given, window) => {
    const { status, ...error } = onTheWire(given);
    mock.on({ predicate: () => true }, { error, status });
    const heard = await ask(models[name], [message("user", "long")]);
    const failed = heard.error ?? heard.parts.find(({ type }) => type === "error");
    expect(readOverflow(failed)).toBeDefined();
    expect(readOverflow(failed)!.window).toBe(window);
  });
});

interface Given {
  readonly message?: string;
  readonly statusCode?: number;
  readonly lastError?: Given;
  readonly data?: { readonly error?: { readonly message?: string; readonly code?: string; readonly type?: string } };
  readonly error?: { readonly message?: string; readonly code?: string | number; readonly type?: string };
}

/** The refusal as the server would send it. */
function onTheWire(given: unknown): { message: string; type: string; code?: string; status: number } {
  const { message = "", statusCode = 400, lastError, data, error } = given as Given;
  if (lastError) return onTheWire(lastError);
  const inner = error ?? data?.error;
  const code = typeof inner?.code === "string" ? inner.code : undefined;
  const said = inner?.message ?? message;
  return { message: said, type: inner?.type ?? "invalid_request_error", ...(code && { code }), status: statusCode };
}
