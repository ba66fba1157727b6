// The front of a server: what a client can hold, fill or slip past. Over real connections.

import { expect, test } from "vitest";
import { apiKeys, createServer, hashApiKey, type Identity } from "../../src/server/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { routes, scopes } from "../../src/wire/index.ts";
import { Accepted, bearer, Holding, head, webSocket } from "./connections.ts";
import {
  answerOf,
  expectProblem,
  type Given,
  gate,
  given,
  type OpenStore,
  quiet,
  requestOf,
  scope,
  until,
} from "./kit.ts";

const main = "/sessions/s/branches/main";
const content = `${main}/content`;
const fillers = (count: number) => Array.from({ length: count }, (_, i) => `x-filler-${i}: ${i}`);

/** Everything a connection answers until the server closes it. */
async function send(g: Given, bytes: string): Promise<Holding> {
  const holding = new Holding(g.serving.port, bytes);
  await until(() => holding.isEnded);
  return holding;
}

/** Tenants whose keys are their names, and what was looked up. */
function tenants(...names: string[]) {
  const keys = new Map(names.map((tenant) => [hashApiKey(tenant), { tenant, scopes } satisfies Identity]));
  const lookups: string[] = [];
  const auth = apiKeys((hash) => {
    lookups.push(hash);
    return keys.get(hash);
  });
  return { auth, lookups };
}

