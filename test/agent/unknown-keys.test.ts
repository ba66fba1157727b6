// Every call that takes options refuses keys that it does not know, near and far: a misspelt `dryRun` must not delete.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { createClient } from "../../src/client/index.ts";
import { createAgent, defineEvent, defineState, defineTool, openSessions, subagent } from "../../src/index.ts";
import { mcpTools } from "../../src/mcp/index.ts";
import { createServer, type Server, type Serving, serve } from "../../src/server/index.ts";
import { fileStore } from "../../src/stores/file/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { postgresStore } from "../../src/stores/postgres/index.ts";
import { redisStore } from "../../src/stores/redis/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const odd = { oddKey: 1 };
const model = () => scriptedModel(() => "Hi.");
const bytes = new Uint8Array(1);

/** Calls of methods by name, each with options that have a key too many. */
type Calls = readonly [method: string, ...args: unknown[]][];

async function refuses(target: object, method: string, args: readonly unknown[]): Promise<void> {
  const call = async () => {
    const made = await (target as Record<string, (...args: unknown[]) => unknown>)[method]!(...args);
    if (made === null || typeof made !== "object") return made;
    if ("result" in made) return made.result;
    return Symbol.asyncIterator in made && "next" in made ? (made as AsyncGenerator).next() : made;
  };
  const error = await call().then(
    (made) => expect.fail(`${method} takes an odd key and gives ${JSON.stringify(made)}`),
    (error: Error) => error,
  );
  expect(error).toMatchObject({ code: "invalid_argument", message: expect.stringContaining("oddKey") });
}

const ofSessions: Calls = [
  ["createSession", "new", odd],
  ["ensureSession", "new", odd],
  ["listSessions", odd],
  ["updateSession", "s", odd],
  ["updateSession", "s", {}, odd],
  ["createBranch", "s", odd],
  ["loadBranch", "s", odd],
  ["listBranches", "s", odd],
  ["updateBranch", "s", odd],
  ["forkBranch", "s", odd],
  ["revertBranch", "s", odd],
  ["deleteBranch", "s", odd],
  ["compact", "s", odd],
  ["checkCompaction", "s", odd],
  ["beginTurn", "s", "Go", odd],
  ["resumeTurn", "s", odd],
  ["takeInputs", "s", odd],
  ["appendTurn", "s", [], odd],
  ["answer", "s", "q", {}, odd],
  ["listInteractions", odd],
  ["queueInput", "s", "Go", odd],
  ["editInput", "s", "i", odd],
  ["withdrawInput", "s", "i", odd],
  ["revokePermission", "s", { tool: "t", ...odd }],
  ["saveCheckpoint", "s", odd],
  ["loadAtCheckpoint", "s", "c", odd],
  ["pruneCheckpoints", "s", odd],
  ["deleteInactiveSessions", { olderThan: 0, ...odd }],
  ["putContent", "s", { bytes, ...odd }],
  ["getContent", "s", "c", odd],
  ["updateContent", "s", "c", odd],
  ["events", "s", odd],
  ["watch", "s", odd],
  ["messages", "s", odd],
];

const ofAgent: Calls = [
  ...ofSessions,
  ["run", "Go", { sessionId: "s", ...odd }],
  ["submit", "Go", { sessionId: "s", ...odd }],
  ["respond", "s", "q", {}, odd],
  ["interrupt", "s", odd],
  ["signal", "s", { name: "n", ...odd }],
  ["signal", "s", { name: "n" }, odd],
  ["recover", odd],
  ["keepRecovering", odd],
  ["close", odd],
];

const ofBranch: Calls = [
  ["run", "Go", odd],
  ["submit", "Go", odd],
  ["interrupt", odd],
  ["update", odd],
  ["delete", odd],
  ["state", odd],
  ["messages", odd],
  ["events", odd],
  ["watch", odd],
  ["fork", odd],
  ["revert", { toSeq: 1, ...odd }],
  ["compact", odd],
  ["checkCompaction", odd],
];

