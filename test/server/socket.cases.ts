// The WebSocket: section 7 of PROTOCOL.md, over real connections.

import { expect, onTestFinished, test, vi } from "vitest";
import { WebSocket } from "ws";
import { apiKeys, hashApiKey } from "../../src/server/index.ts";
import type { Frame, ReplyFrame } from "../../src/wire/index.ts";
import { add, type Given, given, held, type OpenStore, scope, settled, until } from "./kit.ts";

type Down = Frame | ReplyFrame;

class Client {
  readonly ws: WebSocket;
  readonly frames: Down[] = [];
  closed: { code: number; reason: string } | undefined;
  refusedWith: number | undefined;

  constructor(url: string, protocols: readonly string[], headers: Record<string, string> = {}) {
    this.ws = new WebSocket(url, [...protocols], { headers });
    this.ws.on("message", (data) => this.frames.push(JSON.parse(String(data))));
    this.ws.on("close", (code, reason) => {
      this.closed = { code, reason: String(reason) };
    });
    this.ws.on("unexpected-response", (_request, response) => {
      this.refusedWith = response.statusCode;
      response.resume();
      this.ws.terminate();
    });
    this.ws.on("error", () => {});
    onTestFinished(() => this.ws.terminate());
  }

  until<T extends Down>(fits: (frame: Down) => frame is T): Promise<T>;
  until(fits: (frame: Down) => boolean): Promise<Down>;
  until(fits: (frame: Down) => boolean): Promise<Down> {
    return until(() => this.frames.find(fits));
  }

  async ask(frame: Record<string, unknown>): Promise<ReplyFrame> {
    const id = String(Math.random());
    this.ws.send(JSON.stringify({ ...frame, id }));
    return (await this.until((each) => each.type === "reply" && each.id === id)) as ReplyFrame;
  }
}

const isEvent = (type: string) => (frame: Down) => frame.type === "event" && frame.event.type === type;
const isReady = ({ type }: Down) => type === "ready";

async function connect(g: Given, query = "", headers: Record<string, string> = {}): Promise<Client> {
  const at = `${g.serving.url.replace("http", "ws")}${scope}/ws${query}`;
  return new Client(at, ["bough", `bough-token.${g.server.token}`], headers);
}

