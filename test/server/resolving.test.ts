// Which agent an id means, and how resolveAgent is called.

import { setImmediate } from "node:timers/promises";
import { describe, expect, test, vi } from "vitest";
import { createAgent } from "../../src/index.ts";
import type { ResolveAgent } from "../../src/server/index.ts";
import { expectProblem, gate } from "./kit.ts";
import { at, given, says } from "./resolving-kit.ts";

describe("an agent's id means", () => {
  const stored = (ask: ReturnType<typeof given>["ask"], agentId: string, model = "scripted/a") =>
    ask("POST", "/agents", { agentId, config: { model } });

  test("what the server was given, then what resolveAgent returns, then what is stored, then the default agent", async () => {
    let isOn = false;
    const { ask, say } = given({
      agents: { both: says("given") },
      resolveAgent: (id) => (id === "both" || (isOn && id === "late") ? says("resolved") : undefined),
      defaultAgent: says("default"),
    });
    expect(await say("both")).toBe("given");
    expect(await say("late")).toBe("default");
    expect((await stored(ask, "late")).status).toBe(201);
    expect(await say("late")).toBe("stored a");
    isOn = true;
    expect(await say("late")).toBe("resolved");
    expect(await say("other")).toBe("default");
  });

  test("nothing where nothing defines it", async () => {
    const { ask } = given({ agents: { helper: says("given") }, resolveAgent: () => undefined });
    await ask("POST", "/sessions", { sessionId: "s" });
    expectProblem(await ask("POST", `${at("nobody")}/inputs`, { input: "Hi" }), 404, "agent_not_found");
    expectProblem(await ask("GET", "/agents/nobody"), 404, "agent_not_found");
  });

  test("the default agent again when its stored definition is deleted", async () => {
    const { ask, say } = given({ defaultAgent: says("default") });
    await stored(ask, "x");
    expect(await say("x")).toBe("stored a");
    await ask("PUT", "/agents/x", { config: { model: "scripted/b" } });
    expect(await say("x")).toBe("stored b");
    await ask("DELETE", "/agents/x");
    expect(await say("x")).toBe("default");
    expectProblem(await ask("DELETE", "/agents/x"), 404, "agent_not_found");
  });

  test("one thing for descriptions, too, and what the program resolves can't be stored, changed or deleted", async () => {
    const resolveAgent: ResolveAgent = (id) => (id === "mine" ? { ...says("resolved"), name: "Mine" } : undefined);
    const { ask } = given({ resolveAgent, defaultAgent: { ...says("default"), name: "Anybody" } });
    expect((await ask("GET", "/agents/mine")).body).toEqual({ id: "mine", source: "code", name: "Mine" });
    expect((await ask("GET", "/agents/other")).body).toEqual({ id: "other", source: "code", name: "Anybody" });
    expectProblem(await stored(ask, "mine"), 409, "agent_exists");
    expectProblem(await ask("PUT", "/agents/mine", { config: { model: "scripted/a" } }), 400, "invalid_argument");
    expectProblem(await ask("DELETE", "/agents/mine"), 400, "invalid_argument");
    expect((await ask("GET", "/agents")).body).toEqual({ agents: [] });
  });

  test("an agent of its own for each tenant", async () => {
    const resolveAgent = vi.fn<ResolveAgent>((_id, { tenant }) => says(`for ${tenant}`));
    const { say } = given({ resolveAgent });
    expect(await say("x", { "x-tenant": "a" })).toBe("for a");
    expect(await say("x", { "x-tenant": "b" })).toBe("for b");
    expect(await say("x", { "x-tenant": "a" })).toBe("for a");
    expect(resolveAgent).toHaveBeenCalledTimes(2);
  });
});

describe("resolveAgent", () => {
  test("is called once for requests that come together, and not again while its agent is there", async () => {
    const passage = gate();
    const resolveAgent = vi.fn<ResolveAgent>(async () => {
      await passage.passed;
      return says("resolved");
    });
    const { ask, say } = given({ resolveAgent });
    await ask("POST", "/sessions", { sessionId: "s" });
    const states = Array.from({ length: 10 }, () => ask("GET", `${at("x")}/state`));
    await setImmediate();
    passage.open();
    for (const state of states) expect((await state).status).toBe(200);
    expect(await say("x")).toBe("resolved");
    expect(resolveAgent).toHaveBeenCalledTimes(1);
  });

  test("that fails refuses the request without its reason, tells the log, and is called again", async () => {
    const resolveAgent = vi.fn<ResolveAgent>(() => says("resolved"));
    const onClose = vi.fn();
    resolveAgent.mockImplementationOnce((_id, context) => {
      context.onClose(onClose);
      throw new Error("no such row in table secrets");
    });
    resolveAgent.mockRejectedValueOnce(new Error("later"));
    const { ask, say, logger } = given({ resolveAgent });
    await ask("POST", "/sessions", { sessionId: "s" });
    const refused = await ask("POST", `${at("x")}/inputs`, { input: "Hi" });
    expectProblem(refused, 503, "agent_unavailable");
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(JSON.stringify(refused.body)).not.toContain("secrets");
    expect(onClose).toHaveBeenCalledTimes(1);
    const [[, error]] = logger.warn.mock.calls as [[string, Error]];
    expect(error.message).toBe('Agent "x" could not be built.');
    expect((error.cause as Error).message).toBe("no such row in table secrets");
    expectProblem(await ask("GET", "/agents/x"), 503, "agent_unavailable");
    expect(await say("x")).toBe("resolved");
  });

  test.each([
    ["an agent", () => createAgent(says("made")), "must return the options of an agent"],
    ["a name", () => "helper", "must return the options of an agent"],
    ["null", () => null, "must return the options of an agent"],
    ["turns that are not saved", () => ({ ...says("x"), persistAfterTurn: false }), "has persistAfterTurn: false"],
    ["options that an agent refuses", () => ({ ...says("x"), tools: [1] }), "tools must be"],
  ])("that returns %s is told what is wanted, in the log", async (_what, wrong, sentence) => {
    const { ask, logger } = given({ resolveAgent: wrong as unknown as ResolveAgent });
    expectProblem(await ask("GET", "/agents/x"), 503, "agent_unavailable");
    const [[, error]] = logger.warn.mock.calls as [[string, Error]];
    expect((error.cause as Error).message).toContain(sentence);
  });

  test("does not keep a server from closing while it is under way", async () => {
    const passage = gate();
    const { ask, server } = given({
      resolveAgent: async () => {
        await passage.passed;
        return says("late");
      },
    });
    const asked = ask("GET", "/agents/x");
    await setImmediate();
    await server.close();
    passage.open();
    expectProblem(await asked, 503, "store_closed");
  });
});