/** Methods of which no argument is an object of options. */
const withoutOptions = ["constructor"];
const ofSessionsWithout = [
  ...withoutOptions,
  ...[
    "getSession",
    "deleteSession",
    "getBranch",
    "siblings",
    "uncompact",
    "listCompactions",
    "pin",
    "unpin",
    "listPins",
  ],
  ...["promptOf", "diffPrompts", "listQueue", "listPermissions", "loadSessionAndBranch", "saveSessionAndBranch"],
  ...[
    "listCheckpoints",
    "listTasks",
    "deleteCheckpoints",
    "deleteOlderThan",
    "listContent",
    "deleteContent",
    "contentUrl",
    "maintain",
    "close",
  ],
];

function methodsOf(object: object): string[] {
  const described = Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(object)));
  return described.filter(([, { value }]) => typeof value === "function").map(([name]) => name);
}

describe("sessions", () => {
  test.each(ofSessions)("%s refuses an unknown key, and changes nothing", async (method, ...args) => {
    const sessions = await openSessions();
    await sessions.createSession("s");
    await refuses(sessions, method, args);
    expect((await sessions.listSessions()).sessions.map(({ id }) => id)).toEqual(["s"]);
    await sessions.close();
  });

  test("have no other method with options", async () => {
    const sessions = await openSessions();
    const known = new Set([...ofSessionsWithout, ...ofSessions.map(([method]) => method)]);
    expect(methodsOf(sessions).filter((method) => !known.has(method))).toEqual([]);
    await sessions.close();
  });
});

describe("an agent", () => {
  test.each(ofAgent)("%s refuses an unknown key", async (method, ...args) => {
    const agent = createAgent({ model: model() });
    await agent.createSession("s");
    await refuses(agent, method, args);
    await agent.close();
  });

  test("has no other method with options", () => {
    const agent = createAgent({ model: model() });
    const without = [...ofSessionsWithout, "branch", "session", "subscribe", "contextUsage", "cancelTask"];
    const known = new Set([...without, ...ofAgent.map(([method]) => method)]);
    expect(methodsOf(agent).filter((method) => !known.has(method))).toEqual([]);
  });

  test.each(["run", "submit"] as const)("%s refuses a third argument, which JavaScript would drop", async (method) => {
    const agent = createAgent({ model: model() });
    await agent.createSession("s");
    const call = agent[method] as (...args: unknown[]) => { result?: Promise<unknown> } | Promise<unknown>;
    const made = async () => {
      const run = await call.call(agent, "Go", "s", { questions: "park" });
      return (run as { result?: Promise<unknown> }).result;
    };
    await expect(made()).rejects.toThrow(`${method} takes an input and options. Put the session into the options`);
    expect((await agent.loadBranch("s")).messages).toEqual([]);
    await agent.close();
  });

  test("refuses an ifActive that is none, and writes nothing", async () => {
    const agent = createAgent({ model: model() });
    await agent.createSession("s");
    const submitted = agent.submit("Go", { sessionId: "s", ifActive: "que" as "queue" });
    await expect(submitted).rejects.toThrow('ifActive must be one of "reject", "queue", "steer", "interrupt".');
    expect((await agent.loadBranch("s")).messages).toEqual([]);
    await agent.close();
  });
});

describe("handles", () => {
  let server: Server;
  let serving: Serving;
  beforeAll(async () => {
    server = createServer({ agents: { helper: { model: model() } } });
    serving = await serve(server, { port: 0 });
    await clientOf().createSession("s");
  });
  afterAll(() => serving.close());
  const clientOf = () => createClient({ url: serving.url, token: server.token, agentId: "helper" });

  test.each(ofBranch)("a local branch's %s refuses an unknown key", async (method, ...args) => {
    const agent = createAgent({ model: model() });
    await agent.createSession("s");
    await refuses(agent.branch("s"), method, args);
    await agent.close();
  });

  test.each([...ofBranch, ["subscribe", { onEvent() {}, ...odd }], ["live", odd], ["runs", odd]] as Calls)(
    "a server's branch's %s refuses an unknown key",
    (method, ...args) => refuses(clientOf().branch("s"), method, args),
  );

  test.each([
    ["createSession", "new", odd],
    ["ensureSession", "new", odd],
    ["listSessions", odd],
    ["listSessions", { metadata: {}, ...odd }],
    ["updateSession", "s", { metadata: {}, ...odd }],
    ["listInteractions", odd],
    ["revokePermission", "s", { tool: "t", ...odd }],
    ["listBranches", "s", odd],
    ["branchPage", "s", odd],
    ["tree", "s", odd],
    ["createBranch", "s", odd],
    ["createAgent", { config: { model: "m/m" }, ...odd }],
    ["updateAgent", "a", { config: { model: "m/m" }, ...odd }],
    ["audit", odd],
  ] as Calls)("a client's %s refuses an unknown key", (method, ...args) => refuses(clientOf(), method, args));

  test.each(["local", "remote"])("a session (%s) refuses unknown keys", async (where) => {
    const agent = createAgent({ model: model() });
    await agent.createSession("s");
    const session = (where === "local" ? agent : clientOf()).session("s");
    await refuses(session, "update", [{ metadata: {}, ...odd }]);
    await refuses(session, "createBranch", [odd]);
    await refuses(session, "revokePermission", [{ tool: "t", ...odd }]);
    await agent.close();
  });
});

