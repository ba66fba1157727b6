// A message that asks for more calls than are run.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { ToolResultPart } from "../../src/events/index.ts";
import { createAgent, defineTool } from "../../src/index.ts";
import { eventsOf, expectLegal, given, main, ofType, s } from "./kit.ts";

const asking = (count: number) => ({
  calls: Array.from({ length: count }, (_, n) => ({ name: "note", input: { n } })),
});

function noting(ran: number[], effect: "retry" | "read" = "retry") {
  const execute = ({ n }: { n: number }) => {
    ran.push(n);
    return `noted ${n}`;
  };
  return { note: defineTool({ input: z.object({ n: z.number() }), effect, execute }) };
}

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

describe("calls of one message past the limit", () => {
  test.each(["retry", "read"] as const)("are not run (%s) and get a result that says so", async (effect) => {
    const ran: number[] = [];
    const { agent } = await given([asking(500), "Done."], { tools: noting(ran, effect) });
    const run = agent.run("go", s);
    const events = await eventsOf(run);
    const { status, reason, messages } = await run.result;
    expect({ status, reason }).toEqual({ status: "completed", reason: "stop" });
    expect(ran).toEqual(upTo(128));
    expectLegal(messages);
    const results = messages[2]!.content as readonly ToolResultPart[];
    expect(results).toHaveLength(500);
    expect(results[127]!.output).toEqual({ type: "text", value: "noted 127" });
    expect(results[128]!.output).toMatchObject({
      type: "execution-denied",
      reason: expect.stringContaining("first 128 calls"),
    });
    expect(ofType(events, "limit-reach")).toMatchObject([{ limit: "calls", value: 128 }]);
  });

  test("are counted from the first of the message, also by a run that takes the turn up", async () => {
    const ran: number[] = [];
    const { agent, store, again } = await given([asking(6), "Done."], { tools: noting(ran), limits: { calls: 4 } });
    const turn = await agent.beginTurn(main, "go");
    const calls = upTo(6).map(
      (n) => ({ type: "tool-call", toolCallId: `c${n}`, toolName: "note", input: { n } }) as const,
    );
    await turn.add({ id: "asks", role: "assistant", content: calls });
    await turn.toolReturned({ callId: "c0", toolName: "note", output: { type: "text", value: "noted 0" } });
    await turn.release();
    const { status, messages } = await again({ script: ["Done."], store }).run(undefined, s).result;
    expect(status).toBe("completed");
    expect(ran).toEqual([1, 2, 3]);
    expectLegal(messages);
    const results = messages[2]!.content as readonly ToolResultPart[];
    expect(results.map(({ output }) => output.type)).toEqual([
      ...upTo(4).map(() => "text"),
      "execution-denied",
      "execution-denied",
    ]);
  });

  test("can be more or fewer for an agent, and for a run", async () => {
    const ran: number[] = [];
    const { agent } = await given(() => asking(3), { tools: noting(ran), limits: { calls: 2, iterations: 1 } });
    await agent.run("go", s).result;
    expect(ran).toEqual([0, 1]);
    await agent.run("go", { ...s, config: { limits: { calls: 1 } } }).result;
    expect(ran).toEqual([0, 1, 0]);
    expect(() => createAgent({ model: "a/b", limits: { calls: 0 } })).toThrow("limits.calls");
  });
});
