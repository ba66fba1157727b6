import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import { type Answer, type PermissionOptions, permissions } from "../../src/middleware/index.ts";
import { storedChoices } from "../../src/projection/permissions.ts";
import type { Tool } from "../../src/tools/index.ts";
import { FakeRun, fakeTool, nothingKept } from "./fake-run.ts";

const silent = () => {
  throw new Error("nobody must be asked");
};

function denied(reason: unknown) {
  return { type: "execution-denied", reason };
}

/** One call through the hook: what it was blocked with, and what was asked. */
async function decide(
  tool: Partial<Tool>,
  answer: (() => JsonObject | Answer) | undefined,
  options: PermissionOptions & { run?: FakeRun; starts?: number; callId?: string } = {},
) {
  const { run = new FakeRun({ ...(answer && { answer }) }), starts = 0, callId = "call-1", ...given } = options;
  const context = run.call(fakeTool(tool), { input: { to: "all" }, starts, callId });
  await permissions(given).beforeToolCall?.(context);
  return { blocked: context.blocked, asked: run.asked, run };
}

describe("permissions", () => {
  test("a tool that needs none is run without a question", async () => {
    expect((await decide({ permission: false }, silent)).blocked).toBeUndefined();
    expect((await decide({ permission: () => false }, silent)).blocked).toBeUndefined();
  });

  test("a person sees what will be run, and decides", async () => {
    const approved = await decide({ description: "Sends mail" }, () => ({ approved: true }));
    expect(approved.blocked).toBeUndefined();
    const request = { toolName: "send", input: { to: "all" }, description: "Sends mail" };
    expect(approved.asked).toEqual([{ kind: "permission", callId: "call-1", request }]);
    const refused = await decide({}, () => ({ approved: false, reason: "Not today." }));
    expect(refused.blocked).toEqual(denied("Not today."));
    expect((await decide({}, () => ({ approved: false }))).blocked).toEqual(denied(expect.stringMatching(/user/)));
  });

  test("a rule decides on the input as the tool gets it", async () => {
    const seen: unknown[] = [];
    const parse = async () => ({ value: { to: ["all"] } });
    const permission = (input: unknown) => seen.push(input) > 5;
    expect((await decide({ parse, permission }, silent)).blocked).toBeUndefined();
    expect(seen).toEqual([{ to: ["all"] }]);
  });

  test.each<[string, Partial<Tool>]>([
    ["throws", { permission: () => JSON.parse("{") }],
    ["rejects", { permission: () => Promise.reject(new Error("no")) }],
    ["says nothing", { permission: () => undefined as never }],
    [
      "can't be asked, because the input does not fit",
      { permission: () => false, parse: async () => ({ problem: "?" }) },
    ],
  ])("a rule that %s is no permission", async (_, tool) => {
    expect((await decide(tool, () => ({ approved: false, reason: "asked" }))).blocked).toEqual(denied("asked"));
  });

  test("options stand above what the tool says, in both directions", async () => {
    expect((await decide({}, silent, { tools: { send: false } })).blocked).toBeUndefined();
    const asked = await decide({ permission: false }, () => ({ approved: false }), { tools: { send: true } });
    expect(asked.blocked).toBeDefined();
    expect((await decide({ name: "constructor", permission: false }, silent, { tools: {} })).blocked).toBeUndefined();
  });

  test("a mode answers for calls that need permission", async () => {
    const allowed = await decide({}, silent, { mode: "allow" });
    expect(allowed.blocked).toBeUndefined();
    expect(allowed.run.granted).toEqual([{ how: "mode", modeOf: "agent" }]);
    const unguarded = await decide({ permission: false }, silent, { mode: "allow" });
    expect(unguarded.run.granted).toEqual([]);
    expect((await decide({}, silent, { mode: "deny" })).blocked).toMatchObject({ type: "execution-denied" });
    expect((await decide({ permission: false }, silent, { mode: "deny" })).blocked).toBeUndefined();
  });

  test.each([
    [true, undefined],
    [false, expect.objectContaining({ type: "execution-denied" })],
  ])("approved %s for always holds in the session, for this tool alone", async (approved, expected) => {
    const kept = nothingKept();
    const first = await decide({}, undefined, {
      run: new FakeRun({ kept, answer: () => ({ approved, choice: "always" }) }),
    });
    expect(first.blocked).toEqual(approved ? undefined : expect.anything());
    const later = await decide({}, undefined, { run: new FakeRun({ kept, answer: silent }), callId: "call-2" });
    expect(later.blocked).toEqual(expected);
    const run = new FakeRun({ kept, answer: () => ({ approved: true, choice: "once" }) });
    const other = await decide({ name: "other" }, undefined, { run, callId: "call-3" });
    expect(other.asked).toHaveLength(1);
    const decision = approved ? "allow" : "deny";
    expect(later.run.granted).toEqual(approved ? [{ how: "always" }] : []);
    expect(kept.session).toEqual({
      "@permissions": { version: 2, data: [{ agentId: "a1", tool: "send", decision, at: 0 }] },
    });
  });

  test("no answer is a denial that says so", async () => {
    const late = await decide({}, () => ({ answered: false, reason: "expired" }));
    expect(late.blocked).toEqual(denied(expect.stringMatching(/in time/)));
    const alone = await decide({}, () => ({ answered: false, reason: "nobody" }));
    expect(alone.blocked).toEqual(denied(expect.stringMatching(/no one is available/i)));
  });

  test.each<[string, JsonObject]>([
    ["is empty", {}],
    ["is no boolean", { approved: "yes" }],
    ["has a choice that does not exist", { approved: true, choice: "sometimes" }],
  ])("an answer that %s is a denial that says so", async (_, answer) => {
    const { blocked, run } = await decide({}, () => answer);
    expect(blocked).toEqual(denied(expect.stringMatching(/understood/)));
    expect(run.kept.session).toEqual({});
  });

  describe("a call that may have run before a crash", () => {
    const once = { effect: "once" } as const;

    test("is never repeated by mode, memory or a tool's own word", async () => {
      for (const mode of ["allow", "deny", "ask"] as const) {
        const kept = nothingKept();
        kept.session = storedChoices([{ agentId: "a1", tool: "send", decision: "allow", at: 1 }]);
        const run = new FakeRun({ kept, answer: () => ({ approved: false }) });
        const { blocked, asked } = await decide({ ...once, permission: false }, undefined, { run, mode, starts: 1 });
        expect(asked).toMatchObject([{ kind: "permission", callId: "call-1", request: { again: true } }]);
        expect(blocked).toMatchObject({ type: "error-text", value: expect.stringMatching(/not repeated/) });
      }
    });

    test("is run again when a person says so; the permission of before is not asked for", async () => {
      const { blocked, asked } = await decide(once, () => ({ approved: true, choice: "always" }), { starts: 1 });
      expect(blocked).toBeUndefined();
      expect(asked).toHaveLength(1);
    });

    test("is asked about anew after each start, and not while the same question waits", async () => {
      const kept = nothingKept();
      const ask = async (starts: number) => {
        const run = new FakeRun({ kept, answer: () => ({ approved: true }) });
        return (await decide(once, undefined, { run, starts })).asked.length;
      };
      expect([await ask(0), await ask(1), await ask(1), await ask(2)]).toEqual([1, 1, 0, 1]);
    });

    test.each([
      ["sent at noon", { type: "text", value: "sent at noon" }],
      [
        { type: "json", value: { id: 7 } },
        { type: "json", value: { id: 7 } },
      ],
    ])("takes what a person knows of it as its result", async (output, expected) => {
      const { blocked } = await decide(once, () => ({ approved: false, output }), { starts: 1 });
      expect(blocked).toEqual(expected);
    });

    test("is of unknown outcome when nobody answers, or not clearly", async () => {
      const late = await decide(once, () => ({ answered: false, reason: "expired" }), { starts: 1 });
      expect(late.blocked).toMatchObject({
        type: "error-text",
        value: expect.stringMatching(/not repeated.*in time/s),
      });
      const odd = await decide(once, () => ({ approved: false, output: { type: "video" } }), { starts: 1 });
      expect(odd.blocked).toMatchObject({ type: "error-text", value: expect.stringMatching(/understood/) });
    });

    test("is run again without a question when its effect allows it", async () => {
      const { blocked } = await decide({ effect: "retry", permission: false }, silent, { starts: 1 });
      expect(blocked).toBeUndefined();
    });
  });
});