const schema = z.object({});
const child = createAgent({ model: model() });
test.each<[string, () => unknown]>([
  ["createAgent", () => createAgent({ model: model(), ...odd })],
  ["openSessions", () => openSessions(undefined, odd as object)],
  ["createServer", () => createServer({ agents: {}, ...odd } as object)],
  ["serve", () => serve(createServer({ agents: {} }), { port: 0, ...odd } as object)],
  ["createClient", () => createClient({ url: "http://127.0.0.1:1", ...odd } as { url: string })],
  ["memoryStore", () => memoryStore(odd as object)],
  ["sqliteStore", () => sqliteStore(":memory:", odd as object)],
  ["fileStore", () => fileStore("/nowhere", odd as object)],
  ["postgresStore", () => postgresStore("postgres://127.0.0.1:1/x", odd as object)],
  ["redisStore", () => redisStore("redis://127.0.0.1:1", odd as object)],
  ["subagent", () => subagent(child, { description: "Helps.", ...odd })],
  ["defineEvent", () => defineEvent({ type: "order.placed", kept: true, schema, ...odd })],
  ["defineState", () => defineState({ key: "k", scope: "run", initial: 0, ...odd })],
  ["mcpTools", () => mcpTools({ url: "http://127.0.0.1:1" }, odd as object)],
  ["mcpTools", () => mcpTools({ url: "http://127.0.0.1:1", ...odd } as { url: string })],
])("%s refuses an unknown key", async (_, make) => {
  await expect((async () => make())()).rejects.toThrow(/oddKey/);
});

describe("middleware", () => {
  const withOne = (middleware: object) => () => createAgent({ model: model(), middleware: [middleware as never] });

  test.each<[string, object, string]>([
    ["a misspelt hook", { name: "m", beforTurn() {} }, 'Did you mean "beforeTurn"?'],
    ["a hook that is no function", { name: "m", beforeTurn: 5 }, "beforeTurn must be a function."],
    ["state that is no list", { name: "m", state: "weird" }, "state must be a list of state made by defineState."],
    ["tools in a list", { name: "m", tools: [1] }, "tools must be an object."],
  ])("with %s is refused", async (_, middleware, sentence) => {
    expect(withOne(middleware)).toThrow(sentence);
    const agent = createAgent({ model: model() });
    const run = agent.run("Go", { config: { middleware: [middleware as never] } });
    await expect(run.result).rejects.toThrow(sentence);
    await agent.close();
  });

  test("may be an object of a class with members of its own", () => {
    class Counter {
      readonly name = "counter";
      counted = 0;
      beforeTurn() {
        this.counted++;
      }
    }
    expect(withOne(new Counter())).not.toThrow();
  });

  test("state has one of three scopes", () => {
    expect(() => defineState({ key: "k", scope: "turn" as "run", initial: 0 })).toThrow(
      'scope must be one of "run", "branch", "session".',
    );
  });
});

test("a tool may have keys of another library", async () => {
  const input = schema;
  const taken = createAgent({ model: model(), tools: { t: { ...defineTool({ input, execute: () => 1 }), ...odd } } });
  expect((await taken.run("Go").result).status).toBe("completed");
});
