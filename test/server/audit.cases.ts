// The audit log: section 10 of PROTOCOL.md.

import { expect, onTestFinished, test } from "vitest";
import type { Store } from "../../src/log/store.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { apiKeys, createApiKey, createServer, type Identity, type ServerOptions } from "../../src/server/index.ts";
import { type AuditPage, type AuditRecord, type Scope, scopes } from "../../src/wire/index.ts";
import { add, answerOf, expectProblem, gate, type OpenStore, quiet, requestOf, scope, until } from "./kit.ts";

/** A store that stays open when a server on it closes; with an operation in place of its own. */
async function storeWith(open: OpenStore, own: Partial<Store> = {}): Promise<Store> {
  const store = await open();
  onTestFinished(() => store.close());
  return new Proxy(store, {
    get(target, name: keyof Store) {
      if (name === "close") return async () => {};
      const value = own[name] ?? target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function serverOn(store: Store, options: Partial<ServerOptions> = {}) {
  const keys = new Map<string, Identity>();
  const script = [{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "Three."];
  const server = createServer({
    agents: {
      helper: { model: scriptedModel(script), tools: { add: { ...add, permission: true } }, logger: quiet },
    },
    store,
    auth: apiKeys((hash) => keys.get(hash)),
    limits: { requestsPerSecond: 10_000, burst: 10_000 },
    logger: quiet,
    ...options,
  });
  onTestFinished(() => server.close());
  const keyFor = (tenant: string, user: string, allowed: readonly Scope[] = scopes) => {
    const { key, hash } = createApiKey();
    keys.set(hash, { tenant, user, scopes: allowed });
    return { key, hash };
  };
  const ask = async (key: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    answerOf(
      await server.answer(requestOf(method, path, body, { "x-api-key": key, ...headers }), {
        target: path,
        remoteAddress: "192.0.2.7",
      }),
    );
  const audit = async (key: string, query = ""): Promise<AuditPage> => {
    const { status, body } = await ask(key, "GET", `/audit?limit=1000&order=oldest${query}`);
    expect(status, JSON.stringify(body)).toBe(200);
    return body;
  };
  return { server, keyFor, ask, audit };
}

const named = (records: readonly AuditRecord[]) => records.map(({ action, status }) => `${action} ${status}`);

export function describeAudit(open: OpenStore): void {
  const given = async (options: Partial<ServerOptions> = {}) => serverOn(await storeWith(open), options);

  test("10.1 changes and refusals are recorded: who, what, on what, with what outcome; plain reads are not", async () => {
    const { ask, audit, keyFor } = await given();
    const { key: ada, hash } = keyFor("t", "ada");
    const { key: reader } = keyFor("t", "rob", ["read"]);
    await ask(ada, "POST", "/sessions", { sessionId: "s" }, { "x-request-id": "first" });
    await ask(ada, "GET", "/sessions/s");
    const input = { input: "A secret wish", config: { permissionMode: "ask" } };
    const { runId } = (await ask(ada, "POST", `${scope}/inputs`, input)).body;
    const { id: interactionId } = await until(
      async () => (await ask(ada, "GET", `${scope}/state`)).body.interactions[0],
    );
    await ask(ada, "POST", `${scope}/responses`, { interactionId, answer: { approved: true, choice: "always" } });
    await ask(reader, "DELETE", "/sessions/s");
    await ask(reader, "GET", "/sessions/none");
    await ask(ada, "POST", "/sessions", { sessionId: "s" });
    await ask(ada, "GET", "/no-such-route");
    const { records } = await audit(ada);
    expect(named(records)).toEqual([
      "createSession 201",
      "submitInput 202",
      "respond 200",
      "deleteSession 403",
      "getSession 404",
      "createSession 409",
      "unknown 404",
    ]);
    const who = { user: "ada", credential: hash.slice(0, 12), address: "192.0.2.7", transport: "http" };
    const where = { agentId: "helper", sessionId: "s", branchId: "main" };
    expect(records[0]).toMatchObject({ ...who, requestId: "first", sessionId: "s", createdId: "s" });
    expect(records[1]).toMatchObject({ ...who, ...where, runId, mode: "ask" });
    expect(records[2]).toMatchObject({ ...who, ...where, interactionId, decision: "always" });
    expect(records[3]).toMatchObject({ user: "rob", sessionId: "s", code: "forbidden" });
    expect(records[4]).toMatchObject({ user: "rob", sessionId: "none", code: "session_not_found" });
    expect(records[5]).toMatchObject({ code: "session_exists" });
    const told = JSON.stringify(records);
    for (const secret of [ada, reader, hash, "secret wish"]) expect(told).not.toContain(secret);
    // Looking at the log is recorded, too.
    expect(named((await audit(ada)).records).at(-1)).toBe("audit 200");
  });

  test("10.1 frames of a socket are recorded as their routes, and the end of a stream whose key is revoked", async () => {
    let isAllowed = true;
    const { server, ask, audit, keyFor } = await given({
      authorize: (_identity, action) => isAllowed || action !== "socket",
    });
    const { key } = keyFor("t", "ada");
    await ask(key, "POST", "/sessions", { sessionId: "s" });
    const headers = { "x-api-key": key, "x-request-id": "hand" };
    const opened = await server.connect(requestOf("GET", `${scope}/ws`, undefined, headers));
    if (opened instanceof Response) return expect.fail(`${opened.status}`);
    const closed = gate();
    const replied = gate();
    const socket = opened({
      send: async (text) => void (text.includes('"reply"') && replied.open()),
      close: () => closed.open(),
      destroy: () => {},
      ping: () => {},
    });
    onTestFinished(() => socket.closed());
    socket.message(JSON.stringify({ type: "interrupt" }));
    await replied.passed;
    isAllowed = false;
    socket.message(JSON.stringify({ type: "interrupt" }));
    await closed.passed;
    const { records } = await audit(key, "&session=s");
    expect(named(records)).toEqual(["createSession 201", "interrupt 202", "socket 401"]);
    expect(records[1]).toMatchObject({ requestId: "hand.1", transport: "socket", branchId: "main", user: "ada" });
    expect(records[2]).toMatchObject({ code: "unauthorized", user: "ada" });
  });

  test("10.1 a server can record every read, or nothing", async () => {
    const every = await given({ audit: { level: "all" } });
    const { key } = every.keyFor("t", "ada");
    await every.ask(key, "GET", "/sessions");
    expect(named((await every.audit(key)).records)).toEqual(["listSessions 200"]);
    const nothing = await given({ audit: false });
    const { key: other } = nothing.keyFor("t", "ada");
    expectProblem(await nothing.ask(other, "GET", "/audit"), 404, "route_not_found");
  });

  test("10.2 the log is a tenant's own, read with scope admin, and no session that a client could reach", async () => {
    const { ask, audit, keyFor } = await given();
    const { key: ada } = keyFor("t", "ada");
    const { key: bob } = keyFor("other", "bob");
    const { key: weak } = keyFor("t", "rob", ["read", "write", "run", "approve"]);
    await ask(ada, "POST", "/sessions", { sessionId: "s" });
    expect((await audit(ada)).records).toHaveLength(1);
    expect((await audit(bob)).records).toEqual([]);
    expectProblem(await ask(weak, "GET", "/audit"), 403, "forbidden");
    const day = new Date().toISOString().slice(0, 10);
    for (const id of [day, `~audit/t~${day}`, `~audit%2Ft~${day}`]) {
      for (const method of ["GET", "DELETE"]) {
        expect([400, 404]).toContain((await ask(ada, method, `/sessions/${id}`)).status);
      }
    }
    const { sessions } = (await ask(ada, "GET", "/sessions")).body;
    expect(sessions.map(({ id }: { id: string }) => id)).toEqual(["s"]);
    const marked = { metadata: { "~audit": "day" } };
    expect((await ask(ada, "POST", "/sessions/search", marked)).status).toBe(400);
  });

  test("10.3 pages go in either direction, without gaps, and filters leave out the rest", async () => {
    const { ask, audit, keyFor } = await given();
    const { key: ada } = keyFor("t", "ada");
    const { key: bob } = keyFor("t", "bob");
    for (let i = 0; i < 7; i++) await ask(i % 2 ? bob : ada, "POST", "/sessions", { sessionId: `s${i}` });
    await ask(bob, "PATCH", "/sessions/none", { metadata: {} });
    const { records } = await audit(ada);
    expect(records).toHaveLength(8);
    for (const order of ["newest", "oldest"]) {
      const seen: AuditRecord[] = [];
      let after = "";
      do {
        const query = `/audit?order=${order}&limit=3&action=createSession${after && `&after=${after}`}`;
        const { body } = await ask(ada, "GET", query);
        expect(body.records.length).toBeLessThanOrEqual(3);
        seen.push(...body.records);
        after = body.records.length > 0 ? body.cursor : "";
      } while (after);
      const expected = records.slice(0, 7);
      expect(seen).toEqual(order === "oldest" ? expected : expected.reverse());
    }
    const only = async (query: string) => named((await audit(ada, query)).records);
    expect(await only("&session=s3")).toEqual(["createSession 201"]);
    expect(await only("&user=bob")).toEqual([...Array(3).fill("createSession 201"), "updateSession 404"]);
    expect(await only("&outcome=refused")).toEqual(["updateSession 404"]);
    expect(await only(`&after=${records[6]!.id}&action=updateSession`)).toEqual(["updateSession 404"]);
    expectProblem(await ask(ada, "GET", "/audit?after=nonsense"), 400, "invalid_argument");
  });

  test("10.3 several nodes write one log", async () => {
    const store = await storeWith(open);
    const nodes = [serverOn(store), serverOn(store)];
    const keys = nodes.map(({ keyFor }) => keyFor("t", "ada").key);
    for (const [i, { ask }] of nodes.entries()) {
      for (let n = 0; n < 5; n++) await ask(keys[i]!, "POST", "/sessions", { sessionId: `s${i}${n}` });
    }
    await Promise.all(nodes.map(({ audit }, i) => audit(keys[i]!)));
    const { records } = await nodes[0]!.audit(keys[0]!, "&action=createSession");
    expect(records.map(({ sessionId }) => sessionId).sort()).toEqual(
      [0, 1].flatMap((i) => [0, 1, 2, 3, 4].map((n) => `s${i}${n}`)),
    );
  });

  test("10.4 records of a stopped server are there at the next start, and those that are too old go", async () => {
    const store = await storeWith(open);
    const first = serverOn(store);
    await first.ask(first.keyFor("t", "ada").key, "POST", "/sessions", { sessionId: "s" });
    await first.server.close();
    const second = serverOn(store);
    const { key } = second.keyFor("t", "ada");
    expect(named((await second.audit(key)).records)).toEqual(["createSession 201"]);
    await second.server.close();
    const third = serverOn(store, { audit: { retainMs: 1 } });
    const { key: later } = third.keyFor("t", "ada");
    third.server.recover();
    const days = { metadata: { "~audit": "day" } };
    await until(async () => (await store.listSessions(days)).sessions.length === 0);
    expect((await third.audit(later)).records).toEqual([]);
    expect((await third.ask(later, "GET", "/sessions/s")).status).toBe(200);
  });

  test("10.5 a request does not wait for its record", async () => {
    const passage = gate();
    const store = await open();
    const { append } = store;
    const slow: Partial<Store> = {
      append: async (ref, events, options) => {
        if (ref.sessionId.startsWith("~audit/")) await passage.passed;
        return append.call(store, ref, events, options);
      },
    };
    const { ask, audit, keyFor } = serverOn(await storeWith(async () => store, slow));
    const { key } = keyFor("t", "ada");
    for (let i = 0; i < 20; i++) expect((await ask(key, "POST", "/sessions", {})).status).toBe(201);
    const read = audit(key);
    expect((await ask(key, "POST", "/sessions", {})).status).toBe(201);
    passage.open();
    expect((await read).records.length).toBeGreaterThanOrEqual(20);
  });

  test("10.5 requests without a credential are recorded at a bounded rate; the rest of them are counted", async () => {
    const store = await storeWith(open);
    const server = createServer({
      store,
      token: "the-token-of-the-server",
      limits: { requestsPerSecond: 10_000, burst: 10_000, guesses: 10_000 },
      logger: quiet,
    });
    onTestFinished(() => server.close());
    const ask = async (token: string, path: string) =>
      answerOf(await server.fetch(requestOf("GET", path, undefined, { authorization: `Bearer ${token}` })));
    for (let i = 0; i < 300; i++) expect((await ask(`guess-${i}`, "/sessions/s")).status).toBe(401);
    const { records } = (await ask("the-token-of-the-server", "/audit?limit=1000")).body as AuditPage;
    const refused = records.filter(({ code }) => code === "unauthorized");
    expect(refused[0]).toMatchObject({ action: "getSession", status: 401 });
    expect(refused.length).toBeLessThan(250);
    const lost = records.reduce((sum, each) => sum + (each.lost ?? 0), 0);
    expect(refused.length + lost).toBe(300);
    expect(JSON.stringify(records)).not.toContain("guess");
  });
}
