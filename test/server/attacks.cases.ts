// What an attacker and a careless client try over real connections. Names say what must not come of it.

import { connect } from "node:net";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { apiKeys, hashApiKey, type Identity } from "../../src/server/index.ts";
import { expectProblem, type Given, gate, given, type OpenStore, say, scope, until } from "./kit.ts";

const live = `${scope}/events/live`;

/** Sends bytes and gives back all that comes until the connection ends. */
function send(g: Given, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let told = "";
    const socket = connect(g.serving.port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (data) => {
      told += data;
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(told));
  });
}

const head = (g: Given, line: string, ...more: string[]) =>
  [`${line} HTTP/1.1`, "host: localhost", `authorization: Bearer ${g.server.token}`, ...more, "", ""].join("\r\n");

/** Whether a stream can be had: whether somebody gave a place back. */
const hasPlace = (g: Given) => async () => (await g.ask("GET", live)).status === 200;

export function describeAttacks(open: OpenStore): void {
  const start: typeof given = (script, options = {}) => given(script, { open, ...options });

  test("2.6 a client that leaves before its stream begins takes no place", async () => {
    let entering = Promise.resolve();
    let entered = 0;
    const auth = async (): Promise<Identity> => {
      entered++;
      await entering;
      return { tenant: "t", scopes: ["read", "write"] };
    };
    const g = await start([], { auth, limits: { streams: 2 } });
    await g.ask("POST", "/sessions", { sessionId: "s" });
    const { passed, open: enter } = gate();
    entering = passed;
    const before = entered;
    const leaving = Array.from({ length: 5 }, () => connect(g.serving.port, "127.0.0.1"));
    for (const socket of leaving) socket.on("error", () => {}).write(head(g, `GET ${live}`));
    await until(() => entered === before + 5);
    for (const socket of leaving) socket.destroy();
    // Answered before anybody is asked who it is: by then the server has seen the others leave.
    for (let i = 0; i < 3; i++) expect((await g.ask("GET", "//")).status).toBe(400);
    enter();
    await until(hasPlace(g));
  });

  test("2.6 a handshake that fails takes no place", async () => {
    const g = await start([], { limits: { streams: 2 } });
    for (let i = 0; i < 5; i++) {
      const told = await send(g, head(g, `GET ${scope}/ws`, "connection: upgrade", "upgrade: websocket"));
      expect(told).toMatch(/^HTTP\/1\.1 400/);
    }
    expect((await g.ask("GET", live)).status).toBe(200);
  });

  test("1.3, 1.8 a refused handshake is a problem document like any other", async () => {
    const g = await start([]);
    const upgrade = ["connection: upgrade", "upgrade: websocket", "connection: close"];
    const told = await send(g, `GET ${scope}/ws HTTP/1.1\r\nhost: localhost\r\n${upgrade.join("\r\n")}\r\n\r\n`);
    expect(told).toMatch(/^HTTP\/1\.1 401/);
    for (const name of ["www-authenticate", "x-content-type-options", "content-security-policy", "cache-control"]) {
      expect(told).toContain(`\r\n${name}: `);
    }
    expect(told).toContain("application/problem+json");
  });

  test("7.5 an offer of another protocol than WebSocket is ignored, and nothing behind it is read", async () => {
    const g = await start([]);
    const offer = ["connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABkAAQAAP__"];
    const body = '{"sessionId":"made"}';
    const json = ["content-type: application/json", `content-length: ${body.length}`];
    const told = await send(g, head(g, "POST /sessions", ...offer, ...json) + body + head(g, "GET /health"));
    expect(told).toMatch(/^HTTP\/1\.1 201/);
    expect(told.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(told).toMatch(/\r\nconnection: close\r\n/i);
    expect((await g.ask("GET", "/sessions/made")).status).toBe(200);
  });

  test.each([
    ["GET //health", 400],
    ["GET /sessions/../health", 400],
    ["GET /./health", 400],
    ["GET http://localhost/health", 200],
    ["GET http://localhost/x/../health", 400],
    ["GET http://evil.example/health", 421],
    ["GET http://user@localhost/health", 200],
    ["OPTIONS *", 400],
    ["GET *", 400],
    ["CONNECT localhost:80", 0],
  ])("1.4 the target of %s is answered with %i", async (line, status) => {
    const g = await start([]);
    const told = await send(g, head(g, line, "connection: close"));
    expect(Number(/^HTTP\/1\.1 (\d+)/.exec(told)?.[1] ?? 0)).toBe(status);
    if (status >= 400) expect(told).toContain('"type":"urn:bough:problem:');
    expect((await g.ask("GET", "/health")).status).toBe(200);
  });

  test("1.2 keys that every object has by birth are keys nobody knows", async () => {
    const { ask } = await start([]);
    for (const key of ["toString", "constructor", "hasOwnProperty", "valueOf"]) {
      expectProblem(await ask("POST", "/sessions", { [key]: "x" }), 400, "invalid_argument");
      expectProblem(await ask("GET", `/sessions?${key}=x`), 400, "invalid_argument");
      expectProblem(
        await ask("POST", `${scope}/inputs`, { input: "Hi", config: { [key]: 1 } }),
        400,
        "invalid_argument",
      );
      expectProblem(
        await ask("POST", `${scope}/inputs`, { input: [{ type: "text", text: "Hi", [key]: 1 }] }),
        400,
        "invalid_argument",
      );
    }
  });

  test("3.3 a search is never wider than it says", async () => {
    const { ask } = await start([]);
    for (const key of ["constructor", "prototype", "toString"]) {
      const answer = await ask("POST", "/sessions/search", { metadata: { [key]: "nobody has this" } });
      if (answer.status === 200) expect(answer.body.sessions).toEqual([]);
      else expectProblem(answer, 400, "invalid_argument");
    }
  });

  test("1.5 a body that is too large is answered over the connection, also when its length is a lie", async () => {
    const g = await start([]);
    const large = Buffer.alloc(3 * 1024 * 1024, 0x20);
    const json = { "content-type": "application/json" };
    expectProblem(await g.ask("POST", "/sessions", large, json), 413, "limit_exceeded");
    const chunked = `${(3 * 1024 * 1024).toString(16)}\r\n${large}\r\n0\r\n\r\n`;
    const told = await send(
      g,
      head(g, "POST /sessions", "content-type: application/json", "transfer-encoding: chunked", "connection: close") +
        chunked,
    );
    expect(told).toMatch(/^HTTP\/1\.1 413/);
  });

  test("7.2 what a key may do is looked up for every frame of a socket", async () => {
    const keys = new Map<string, Identity>();
    const allow = (...scopes: Identity["scopes"]) => keys.set(hashApiKey("k"), { tenant: "t", user: "u", scopes });
    allow("read", "write", "run");
    const g = await start(() => "Hi.", { auth: apiKeys((hash) => keys.get(hash)) });
    await g.ask("POST", "/sessions", { sessionId: "s" }, { "x-api-key": "k" });
    const ws = new WebSocket(`${g.serving.url.replace("http", "ws")}${scope}/ws`, ["bough", "bough-token.k"]);
    const replies: { status: number }[] = [];
    ws.on("message", (data) => {
      const frame = JSON.parse(String(data));
      if (frame.type === "reply") replies.push(frame);
    });
    await new Promise((resolve) => ws.once("open", resolve));
    const ask = async () => {
      const before = replies.length;
      ws.send(JSON.stringify({ type: "interrupt" }));
      return until(() => replies[before]);
    };
    expect(await ask()).toMatchObject({ status: 202 });
    allow("read");
    expect(await ask()).toMatchObject({ status: 403, body: { code: "forbidden" } });
    allow("read", "run");
    expect(await ask()).toMatchObject({ status: 202 });
    ws.terminate();
  });

  test("6.10 a reader that never takes what was there before it came is dropped", async () => {
    const g = await start(() => "x".repeat(100_000), { limits: { streams: 1, heartbeatMs: 20 } });
    for (let i = 0; i < 60; i++) await say(g, `${i}`);
    const socket = connect(g.serving.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(head(g, `GET ${live}`));
    await new Promise((resolve) => socket.once("readable", resolve));
    expectProblem(await g.ask("GET", live), 429, "rate_limited");
    await until(hasPlace(g));
    socket.destroy();
  });

  test("a server whose authentication fails says so, ends its streams and lives", async () => {
    let isBroken = false;
    const auth = (): Identity => {
      if (isBroken) throw new Error("the directory is down: ldap://secret");
      return { tenant: "t", scopes: ["read", "write"] };
    };
    const g = await start([], { auth, limits: { heartbeatMs: 20 } });
    await g.ask("POST", "/sessions", { sessionId: "s" });
    const stream = await g.live(live);
    await stream.until(({ type }) => type === "ready");
    isBroken = true;
    const answer = await g.ask("GET", "/health");
    expectProblem(answer, 500, "server_failed");
    expect(JSON.stringify(answer.body)).not.toContain("ldap");
    await stream.toEnd();
    expect(stream.frames.at(-1)).toMatchObject({ type: "end", reason: "unauthorized" });
    isBroken = false;
    expect((await g.ask("GET", "/health")).status).toBe(200);
  });
}