export function describeFront(open: OpenStore): void {
  const start: typeof given = (script, options = {}) => given(script, { open, ...options });

  test("7.1 a route that is no WebSocket, asked for one, is refused, does nothing and is closed", async () => {
    const g = await start([]);
    const before = (await g.ask("GET", "/sessions/s")).body;
    for (const { method, path } of Object.values(routes).filter(({ gives }) => gives !== "socket")) {
      const target = path.replace(":sessionId", "s").replace(":branchId", "main").replace(":agentId", "helper");
      const line = `${method} ${target.replace(/:\w+/g, "x")}`;
      const { told } = await send(g, head(line, [bearer(g), ...webSocket]));
      expect(told, line).toMatch(/^HTTP\/1\.1 400/);
      expect(told, line).toContain('"code":"invalid_argument"');
    }
    expect((await g.ask("GET", "/sessions")).body.sessions).toEqual([before]);
    expect((await g.ask("GET", content)).body.content).toEqual([]);
  });

  test("7.1 a handshake with a body is refused", async () => {
    const g = await start([]);
    for (const body of [["content-length: 3"], ["transfer-encoding: chunked"]]) {
      const told = await send(g, `${head(`GET ${scope}/ws`, [bearer(g), ...webSocket, ...body])}abc`);
      expect(told.status).toBe(400);
    }
  });

  test("7.1 a handshake whose client leaves is given up: its request's signal aborts", async () => {
    const signals: AbortSignal[] = [];
    const { passed, open: enter } = gate();
    const auth = async (request: Request): Promise<Identity> => {
      signals.push(request.signal);
      await passed;
      return { tenant: "t", scopes: ["read"] };
    };
    const accepted = new Accepted();
    const g = await start([], { auth });
    const leaving = new Holding(g.serving.port, head(`GET ${scope}/ws`, webSocket));
    await until(() => signals.length === 1);
    expect(signals[0]!.aborted).toBe(false);
    leaving.socket.end();
    await until(() => signals[0]!.aborted);
    expect(accepted.held(g)).toBe(0);
    enter();
  });

  test("7.2 frames that come before the handshake is done are not lost", async () => {
    const { passed, open: enter } = gate();
    let entered = 0;
    const g = await start([], {
      auth: async (): Promise<Identity> => {
        if (entered++ > 0) await passed;
        return { tenant: "t", scopes };
      },
    });
    await g.ask("POST", "/sessions", { sessionId: "s" });
    // A text frame, masked with zeros.
    const frame = (id: string) => {
      const payload = Buffer.from(JSON.stringify({ type: "interrupt", id }));
      return Buffer.concat([Buffer.from([0x81, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
    };
    const early = new Holding(g.serving.port, "");
    early.socket.write(Buffer.concat([Buffer.from(head(`GET ${scope}/ws`, webSocket)), frame("one")]));
    await until(() => entered === 2);
    early.socket.write(frame("two"));
    for (let i = 0; i < 3; i++) expect((await g.ask("GET", "//")).status).toBe(400);
    enter();
    await until(() => early.told.includes('"id":"two"'));
    expect(early.told).toContain('"id":"one"');
    expect(early.status).toBe(101);
  });

  test("7.5 the body of a request that offers another protocol is a body, whatever it looks like", async () => {
    const g = await start([]);
    const inner = head("POST /sessions", [bearer(g), "content-type: application/json", "content-length: 24"]);
    const body = `${inner}{"sessionId":"smuggled"}`;
    const offer = [bearer(g), "connection: Upgrade", "upgrade: foo"];
    const length = `content-length: ${body.length}`;
    const few = await send(g, head(`POST ${content}`, [...offer, ...fillers(90), length]) + body);
    expect(few.status).toBe(201);
    const many = await send(g, head(`POST ${content}`, [...offer, ...fillers(120), length]) + body);
    expect(many.status).toBe(431);
    for (const { told } of [few, many]) expect(told.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expectProblem(await g.ask("GET", "/sessions/smuggled"), 404, "session_not_found");
  });

  test("7.5 what comes in a later packet behind an offer is not read, either", async () => {
    const { passed, open: enter } = gate();
    let entered = 0;
    const auth = async (): Promise<Identity> => {
      entered++;
      await passed;
      return { tenant: "t", scopes };
    };
    const g = await start([], { auth });
    const offering = new Holding(g.serving.port, head("GET /health", ["connection: Upgrade", "upgrade: h2c"]));
    await until(() => entered === 1);
    const json = ["content-type: application/json", "content-length: 22"];
    offering.socket.write(`${head("POST /sessions", json)}{"sessionId":"behind"}`);
    offering.socket.write(head(`GET ${scope}/ws`, webSocket));
    // Its own connection is answered after the other's bytes were there.
    for (let i = 0; i < 3; i++) expect((await g.ask("GET", "//")).status).toBe(400);
    enter();
    await until(() => offering.isEnded);
    expect(offering.status).toBe(200);
    expect(offering.told.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expectProblem(await g.ask("GET", "/sessions/behind"), 404, "session_not_found");
  });

  test("7.5 a handshake behind a request that is not answered yet is refused in its turn", async () => {
    const g = await start([]);
    const both = head("GET /health", [bearer(g)]) + head(`GET ${scope}/ws`, [bearer(g), ...webSocket]);
    const { told } = await send(g, both);
    expect(told.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
  });

  test("1.9 a request with more than a hundred headers is refused, and none of them is overlooked", async () => {
    const g = await start([]);
    // With host, authorization and connection there are three more.
    const ask = (...headers: string[]) => send(g, head("GET /health", [bearer(g), "connection: close", ...headers]));
    expect((await ask(...fillers(97))).status).toBe(200);
    expect((await ask(...fillers(96), "origin: http://evil.example")).status).toBe(403);
    for (const count of [98, 130, 500]) {
      const told = await ask(...fillers(count), "origin: http://evil.example");
      expect(told.status).toBe(431);
      expect(told.told).toContain('"code":"headers_refused"');
    }
    const upgrade = await send(g, head(`GET ${scope}/ws`, [bearer(g), ...webSocket, ...fillers(120)]));
    expect(upgrade.status).toBe(431);
  });

  test("1.10 an answer of which nothing is taken is dropped, and gives back what it held", async () => {
    const accepted = new Accepted();
    const limits = { stalledMs: 1000, tenantBytes: 20 * 1024 * 1024 };
    const g = await start([], { limits });
    const { id } = (await g.ask("POST", content, new Uint8Array(16 * 1024 * 1024).fill(7))).body;
    const get = head(`GET ${content}/${id}`, [bearer(g)]);
    const before = accepted.count(g);
    new Holding(g.serving.port, get, { reads: false });
    await until(() => accepted.count(g) > before);
    await until(() => accepted.held(g) === 0);
    const again = await g.ask("GET", `${content}/${id}`);
    expect(again.status).toBe(200);
    expect(again.headers.get("content-length")).toBe(String(16 * 1024 * 1024));
  });

  test("2.6 uploads that stall use up their tenant's bytes, then all tenants'; a client that leaves gives them back", async () => {
    const { auth } = tenants("a", "b", "c");
    const g = await start([], { auth, limits: { tenantBytes: 300_000, processBytes: 500_000 } });
    const key = (name: string) => ({ "x-api-key": name });
    const upload = (name: string) => g.ask("POST", content, new Uint8Array(150_000).fill(1), key(name));
    const stall = (name: string) =>
      new Holding(
        g.serving.port,
        `${head(`POST ${content}`, [`x-api-key: ${name}`, "content-length: 250000"])}${"x".repeat(200_000)}`,
      );
    for (const name of ["a", "b", "c"]) await g.ask("POST", "/sessions", { sessionId: "s" }, key(name));
    // An upload of ours that is in transit when the stalled one begins can have that one refused instead.
    const refusedWhileStalled = async (staller: string, name: string) => {
      let stalled = stall(staller);
      const refused = await until(async () => {
        if (stalled.status !== 0) stalled = stall(staller);
        const answer = await upload(name);
        return answer.status !== 201 && answer;
      });
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      return { stalled, refused };
    };
    expect((await upload("a")).status).toBe(201);
    const first = await refusedWhileStalled("a", "a");
    expectProblem(first.refused, 429, "rate_limited");
    expect((await upload("b")).status).toBe(201);
    const second = await refusedWhileStalled("b", "c");
    expectProblem(second.refused, 503, "server_busy");
    first.stalled.socket.destroy();
    await until(async () => (await upload("c")).status === 201);
    expect((await upload("a")).status).toBe(201);
  });

  test("2.8 guesses from an address are not looked up for ever, and block neither the page nor other people", async () => {
    const { auth, lookups } = tenants("known", "new");
    const limits = { guesses: 20 };
    const g = await start([], { auth, page: "<p>Hello</p>", limits });
    const health = (key: string) => g.ask("GET", "/health", undefined, { "x-api-key": key });
    expect((await health("known")).status).toBe(200);
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async (_, i) => (await health(`guess ${i}`)).status),
    );
    expect(statuses.filter((status) => status === 401)).toHaveLength(20);
    expect(statuses.filter((status) => status === 429)).toHaveLength(80);
    expect(lookups).toHaveLength(21);
    const late = await health("new");
    expectProblem(late, 429, "rate_limited");
    expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await g.ask("GET", "/")).status).toBe(200);
    expect((await health("known")).status).toBe(200);
    const request = requestOf("GET", "/health", undefined, { "x-api-key": "new" });
    const elsewhere = await g.server.answer(request, { target: "/health", remoteAddress: "192.0.2.1" });
    expect((await answerOf(elsewhere)).status).toBe(200);
  });

  test.each(["", "x", "fifteen--chars-", "sixteen chars and a space", "sechzehn-zeichen-ä"])(
    "2.9 a server does not start with the token %j",
    (token) => {
      expect(() => createServer({ store: memoryStore(), token, logger: quiet })).toThrow(/at least 16 characters/);
    },
  );

  test("8.4 a form has few parts with few headers, and its file's name is a name", async () => {
    const { ask } = await start([]);
    const upload = (...parts: string[]) =>
      ask("POST", content, `${parts.map((part) => `--b\r\n${part}\r\n`).join("")}--b--\r\n`, {
        "content-type": "multipart/form-data; boundary=b",
      });
    const field = (name: string) => `content-disposition: form-data; name="${name}"\r\n\r\nvalue`;
    let count = 0;
    const file = (name: string) =>
      `content-disposition: form-data; name="file"; filename="${name}"\r\n\r\nfile ${++count}`;
    const others = Array.from({ length: 16 }, (_, i) => field(`f${i}`));
    expect(await upload(...others.slice(1), file("x.txt"))).toMatchObject({
      status: 201,
      body: { name: "x.txt", size: 6 },
    });
    expectProblem(await upload(...others, file("x.txt")), 413, "limit_exceeded");
    expectProblem(await upload(file("x".repeat(17_000))), 413, "limit_exceeded");
    expect((await upload(file("x".repeat(16_000)))).body.name).toBe("x".repeat(255));
    expect((await upload(file("../\u202egnp.exe\u0085"))).body.name).toBe("gnp.exe");
    expectProblem(await upload(field("file")), 400, "invalid_argument");
    expectProblem(await upload(field("other")), 400, "invalid_argument");
  });
}
