// Options that are wrong are refused with a sentence that says what is wanted.

import { describe, expect, test } from "vitest";
import { createAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { factTypes, given, main, refused, s } from "./kit.ts";

const wrongAgents: [string, object, string][] = [
  ["a misspelt key", { instuctions: "Be nice." }, 'may not have the key "instuctions". Did you mean "instructions"?'],
  ["an unknown key", { colour: "red" }, 'may not have the key "colour". Known keys: id, name, model'],
  [
    "middleware that is no list",
    { middleware: {} },
    "middleware must be a list of middleware, each an object with a name.",
  ],
  ["middleware without a name", { middleware: [{}] }, "middleware must be a list of middleware"],
  ["tools that are none", { tools: [1] }, "tools must be an object of tools by name, or a list of such objects"],
  ["a setting of the wrong kind", { settings: { temperature: "hot" } }, "settings.temperature must be a number."],
  ["an unknown setting", { settings: { temprature: 1 } }, 'the key "settings.temprature". Did you mean "temperature"?'],
  ["an unknown limit", { limits: { iteration: 1 } }, 'the key "limits.iteration". Did you mean "iterations"?'],
  ["what to do at a limit", { limits: { onIterations: "go" } }, 'limits.onIterations must be one of "stop", "ask".'],
  ["a way to retry", { retry: { attempt: 1 } }, 'the key "retry.attempt". Did you mean "attempts"?'],
  ["a way to save", { persistAfterTurn: "no" }, "persistAfterTurn must be true or false."],
  ["a permission mode", { permissions: { mode: "yes" } }, 'permissions.mode must be one of "ask", "allow", "deny".'],
  ["a logger", { logger: {} }, "logger must be an object with a function warn."],
];

describe("an agent", () => {
  test.each(wrongAgents)("refuses %s", (_, options, sentence) => {
    const model = scriptedModel(["ok"]);
    expect(() => createAgent({ model, ...options })).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(sentence) }),
    );
  });

  test("takes keys that are there without a value", () => {
    expect(() => createAgent({ model: scriptedModel([]), name: undefined, other: undefined } as never)).not.toThrow();
  });
});

const wrongRuns: [string, object, string][] = [
  ["a misspelt session", { sessionID: "s" }, 'may not have the key "sessionID". Did you mean "sessionId"?'],
  ["a signal that is none", { ...s, signal: "x" }, "signal must be an AbortSignal."],
  ["a way to ask", { ...s, questions: "maybe" }, 'questions must be one of "wait", "park", "deny".'],
  ["a branch that is none", { branch: "main" }, "branch must be a branch, with its sessionId and its id."],
  [
    "a branch of another session",
    { ...s, branch: { sessionId: "t", id: "main" } },
    'sessionId is "s", but the branch in hand has "t".',
  ],
  ["another branch than the one in hand", { branchId: "x", branch: { sessionId: "s", id: "main" } }, 'branchId is "x"'],
  ["metadata that is a list", { ...s, metadata: [] }, "metadata must be an object."],
  ["a temperature", { ...s, config: { temperature: "hot" } }, "config.temperature must be a number."],
  [
    "a misspelt setting",
    { ...s, config: { maxOutputToken: 1 } },
    'the key "config.maxOutputToken". Did you mean "maxOutputTokens"?',
  ],
  [
    "middleware that is no list",
    { ...s, config: { middleware: {} } },
    "config.middleware must be a list of middleware",
  ],
  ["tools in a list", { ...s, config: { tools: [1] } }, "config.tools must be an object of tools by name."],
  ["a limit", { ...s, config: { limits: { turnms: 1 } } }, 'the key "config.limits.turnms". Did you mean "turnMs"?'],
  ["a permission mode", { ...s, config: { permissionMode: "yes" } }, "config.permissionMode must be one of"],
];

