// Mounts: section 11 of PROTOCOL.md. Another protocol behind the same door, with the same rules.

import { expect, test, vi } from "vitest";
import { BoughError, openSessions } from "../../src/index.ts";
import { createServer, type Mount, type MountCall, type ServerOptions } from "../../src/server/index.ts";
import { NamespacedStore, sessionsOf } from "../../src/stores/namespaced/index.ts";
import type { Scope } from "../../src/wire/index.ts";
import { answerOf, expectProblem, gate, type OpenStore, quiet, requestOf, until } from "./kit.ts";
import { get, givenMounts as given, mountOf, placeOf, talk } from "./mount-kit.ts";

export function describeMounts(open: OpenStore): void {
  test("11.1 a mount answers below its path and the server's prefix, with the same credentials and headers", async () => {
    const seen: MountCall[] = [];
    const route = get(
      "look",
      (call) => {
        seen.push(call);
        return Response.json({ url: call.request.url, user: call.identity.user, ...call.params });
      },
      { path: "/look/:what" },
    );
    const { ask } = await given(open, mountOf(route), { prefix: "/api" });
    const found = await ask("GET", "/api/chat/look/here?x=1", undefined, { "x-request-id": "mine" });
    expect(found).toMatchObject({
      status: 200,
      body: { url: "http://localhost/api/chat/look/here?x=1", user: "user of a", what: "here" },
    });
    expect(Object.fromEntries(found.headers)).toMatchObject({
      "x-request-id": "mine",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "cache-control": "no-store",
    });
    expect(seen[0]!.requestId).toBe("mine");
    expect(seen[0]!.signal.aborted).toBe(true);
    expectProblem(await ask("GET", "/chat/look/here"), 404, "route_not_found");
    expectProblem(await ask("POST", "/api/chat/look/here"), 404, "route_not_found");
    expectProblem(await ask("HEAD", "/api/chat/look/here").then(headProblem), 404, "route_not_found");
    expectProblem(await ask("GET", `/api/chat/look/${"x".repeat(300)}`), 400, "invalid_argument");
    expect(seen).toHaveLength(1);
  });

  test("4.13 a mount can't write to a hidden branch, as the routes can't", async () => {
    const write = get(
      "write",
      async (call) => {
        const place = { ...placeOf(call), branchId: "h" };
        await call.tenant.readBranch(place);
        return Response.json(await call.tenant.submitInput(place, { input: "Hi" }));
      },
      { method: "POST", path: "/write/:sessionId", scope: "run" },
    );
    const store = await open();
    const { ask } = await given(async () => store, mountOf(write));
    const sessions = await openSessions(new NamespacedStore(store, sessionsOf("a")));
    const owner = { sessionId: "s", branchId: "main", turnId: "t", kind: "subagent" };
    await sessions.createBranch("s", { branchId: "h", owner, visibility: "hidden" });
    expectProblem(await ask("POST", "/chat/write/s", {}), 403, "branch_hidden");
    expect((await sessions.getBranch({ sessionId: "s", branchId: "h" })).seq).toBe(1);
  });

  test("11.1 what the door refuses never reaches a mount", async () => {
    const handle = vi.fn(() => new Response("in"));
    const authorize: ServerOptions["authorize"] = ({ user }, action, { sessionId }) =>
      !(action === "chat.write" && sessionId === "closed" && user === "user of a");
    const write = get("write", handle, { method: "POST", path: "/write/:sessionId", scope: "write" });
    const { server, ask } = await given(open, mountOf(write), { authorize, limits: { bodyBytes: 64 } });
    const post = (path: string, headers: Record<string, string> = {}, body: unknown = {}) =>
      ask("POST", path, body, headers);
    expectProblem(await answerOf(await server.fetch(requestOf("POST", "/chat/write/s", {}, {}))), 401, "unauthorized");
    expectProblem(await post("/chat/write/s", { "x-scopes": "read,run" }), 403, "forbidden");
    expectProblem(await post("/chat/write/closed"), 403, "forbidden");
    expectProblem(await post("/chat/write/s", { host: "evil.example" }), 421, "host_refused");
    expectProblem(await post("/chat/write/s", { origin: "http://evil.example" }), 403, "origin_refused");
    expectProblem(await post("/chat/write/..%2f..%2fhealth"), 400, "invalid_argument");
    expectProblem(await post("/chat/write/s", {}, { text: "x".repeat(100) }), 413, "limit_exceeded");
    expectProblem(await post("/chat/write/s", { "content-encoding": "gzip" }), 415, "media_type_refused");
    expect(handle).not.toHaveBeenCalled();
    expect(await post("/chat/write/s")).toMatchObject({ status: 200, body: "in" });
  });

  test("11.1 a route's body may be larger than others, and is counted while its handler works", async () => {
    const { passed, open: goOn } = gate();
    const upload = get("upload", async ({ request }) => {
      const { byteLength } = await request.arrayBuffer();
      await passed;
      return Response.json({ byteLength });
    });
    const mount = mountOf({ ...upload, method: "POST", bodyBytes: 1000 });
    const { ask } = await given(open, mount, { limits: { bodyBytes: 64, tenantBytes: 1500 } });
    const first = ask("POST", "/chat/upload", new Uint8Array(1000));
    await until(async () => (await ask("POST", "/chat/upload", new Uint8Array(1000))).status === 429);
    expectProblem(await ask("POST", "/chat/upload", new Uint8Array(1001)), 413, "limit_exceeded");
    goOn();
    expect((await first).body).toEqual({ byteLength: 1000 });
    expect((await ask("POST", "/chat/upload", new Uint8Array(900))).status).toBe(200);
  });

  test("11.1 a tenant's rate holds for mounts and routes together, and leaves other tenants alone", async () => {
    const route = get("look", () => new Response("ok"));
    const { ask } = await given(open, mountOf(route), { limits: { requestsPerSecond: 0.001, burst: 4 } });
    for (const path of ["/chat/look", "/health", "/chat/look"]) expect((await ask("GET", path)).status).toBe(200);
    const refused = await ask("GET", "/chat/look");
    expectProblem(refused, 429, "rate_limited");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await ask("GET", "/chat/look", undefined, { "x-api-key": "b" })).status).toBe(200);
  });

  test("11.1 what a mount throws becomes a problem: its code when it is known, nothing of it when not", async () => {
    const warnings: unknown[] = [];
    const { ask, audit } = await given(
      open,
      mountOf(
        get("broken", () => {
          throw new Error("the password is x");
        }),
        get("missing", () => {
          throw new BoughError("session_not_found", 'There is no session "q".');
        }),
        get("invalid", (({ json }: MountCall) => json()) as never, { method: "POST" }),
        get("odd", () => Response.error()),
      ),
      { logger: { warn: (...words: unknown[]) => void warnings.push(words) } },
    );
    const broken = await ask("GET", "/chat/broken", undefined, { "x-request-id": "r1" });
    expectProblem(broken, 500, "server_failed");
    expect(JSON.stringify(broken.body)).not.toContain("password");
    expect(String(warnings[0])).toContain("r1");
    expectProblem(await ask("GET", "/chat/missing"), 404, "session_not_found");
    expectProblem(await ask("GET", "/chat/odd"), 500, "server_failed");
    const invalid = (body: string, type = "application/json") =>
      ask("POST", "/chat/invalid", body, { "content-type": type });
    expectProblem(await invalid("{"), 400, "invalid_argument");
    expectProblem(await invalid('{"__proto__":1}'), 400, "invalid_argument");
    expectProblem(await invalid("[".repeat(100) + "]".repeat(100)), 413, "limit_exceeded");
    expectProblem(await invalid("{}", "text/plain"), 415, "media_type_refused");
    const failed = (await audit()).filter(({ action }) => action === "chat.broken");
    expect(failed).toMatchObject([{ status: 500, code: "server_failed", requestId: "r1", user: "user of a" }]);
  });

  test("11.1 a response whose headers can't be changed, such as a redirect, is answered as it is", async () => {
    const { fetch } = await given(open, mountOf(get("away", () => Response.redirect("http://localhost/else", 303))));
    const response = await fetch("GET", "/chat/away");
    expect(response.status).toBe(303);
    expect(response.headers.get("location")).toBe("http://localhost/else");
    expect(response.headers.get("x-request-id")).toBeTruthy();
  });

  test("11.1 pages of allowed origins may send and read the headers that a mount names", async () => {
    const origin = "http://app.example";
    const mount = { ...mountOf(get("look", () => new Response("ok"))), ...{ requestHeaders: ["mcp-session-id"] } };
    const mounts = [{ ...mount, responseHeaders: ["mcp-session-id"] }];
    const { fetch } = await given(open, mounts, { origins: [origin] });
    const asked = await fetch("OPTIONS", "/chat/look", undefined, { origin });
    expect(asked.headers.get("access-control-allow-headers")).toMatch(/authorization.*, mcp-session-id$/);
    const got = await fetch("GET", "/chat/look", undefined, { origin });
    expect(got.headers.get("access-control-expose-headers")).toMatch(/x-request-id, mcp-session-id$/);
    const foreign = await fetch("OPTIONS", "/chat/look", undefined, { origin: "http://evil.example" });
    expect(foreign.headers.get("access-control-allow-headers")).toBeNull();
  });

  test("11.2 a run through a mount: watched from before its input, its texts sent as they come", async () => {
    const { fetch, ask } = await given(open, mountOf(talk));
    const response = await fetch("POST", "/chat/s", { input: "Hi" });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(response.headers.get("x-chat")).toBe("v1");
    const told = await response.text();
    const shown = [...told.matchAll(/event: text\ndata: (.*)\n\n/g)].map(([, text]) => text).join("");
    expect(shown).toBe("Hello there.");
    expect(told).toMatch(/event: done\nid: last\ndata: \{"ok":true\}\n\n$/);
    const { messages } = (await ask("GET", "/sessions/s/branches/main/messages")).body;
    expect(messages.map(({ role }: { role: string }) => role)).toEqual(["user", "assistant"]);
  });

  test("11.2 every action of a mount needs its own scope, asks the policy, and is recorded", async () => {
    const asked: string[] = [];
    const authorize: ServerOptions["authorize"] = (_, action, ids) => {
      asked.push(`${action} ${JSON.stringify(ids)}`);
      return action !== "interrupt";
    };
    const act = get(
      "act",
      async (call) => {
        const { tenant } = call;
        const place = placeOf(call);
        const { status } = await tenant.submitInput(place, { input: "Hi" }, { idempotencyKey: "once" });
        await tenant.submitInput(place, { input: "Hi" }, { idempotencyKey: "once" });
        const refused = await tenant.interrupt(place).catch(({ problem }) => problem.code);
        return Response.json({ status, refused });
      },
      { path: "/act/:sessionId" },
    );
    const { ask, audit } = await given(open, mountOf(act), { authorize });
    const done = await ask("GET", "/chat/act/s", undefined, { "x-request-id": "r" });
    expect(done.body).toEqual({ status: "started", refused: "forbidden" });
    const place = '{"agentId":"helper","sessionId":"s","branchId":"main"}';
    expect(asked.slice(1)).toEqual([
      'chat.act {"sessionId":"s"}',
      `submitInput ${place}`,
      `submitInput ${place}`,
      `interrupt ${place}`,
    ]);
    expectProblem(await ask("GET", "/chat/act/s", undefined, { "x-scopes": "read,write" }), 403, "forbidden");
    const records = (await audit()).slice(1).map(({ requestId, action, status, sessionId }) => {
      return { requestId, action, status, sessionId };
    });
    expect(records.slice(0, 3)).toEqual([
      { requestId: "r.1", action: "submitInput", status: 202, sessionId: "s" },
      { requestId: "r.2", action: "submitInput", status: 202, sessionId: "s" },
      { requestId: "r.3", action: "interrupt", status: 403, sessionId: "s" },
    ]);
    expect(records.slice(3)).toMatchObject([
      { action: "submitInput", status: 403 },
      { action: "chat.act", status: 403 },
    ]);
    const { messages } = (await ask("GET", "/sessions/s/branches/main/messages")).body;
    expect(messages.filter(({ role }: { role: string }) => role === "user")).toHaveLength(1);
  });

  test("11.2 what a client may configure is the same through a mount, and so are the schemas", async () => {
    const { ask } = await given(open, mountOf(talk));
    for (const config of [{ model: "other/model" }, { instructions: "x" }]) {
      expectProblem(await ask("POST", "/chat/s", { input: "Hi", config }), 403, "forbidden");
    }
    expectProblem(await ask("POST", "/chat/s", { input: "Hi", tools: {} }), 400, "invalid_argument");
    expectProblem(await ask("POST", "/chat/unknown", { input: "Hi" }), 404, "session_not_found");
  });

  test("11.2 a mount sees the tenant of whoever asks, and no other", async () => {
    const peek = get(
      "peek",
      async (call) => {
        const { sessions } = await call.tenant.listSessions({ limit: 10 });
        const read = call.tenant.readBranch(placeOf(call)).then(
          ({ branch }) => branch.messages.length,
          (error) => error.code,
        );
        return Response.json({ sessions: sessions.map(({ id }) => id), read: await read });
      },
      { path: "/peek/:sessionId" },
    );
    const { ask } = await given(open, mountOf(peek, talk));
    await ask("POST", "/chat/s", { input: "Hi" });
    const b = { "x-api-key": "b" };
    expect((await ask("GET", "/chat/peek/s")).body).toEqual({ sessions: ["s"], read: 2 });
    expect((await ask("GET", "/chat/peek/s", undefined, b)).body).toEqual({ sessions: [], read: "session_not_found" });
    expectProblem(await ask("POST", "/chat/s", { input: "Hi" }, b), 404, "session_not_found");
  });

  test("11.2 sessions, forks, questions and answers are reached through a mount", async () => {
    const script = [{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "Three."];
    const ask_ = get(
      "whole",
      async ({ tenant }) => {
        const { id: sessionId } = await tenant.createSession({ metadata: { by: "chat" } });
        const place = { agentId: (await tenant.listAgents())[0]!.id, sessionId, branchId: "main" };
        const frames = await tenant.watch(place);
        await tenant.submitInput(place, { input: "1 + 2", config: { permissionMode: "ask" } });
        for await (const frame of frames) {
          if (frame.type !== "event") continue;
          const { event } = frame;
          if (event.type === "interaction.opened") {
            await tenant.respond(place, { interactionId: event.id, answer: { approved: true } });
          }
          if (event.type === "turn.committed") break;
        }
        const { branch } = await tenant.readBranch(place);
        const fork = await tenant.forkBranch(place, { fromMessageId: branch.messages[0]!.id, newBranchId: "again" });
        const { metadata } = await tenant.getSession(sessionId);
        return Response.json({ last: branch.messages.at(-1), fork: fork.id, metadata });
      },
      { method: "POST", scope: "run" },
    );
    const { ask } = await given(open, mountOf(ask_), {}, script);
    const { body } = await ask("POST", "/chat/whole", {});
    expect(body).toMatchObject({ last: { role: "assistant" }, fork: "again", metadata: { by: "chat" } });
    expect(JSON.stringify(body.last)).toContain("Three.");
  });

  test.each<[string, Mount | Mount[], RegExp]>([
    [
      "below a built-in route",
      { ...mountOf(), path: "/sessions/chat" },
      /paths below "\/sessions" are reserved for built-in routes/,
    ],
    ["at a built-in route", { ...mountOf(), path: "/openapi.json" }, /reserved for built-in routes/],
    ["at the root", { ...mountOf(), path: "" }, /must be like/],
    ["with a trailing slash", { ...mountOf(), path: "/chat/" }, /must be like/],
    ["with dots", { ...mountOf(), path: "/a/../sessions" }, /must be like/],
    ["with an encoded path", { ...mountOf(), path: "/%73essions" }, /must be like/],
    ["with a pattern as its path", { ...mountOf(), path: "/:any" }, /must be like/],
    ["below another", [mountOf(), { ...mountOf(), name: "two", path: "/chat/two" }], /overlap/],
    ["with another's name", [mountOf(), { ...mountOf(), path: "/two" }], /Two mounts have the name "chat"/],
    ["with a name that has a dot", { ...mountOf(), name: "a.b" }, /name of a mount/],
    ["with a route's path that is no path", mountOf({ ...talk, path: "talk" }), /must have a path like .*, not "talk"/],
    ["with a scope that there is not", mountOf({ ...talk, scope: "root" as Scope }), /has the unknown scope "root"/],
    ["with a method that there is not", mountOf({ ...talk, method: "HEAD" as "GET" }), /has the unknown method "HEAD"/],
    ["with a route twice", mountOf(talk, talk), /is defined twice/],
    [
      "with two routes of one path",
      mountOf(talk, { ...talk, name: "b", path: "/:id" }),
      /same path and method as route "talk"/,
    ],
    ["with a header that is none", { ...mountOf(), requestHeaders: ["a, b"] }, /not a valid header name/],
  ])("11.1 a server is not made with a mount %s", (_, mounts, sentence) => {
    const make = () => createServer({ logger: quiet, mounts: Array.isArray(mounts) ? mounts : [mounts] });
    expect(make).toThrow(sentence);
    expect(make).toThrow(BoughError);
  });
}

/** A HEAD has no body to look into. */
function headProblem(answer: Awaited<ReturnType<typeof answerOf>>) {
  return { ...answer, body: { code: "route_not_found", status: answer.status } };
}
