// What a server refuses with nothing configured: foreign pages, rebound names, floods, revoked keys.

import { get } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { createAgent } from "../../src/agent/index.ts";
import type { Store } from "../../src/log/store.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { apiKeys, createApiKey, createServer, hashApiKey, serve } from "../../src/server/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { routes, scopes } from "../../src/wire/index.ts";
import {
  answerOf,
  expectProblem,
  given,
  LiveStream,
  type OpenStore,
  quiet,
  requestOf,
  say,
  scope,
  until,
} from "./kit.ts";

const longToken = "sixteen-or-more-of-them";

export function describeSecurity(open: OpenStore): void {
  const start: typeof given = (script, options = {}) => given(script, { open, ...options });

  test("2.1 a server makes a token of its own, long enough, and gives it in the start URL's fragment", async () => {
    const g = await start([]);
    const { url, startUrl } = g.serving;
    expect(Buffer.from(g.server.token!, "base64url").length).toBeGreaterThanOrEqual(16);
    expect(startUrl).toBe(`${url}/#token=${g.server.token}`);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:/);
    expect((await fetch(`${url}/health`)).status).toBe(401);
    expect((await fetch(`${url}/health?token=${g.server.token}`)).status).toBe(401);
    expect((await fetch(`${url}/health`, { headers: { "x-api-key": g.server.token! } })).status).toBe(200);
    expect((await start([])).server.token).not.toBe(g.server.token);
  });

  test("2.1 a page is shown to anybody, and lets nothing run but what is its own", async () => {
    const page = "<!doctype html><style>p{}</style><script>1</script><p>Hello</p>";
    const { ask } = await start([], { page });
    const anybody = { authorization: "" };
    const shown = await ask("GET", "/", undefined, anybody);
    expect(shown).toMatchObject({ status: 200, body: page });
    expect(shown.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(shown.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='; style-src 'sha256-gG2yISYereRMiG2lMXrbiUgi0Ubw9p7QCeWcroOvy9Y='; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(shown.headers.get("x-frame-options")).toBe("DENY");
    expectProblem(await ask("GET", "/health", undefined, anybody), 401, "unauthorized");
    expectProblem(await ask("GET", "/", undefined, { ...anybody, host: "evil.example" }), 421, "host_refused");
    expectProblem(await (await start([])).ask("GET", "/", undefined, anybody), 401, "unauthorized");
  });

  test("2.1 a server listens on this machine only, unless it is told its names", async () => {
    const server = createServer({ store: memoryStore(), logger: quiet });
    await expect(serve(server, { port: 0, host: "0.0.0.0" })).rejects.toMatchObject({ code: "invalid_argument" });
    await server.close();
  });

  test.each(["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io", "0.0.0.0", "localhost."])(
    "2.4 host %j is refused on every route",
    async (host) => {
      const { ask } = await start([]);
      for (const { method, path } of Object.values(routes)) {
        expectProblem(await ask(method, path.replace(/:\w+/g, "x"), undefined, { host }), 421, "host_refused");
      }
    },
  );

  test("2.4 a forged Host is refused over a real connection", async () => {
    const g = await start([]);
    const { port } = g.serving;
    const status = await new Promise((resolve, reject) => {
      const headers = { host: "evil.example", authorization: `Bearer ${g.server.token}` };
      get({ port, host: "127.0.0.1", path: "/health", headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).on("error", reject);
    });
    expect(status).toBe(421);
  });

  test.each([
    "http://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://localhost:1",
    "https://127.0.0.1",
  ])("2.5 origin %s is refused", async (origin) => {
    const { ask } = await start([]);
    expectProblem(await ask("POST", "/sessions", {}, { origin }), 403, "origin_refused");
    const preflight = await ask("OPTIONS", "/sessions", undefined, { origin, "access-control-request-method": "POST" });
    expect(preflight.headers.get("access-control-allow-origin")).toBeNull();
  });

  test("2.5 the server's own origin and configured ones are let in, and only those get CORS headers", async () => {
    const { ask } = await start([], { origins: ["https://app.example"] });
    expect((await ask("GET", "/health", undefined, { origin: "http://localhost", host: "localhost" })).status).toBe(
      200,
    );
    const allowed = await ask("GET", "/health", undefined, { origin: "https://app.example" });
    expect(allowed.headers.get("access-control-allow-origin")).toBe("https://app.example");
    const preflight = await ask("OPTIONS", "/sessions", undefined, { origin: "https://app.example" });
    expect(preflight.status).toBe(204);
    expectProblem(
      await ask("GET", "/health", undefined, { origin: "https://app.example.evil" }),
      403,
      "origin_refused",
    );
    expectProblem(await ask("GET", "/health", undefined, { "sec-fetch-site": "cross-site" }), 403, "origin_refused");
  });

  test("2.6 too many requests are told when to come again; others still get in", async () => {
    const keys = new Map(["a", "b"].map((tenant) => [hashApiKey(tenant), { tenant, scopes }]));
    const server = createServer({
      store: memoryStore(),
      auth: apiKeys((hash) => keys.get(hash)),
      limits: { burst: 3, requestsPerSecond: 0.1 },
      logger: quiet,
    });
    const ask = async (key: string) =>
      answerOf(await server.fetch(requestOf("GET", "/health", undefined, { "x-api-key": key })));
    for (let i = 0; i < 3; i++) expect((await ask("a")).status).toBe(200);
    const refused = await ask("a");
    expectProblem(refused, 429, "rate_limited");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await ask("b")).status).toBe(200);
    await server.close();
  });

  test("2.6 runs at the same time are bounded", async () => {
    const g = await start(() => new Promise<string>(() => {}), { limits: { runs: 1 } });
    await g.ask("POST", `${scope}/fork`, { newBranchId: "f" });
    expect((await g.ask("POST", `${scope}/inputs`, { input: "Hi" })).status).toBe(202);
    const other = "/agents/helper/sessions/s/branches/f/inputs";
    expectProblem(await g.ask("POST", other, { input: "Hi" }), 429, "rate_limited");
  });

  test("2.7 a stream ends when its key is revoked", async () => {
    const { key, hash } = createApiKey();
    const keys = new Map([[hash, { tenant: "t", scopes }]]);
    const auth = apiKeys((each) => keys.get(each));
    const g = await start([], { auth, limits: { heartbeatMs: 20 } });
    const headers = { "x-api-key": key };
    await g.ask("POST", "/sessions", { sessionId: "s" }, headers);
    const live = await g.live(`${scope}/events/live`, headers);
    await live.until(({ type }) => type === "ready");
    keys.delete(hash);
    await live.toEnd();
    expect(live.frames.at(-1)).toMatchObject({ type: "end", reason: "unauthorized", after: 1 });
  });

  test("2.7 a stream that is still told of the past ends when its key is revoked", async () => {
    const { key, hash } = createApiKey();
    const keys = new Map([[hash, { tenant: "t", scopes }]]);
    let asked = 0;
    const auth = apiKeys((each) => {
      asked++;
      return keys.get(each);
    });
    const g = await start([], { auth, limits: { heartbeatMs: 50 } });
    const headers = { "x-api-key": key };
    await g.ask("POST", "/sessions", { sessionId: "s" }, headers);
    for (let i = 0; i < 60; i++) await g.ask("PATCH", "/sessions/s/branches/main", { name: `${i}` }, headers);
    const response = await g.server.fetch(requestOf("GET", `${scope}/events/live`, undefined, headers));
    keys.delete(hash);
    const before = asked;
    await until(() => asked > before);
    const live = new LiveStream(response);
    await live.toEnd();
    const { after } = live.frames.at(-1) as { after: number };
    expect(live.frames.at(-1)).toMatchObject({ type: "end", reason: "unauthorized" });
    expect(after).toBeLessThan(61);
  });

  test("API keys are known by their hashes alone", () => {
    const { key, hash } = createApiKey();
    expect(hash).toBe(hashApiKey(key));
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(hash).not.toContain(key);
  });

  test("an agent that exists is served on its own store, and not to tenants", async () => {
    const agent = createAgent({ model: scriptedModel(["Hi."]), id: "mine", store: memoryStore() });
    await agent.createSession("before");
    expect(() => createServer({ agents: { mine: agent }, auth: () => undefined })).toThrow(/options/);
    expect(() => createServer({ agents: { mine: agent }, store: memoryStore() })).toThrow(
      /must use the server's store/,
    );
    const server = createServer({ agents: { mine: agent }, token: longToken, logger: quiet });
    const headers = { authorization: `Bearer ${longToken}` };
    expect(
      (await answerOf(await server.fetch(requestOf("GET", "/sessions", undefined, headers)))).body.sessions,
    ).toMatchObject([{ id: "before" }]);
    await server.close();
  });

  test("what goes wrong inside is not told outside", async () => {
    const store = memoryStore();
    const secret = "/var/lib/secret.db is on fire";
    const broken = new Proxy(store, {
      get(target, name: keyof Store) {
        if (name === "listSessions") return () => Promise.reject(new Error(secret));
        const value = target[name];
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const server = createServer({ store: broken, token: longToken, logger: quiet });
    const answer = await answerOf(
      await server.fetch(requestOf("GET", "/sessions", undefined, { authorization: `Bearer ${longToken}` })),
    );
    expectProblem(answer, 500, "server_failed");
    expect(JSON.stringify(answer.body)).not.toContain("secret");
    await server.close();
  });

  test("bytes that are no HTTP leave the server as it was", async () => {
    const g = await start([]);
    const { url, port } = g.serving;
    for (const bytes of [
      "\0\0\0",
      "GET /health\r\n\r\n",
      "POST /sessions HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
    ]) {
      await new Promise<void>((resolve) => {
        const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
        socket.on("close", () => resolve());
        socket.on("error", () => resolve());
        socket.resume();
      });
    }
    expect((await fetch(`${url}/health`, { headers: { "x-api-key": g.server.token! } })).status).toBe(200);
  });

  test("6.10 a client that takes nothing is dropped, and what waits for it is given up", async () => {
    const g = await start(() => "x".repeat(200_000), { limits: { streams: 1, bufferBytes: 100_000, heartbeatMs: 30 } });
    const { port } = g.serving;
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(
      `GET ${scope}/events/live HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${g.server.token}\r\n\r\n`,
    );
    await new Promise((resolve) => socket.once("data", resolve));
    socket.pause();
    // A run that nobody holds up, until the kernel's buffers are full and the server's own too.
    for (let i = 0; i < 40; i++) await say(g, `${i}`);
    await until(async () => {
      const response = await g.server.fetch(
        requestOf("GET", `${scope}/events/live?after=5`, undefined, { authorization: `Bearer ${g.server.token}` }),
      );
      await response.body?.cancel();
      return response.status === 200;
    });
    socket.destroy();
  });
}