describe("a run", () => {
  test.each(wrongRuns)("refuses %s, and writes nothing", async (_, options, sentence) => {
    const { agent } = await given(["ok"]);
    const error = await refused(agent.run("Go", options as never).result, "invalid_argument");
    expect(error.message).toContain(sentence);
    expect(await factTypes(agent)).toEqual([]);
  });

  test("takes a signal of another realm, and a branch in hand with its ids", async () => {
    const { agent } = await given(["one", "two"]);
    const { signal } = new AbortController();
    const foreign = { aborted: false, addEventListener() {}, removeEventListener() {} } as never as AbortSignal;
    const branch = await agent.loadBranch("s");
    expect(await agent.run("Go", { ...main, branch, signal }).text()).toBe("one");
    expect(await agent.run("Go", { branch, signal: foreign }).text()).toBe("two");
  });
});

const wrongCalls: [string, (agent: Awaited<ReturnType<typeof given>>["agent"]) => Promise<unknown>, string][] = [
  [
    "forkBranch",
    (a) => a.forkBranch(main, { state: "weird" } as never),
    'state must be one of "fork-point", "current", "none".',
  ],
  ["forkBranch", (a) => a.forkBranch(main, { fromMessage: "m" } as never), "fromMessage"],
  ["revertBranch", (a) => a.revertBranch(main, { toseq: 1 } as never), 'Did you mean "toSeq"?'],
  ["createSession", (a) => a.createSession("x", { meta: {} } as never), "meta"],
  ["updateSession", (a) => a.updateSession("s", { metdata: {} } as never), 'Did you mean "metadata"?'],
  ["listSessions", (a) => a.listSessions({ Limit: 1 } as never), 'Did you mean "limit"?'],
  ["createBranch", (a) => a.createBranch("s", { branchID: "b" } as never), 'Did you mean "branchId"?'],
  ["updateBranch", (a) => a.updateBranch({ sessionId: "s", branchId: "main" }, { title: "t" } as never), "title"],
  ["loadBranch", (a) => a.loadBranch({ sessionId: "s", branchId: "main" }, { seq: 1 } as never), "seq"],
  ["beginTurn", (a) => a.beginTurn(main, "x", { runID: "r" } as never), 'Did you mean "runId"?'],
  ["appendTurn", (a) => a.appendTurn(main, [], { reasons: "r" } as never), 'Did you mean "reason"?'],
  ["saveCheckpoint", (a) => a.saveCheckpoint(main, { lable: "l" } as never), "lable"],
  [
    "loadAtCheckpoint",
    (a) => a.loadAtCheckpoint(main, "c", { ifStale: "go" } as never),
    'ifStale must be one of "refuse"',
  ],
  ["events", (a) => a.events(main, { from: 1 } as never), "from"],
  ["messages", (a) => a.messages(main, { limit: 1 } as never), "limit"],
  ["interrupt", (a) => a.interrupt(main, { runID: "r" } as never), 'Did you mean "runId"?'],
  ["recover", (a) => a.recover({ resum: false } as never), 'Did you mean "resume"?'],
  ["recover", (a) => a.recover({ run: { question: "park" } } as never), 'Did you mean "questions"?'],
  ["keepRecovering", async (a) => a.keepRecovering({ everyMS: "1" } as never), 'Did you mean "everyMs"?'],
  [
    "keepRecovering",
    async (a) => a.keepRecovering({ everyMs: "1" } as never),
    "everyMs must be a number of milliseconds.",
  ],
  ["respond", (a) => a.respond(main, "q", {}, { user: "ann" } as never), "user"],
  ["answer", (a) => a.answer(main, "q", {}, { user: "ann" } as never), "user"],
  ["listInteractions", (a) => a.listInteractions({ sesionId: "s" } as never), 'Did you mean "sessionId"?'],
  ["revokePermission", (a) => a.revokePermission("s", { tool: "t", agentID: "a" } as never), 'Did you mean "agentId"?'],
  ["a scope", (a) => a.events({ sessionId: "s", branchID: "main" } as never), 'Did you mean "branchId"?'],
];

test.each(wrongCalls)("%s refuses options that it does not know", async (_, call, word) => {
  const { agent } = await given([]);
  const error = await refused(call(agent), "invalid_argument");
  expect(error.message).toContain(word);
  expect(await factTypes(agent)).toEqual([]);
  expect((await agent.listBranches("s")).length).toBe(1);
});