export function describeSocket(open: OpenStore): void {
  const start: typeof given = (script, options = {}) => given(script, { open, ...options });

  test("7.1 opening a socket asks for its own branch only, however many there are", async () => {
    const g = await start([]);
    const listing = vi.spyOn(g.store, "listBranches").mockRejectedValue(new Error("All branches were asked for."));
    onTestFinished(() => listing.mockRestore());
    const client = await connect(g);
    await client.until(isReady);
    expect(client.refusedWith).toBeUndefined();
  });

  test("7.1 a socket carries the frames of the stream, with the same cursor", async () => {
    const g = await start(["Hello."]);
    const client = await connect(g, "?after=1");
    await client.until(isReady);
    expect(client.ws.protocol).toBe("bough");
    await client.ask({ type: "input", input: "Hi" });
    await client.until(isEvent("run-end"));
    const kept = client.frames.flatMap((frame) => (frame.type === "event" && frame.event.seq ? [frame.event] : []));
    expect(kept).toMatchObject((await g.ask("GET", "/sessions/s/branches/main/events?after=1")).body.events);
    expect(client.frames.some(isEvent("text-delta"))).toBe(true);
  });

  test("7.1 before the upgrade, refusals are answers", async () => {
    const g = await start([]);
    const { url } = g.serving;
    const at = url.replace("http", "ws");
    const token = `bough-token.${g.server.token}`;
    const refused = async (path: string, protocols: string[], headers = {}) => {
      const client = new Client(`${at}${path}`, protocols, headers);
      return until(() => client.refusedWith);
    };
    expect(await refused(`${scope}/ws`, ["bough"])).toBe(401);
    expect(await refused(`${scope}/ws?token=${g.server.token}`, ["bough"])).toBe(401);
    expect(await refused(`${scope}/ws`, ["bough", "bough-token.wrong"])).toBe(401);
    expect(await refused(`${scope}/ws`, ["bough", token], { origin: "http://evil.example" })).toBe(403);
    expect(await refused(`${scope}/ws`, ["bough", token], { host: "evil.example" })).toBe(421);
    expect(await refused("/agents/nobody/sessions/s/branches/main/ws", ["bough", token])).toBe(404);
    expect(await refused("/agents/helper/sessions/x/branches/main/ws", ["bough", token])).toBe(404);
    expect(await refused("/nowhere", ["bough", token])).toBe(404);
    expect(await refused("/health", ["bough", token])).toBe(400);
    const plain = await fetch(`${url}${scope}/ws`, { headers: { "x-api-key": g.server.token! } });
    expect(plain.status).toBe(400);
  });

  test("7.2 inputs, interrupts and responses get the answers of their routes", async () => {
    const { script, open: release } = held();
    const g = await start(script);
    const client = await connect(g);
    await client.until(isReady);
    const started = await client.ask({ type: "input", input: "Hi" });
    expect(started).toMatchObject({ status: 202, body: { status: "started" } });
    expect(await client.ask({ type: "input", input: "Again" })).toMatchObject({
      status: 409,
      body: { code: "run_active" },
    });
    const { runId } = started.body as { runId: string };
    expect(await client.ask({ type: "interrupt", expectedRunId: runId })).toMatchObject({
      status: 202,
      body: { status: "accepted" },
    });
    expect(await client.ask({ type: "response", interactionId: "x", answer: {} })).toMatchObject({ status: 404 });
    await settled(g);
    release();
    const key = "k";
    const once = await client.ask({ type: "input", input: "Once", key });
    expect(await client.ask({ type: "input", input: "Once", key })).toMatchObject({ body: once.body as object });
    await settled(g);
  });

  test("7.2 a permission question is answered over the socket", async () => {
    const script = [{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "Three."];
    const g = await start(script, { agent: { tools: { add: { ...add, permission: true } } } });
    const client = await connect(g);
    await client.until(isReady);
    await client.ask({ type: "input", input: "Add" });
    const asked = (await client.until(isEvent("interaction.opened"))) as Extract<Down, { type: "event" }>;
    const { id } = asked.event as { id: string };
    const reply = await client.ask({ type: "response", interactionId: id, answer: { approved: true } });
    expect(reply.status).toBe(200);
    await client.until(isEvent("turn.committed"));
  });

  test("7.2 watching needs scope read; doing needs scope run, looked up each time", async () => {
    const identity = { tenant: "t", scopes: ["read", "write"] as ("read" | "write" | "run")[] };
    const g = await start(["Hi."], { auth: apiKeys((hash) => (hash === hashApiKey("k") ? identity : undefined)) });
    await g.ask("POST", "/sessions", { sessionId: "s" }, { "x-api-key": "k" });
    const { url } = g.serving;
    const client = new Client(`${url.replace("http", "ws")}${scope}/ws`, ["bough", "bough-token.k"]);
    await client.until(isReady);
    expect(await client.ask({ type: "input", input: "Hi" })).toMatchObject({
      status: 403,
      body: { code: "forbidden" },
    });
  });

  test.each([
    ["{", 1007],
    ['{"type":"unknown"}', 1007],
    ['{"type":"input","input":5}', 1007],
    ['{"type":"response","interactionId":"x","answer":{"__proto__":{}}}', 1007],
  ])("7.3 frame %s closes with %i", async (text, code) => {
    const client = await connect(await start([]));
    await client.until(isReady);
    client.ws.send(text);
    expect(await until(() => client.closed)).toMatchObject({ code });
  });

  test("7.3 binary and oversized frames close the socket", async () => {
    const g = await start([], { limits: { frameBytes: 1000 } });
    const binary = await connect(g);
    await binary.until(isReady);
    binary.ws.send(new Uint8Array([1]));
    expect(await until(() => binary.closed)).toMatchObject({ code: 1003 });
    const big = await connect(g);
    await big.until(isReady);
    big.ws.send("x".repeat(1001));
    expect(await until(() => big.closed)).toMatchObject({ code: 1009 });
  });

  test("6.9, 7.3 a cursor past the log resets the socket", async () => {
    const client = await connect(await start([]), "?after=99");
    expect(await client.until(({ type }) => type === "reset")).toMatchObject({
      problem: { code: "position_not_on_branch" },
    });
    expect(await until(() => client.closed)).toMatchObject({ code: 1008 });
  });

  test("7.3 a revoked key closes the socket, at the latest with its next frame", async () => {
    const keys = new Map([[hashApiKey("k"), { tenant: "t", scopes: ["read", "write", "run"] as const }]]);
    const g = await start(["Hi."], { auth: apiKeys((hash) => keys.get(hash)) });
    await g.ask("POST", "/sessions", { sessionId: "s" }, { "x-api-key": "k" });
    const { url } = g.serving;
    const client = new Client(`${url.replace("http", "ws")}${scope}/ws`, ["bough", "bough-token.k"]);
    await client.until(isReady);
    keys.clear();
    client.ws.send(JSON.stringify({ type: "input", input: "Hi" }));
    expect(await until(() => client.closed)).toEqual({ code: 1008, reason: "unauthorized" });
  });

  test("7.3 a server that stops says so", async () => {
    const g = await start([]);
    const client = await connect(g);
    await client.until(isReady);
    void g.server.close();
    expect(await until(() => client.closed)).toMatchObject({ code: 1001 });
    expect(client.frames.at(-1)).toMatchObject({ type: "end", reason: "closing", after: 1 });
  });

  test("7.4 a connection that gives no sign of life is dropped", async () => {
    const g = await start([], { limits: { heartbeatMs: 30, streams: 1 } });
    const client = await connect(g);
    await client.until(isReady);
    client.ws.pause();
    // Nothing that the server sends is read, so no ping is answered. Dropped, it gives its place to another: how long that takes
    // is the machine's to say.
    expect((await g.ask("GET", `${scope}/events/live`)).status).toBe(429);
    await until(async () => (await g.ask("GET", `${scope}/events/live`)).status === 200);
    client.ws.resume();
    expect(await until(() => client.closed)).toMatchObject({ code: 1006 });
  });

  test("7.4 a quiet socket shows signs of life that a page can see", async () => {
    const g = await start([], { limits: { heartbeatMs: 30 } });
    const client = await connect(g);
    await client.until(isReady);
    await client.until(({ type }) => (type as string) === "heartbeat");
    expect(client.closed).toBeUndefined();
  });
}
