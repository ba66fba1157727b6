// Every route of the table, asked by everybody who must not get through. A route that is added to the table is asked too.

import { beforeAll, describe, expect, test } from "vitest";
import { scriptedModel } from "../../src/scripted/index.ts";
import { apiKeys, createApiKey, createServer, type Identity, type Server } from "../../src/server/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { type Route, routes, type Scope, scopes } from "../../src/wire/index.ts";
import { answerOf, expectProblem, quiet, requestOf } from "./kit.ts";

const all = (Object.entries(routes) as [string, Route][]).map(([name, route]) => ({ name, ...route }));
const keys = new Map<string, Identity>();

function keyFor(tenant: string, allowed: readonly Scope[] = scopes): string {
  const { key, hash } = createApiKey();
  keys.set(hash, { tenant, user: `${tenant}-user`, scopes: allowed });
  return key;
}

const ann = keyFor("ann");
const bob = keyFor("bob");
const revoked = createApiKey().key;
let server: Server;
let contentId: string;
let messageId: string;

async function ask(method: string, path: string, key: string | undefined, body?: unknown) {
  return answerOf(await server.fetch(requestOf(method, path, body, key === undefined ? {} : { "x-api-key": key })));
}

const params: Record<string, string> = {
  agentId: "stored",
  sessionId: "s",
  branchId: "f",
  checkpointId: "c",
  runId: "r",
};

/** The path of something that Ann has. */
function pathOf({ path }: Route): string {
  return path.replace(/:(\w+)/g, (_, name: string) => (name === "contentId" ? contentId : params[name]!));
}

/** A body that Ann's own request could have. */
function bodyOf({ name, body, takes }: Route & { name: string }): unknown {
  if (takes) return new Uint8Array([1, 2, 3]);
  const config = { model: "scripted/a" };
  const known: Record<string, unknown> = {
    updateSession: { metadata: { stolen: true } },
    revertBranch: { toMessageIndex: 0 },
    respond: { interactionId: "i", answer: {} },
    submitInput: { input: "Hi" },
    createAgent: { config },
    updateAgent: { config },
    createSession: { sessionId: "s2" },
    createBranch: { branchId: "b2" },
    forkBranch: { newBranchId: "f2", fromMessageId: messageId },
    forkCheckpoint: { newBranchId: "f3" },
  };
  return body && (known[name] ?? {});
}

beforeAll(async () => {
  const model = scriptedModel(() => "Secret of Ann.");
  const models = { "scripted/a": model };
  server = createServer({
    agents: { helper: { model } },
    definitions: { models },
    store: memoryStore(),
    auth: apiKeys((hash) => keys.get(hash)),
    limits: { requestsPerSecond: 10_000, burst: 10_000 },
    logger: quiet,
  });
  const main = "/agents/stored/sessions/s/branches/main";
  await ask("POST", "/agents", ann, {
    agentId: "stored",
    config: { model: "scripted/a", instructions: "Ann's words" },
  });
  await ask("POST", "/sessions", ann, { sessionId: "s", metadata: { owner: "ann" } });
  await ask("POST", `${main}/inputs`, ann, { input: "Ann's question" });
  for (;;) {
    const { body } = await ask("GET", `${main}/state`, ann);
    messageId = body.messages[0]?.id;
    if (body.messages.length === 2) break;
  }
  await ask("POST", `${main}/fork`, ann, { newBranchId: "f" });
  await ask("POST", "/sessions/s/branches/f/checkpoints", ann, { checkpointId: "c" });
  contentId = (await ask("POST", "/sessions/s/branches/f/content", ann, new TextEncoder().encode("Ann's file"))).body
    .id;
  return () => server.close();
});

describe.each(all)("$method $path", (route) => {
  test("2.1 nobody gets through without a valid key", async () => {
    for (const key of [undefined, "wrong", revoked]) {
      expectProblem(await ask(route.method, pathOf(route), key, bodyOf(route)), 401, "unauthorized");
    }
    const inQuery = `${pathOf(route)}?token=${ann}&x-api-key=${ann}`;
    expectProblem(await ask(route.method, inQuery, undefined, bodyOf(route)), 401, "unauthorized");
  });

  test("2.2 nobody gets through without the scope", async () => {
    const others = keyFor(
      "ann",
      scopes.filter((each) => each !== route.scope),
    );
    expectProblem(await ask(route.method, pathOf(route), others, bodyOf(route)), 403, "forbidden");
  });

  test.each(["stored", "helper"])(
    "2.3 another tenant's request, by agent %s, finds nothing and says nothing",
    async (agentId) => {
      const isTheirs = route.path.includes(":sessionId") || (route.path.includes(":agentId") && agentId === "stored");
      if (!isTheirs) return;
      const path = pathOf(route).replace("/agents/stored", `/agents/${agentId}`);
      const answer = await ask(route.method, path, bob, bodyOf(route));
      expect(answer.status, JSON.stringify(answer.body)).toBe(404);
      const foreign = JSON.stringify(answer.body);
      // The same words as for something that nobody has.
      const nowhere = path.replace("/agents/stored", "/agents/nobody").replace("/sessions/s", "/sessions/none");
      const missing = await ask(route.method, nowhere, bob, bodyOf(route));
      expect(foreign).toBe(JSON.stringify(missing.body).replaceAll("nobody", "stored").replaceAll("none", "s"));
      expect(foreign).not.toMatch(/ann|~/i);
    },
  );
});

test("2.3 another tenant gets no socket", async () => {
  const path = "/agents/helper/sessions/s/branches/f/ws";
  const open = (key: string) => server.connect(requestOf("GET", path, undefined, { "x-api-key": key }));
  expect(await open(ann)).toBeTypeOf("function");
  expect(await open(bob)).toMatchObject({ status: 404 });
  expect(await open("wrong")).toMatchObject({ status: 401 });
});

test("2.3 lists and searches show a tenant its own only", async () => {
  await ask("POST", "/sessions", bob, { sessionId: "s", metadata: { owner: "bob" } });
  const seen = async (key: string) => [
    (await ask("GET", "/sessions", key)).body.sessions,
    (await ask("POST", "/sessions/search", key, { metadata: { owner: "ann" } })).body.sessions,
    (await ask("GET", "/agents", key)).body.agents.map(({ id }: { id: string }) => id),
  ];
  const [bobs, found, agents] = await seen(bob);
  expect(bobs).toMatchObject([{ id: "s", metadata: { owner: "bob" } }]);
  expect(Object.keys(bobs[0].metadata)).toEqual(["owner"]);
  expect(found).toEqual([]);
  expect(agents).toEqual(["helper"]);
  const [anns] = await seen(ann);
  expect(anns.map(({ id }: { id: string }) => id)).toContain("s");
  expect(anns.every(({ metadata }: { metadata: { owner?: string } }) => metadata.owner !== "bob")).toBe(true);
});

test("2.3 what a tenant's name looks like makes no way into another", async () => {
  const names = ["a", "a/b", "a~b", "a.2f.b", "ann~", "../ann", "A", "á"];
  const own = names.map((name) => keyFor(name));
  for (const [i, key] of own.entries()) await ask("POST", "/sessions", key, { sessionId: `of-${i}` });
  for (const [i, key] of own.entries()) {
    const { sessions } = (await ask("GET", "/sessions", key)).body;
    expect(sessions.map(({ id }: { id: string }) => id)).toEqual([`of-${i}`]);
  }
});
