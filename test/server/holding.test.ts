// Attackers that hold on, many at a time, against a listening server: what they get hold of is counted.

import { expect, onTestFinished, test } from "vitest";
import type { Identity } from "../../src/server/index.ts";
import { Accepted, bearer, Holding, head, webSocket } from "./connections.ts";
import { expectProblem, type Given, given, isEvent, say, scope, settled, until } from "./kit.ts";

const live = `${scope}/events/live`;
const content = "/sessions/s/branches/main/content";
const MiB = 1024 * 1024;

/** Opens connections, ten at a time, and keeps them; each gets so far that the server has ended it. */
async function holdMany(g: Given, count: number, bytesOf: (i: number) => string): Promise<Holding[]> {
  const all: Holding[] = [];
  while (all.length < count) {
    const some = Array.from({ length: 10 }, (_, i) => new Holding(g.serving.port, bytesOf(all.length + i)));
    await until(() => some.every(({ isEnded }) => isEnded));
    all.push(...some);
  }
  return all;
}

/** Bytes that this process uses for data. */
function memoryInUse(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

test("live streams asked for as WebSockets hold no place, no connection and no memory", async () => {
  const accepted = new Accepted();
  const g = await given(() => "Done.", { limits: { streams: 4 } });
  const attackers = await holdMany(g, 400, () => head(`GET ${live}`, [bearer(g), ...webSocket]));
  expect(new Set(attackers.map(({ status }) => status))).toEqual(new Set([400]));
  await until(() => accepted.held(g) === 0);
  const streams = [await g.live(live), await g.live(live), await g.live(live), await g.live(live)];
  const before = memoryInUse();
  const inputBytes = 200_000;
  for (let i = 0; i < 5; i++) await say(g, `${i}`.padEnd(inputBytes, "x"));
  for (const stream of streams) {
    await stream.until((frame) => isEvent("turn.committed")(frame) && stream.types.length > 20);
  }
  // Each of the 400 would have had a copy of each input.
  expect(memoryInUse() - before).toBeLessThan(5 * inputBytes * 200);
});

test("refused handshakes are closed, so that other clients still find a connection", async () => {
  const accepted = new Accepted();
  const g = await given([], { limits: { connections: 20 } });
  const lines = [
    head(`GET ${scope}/ws`, webSocket),
    head(`GET ${scope}/ws`, ["x-api-key: wrong", ...webSocket]),
    head("GET /nowhere", [bearer(g), ...webSocket]),
    head("GET /health", [bearer(g), ...webSocket]),
    head(`TRACE ${scope}/ws`, [bearer(g), ...webSocket]),
    head(`GET ${scope}/ws`, webSocket).replace("localhost", "evil.example"),
    head(`GET ${scope}/ws`, [bearer(g), "connection: upgrade", "upgrade: websocket"]),
  ];
  const attackers = await holdMany(g, 300, (i) => lines[i % lines.length]!);
  const statuses = attackers.slice(0, lines.length).map(({ status }) => status);
  expect(statuses).toEqual([401, 401, 404, 400, 400, 421, 400]);
  expect(attackers.every(({ status }) => status >= 400)).toBe(true);
  expect((await g.ask("GET", "/health")).status).toBe(200);
  await until(() => accepted.held(g) === 0);
});

test("refused handshakes whose clients read nothing are closed, too", async () => {
  const accepted = new Accepted();
  const g = await given([], { limits: { connections: 20 } });
  for (let i = 0; i < 15; i++) new Holding(g.serving.port, head(`GET ${scope}/ws`, webSocket), { reads: false });
  await until(() => accepted.count(g) > 15);
  await until(() => accepted.held(g) === 0);
  expect((await g.ask("GET", "/health")).status).toBe(200);
});

test("a server closes while attackers hold connections of every kind", async () => {
  const auth = (request: Request): Identity | undefined | Promise<Identity> => {
    const key = request.headers.get("x-api-key");
    if (key === "slow") return new Promise<Identity>(() => {});
    return key === "good" ? { tenant: "t", scopes: ["read", "write"] } : undefined;
  };
  const accepted = new Accepted();
  const g = await given([], { auth });
  await g.ask("POST", "/sessions", { sessionId: "s" }, { "x-api-key": "good" });
  const bytes = [
    head(`GET ${scope}/ws`, ["x-api-key: good", ...webSocket]),
    head(`GET ${scope}/ws`, ["x-api-key: slow", ...webSocket]),
    head("GET /health", ["x-api-key: slow"]),
    head("GET /health", ["x-api-key: slow", "connection: upgrade", "upgrade: h2c"]),
    `${head(`POST ${content}`, ["x-api-key: good", "content-length: 100000"])}half`,
    "GET /hea",
  ];
  for (const each of bytes) new Holding(g.serving.port, each);
  await until(() => accepted.held(g) === bytes.length);
  await g.serving.close();
  expect(accepted.held(g)).toBe(0);
});

test("offers of another protocol leave neither connections nor listeners behind", async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error) => void warnings.push(warning);
  process.on("warning", warned);
  onTestFinished(() => void process.off("warning", warned));
  const accepted = new Accepted();
  const g = await given([]);
  const offer = head("GET /health", [bearer(g), "connection: upgrade", "upgrade: h2c"]);
  const offering = await holdMany(g, 30, () => offer.repeat(30));
  expect(offering.map(({ told }) => told.match(/HTTP\/1\.1 200/g)?.length)).toEqual(Array(30).fill(1));
  await until(() => accepted.held(g) === 0);
  expect(warnings).toEqual([]);
});

test("downloads and answers that are not read are dropped, and hold no more than their tenant's bytes", async () => {
  const accepted = new Accepted();
  const g = await given(() => "x".repeat(MiB), { limits: { stalledMs: 2000, tenantBytes: 20 * MiB } });
  const { id } = (await g.ask("POST", content, new Uint8Array(16 * MiB).fill(1))).body;
  const get = head(`GET ${content}/${id}`, [bearer(g)]);
  const before = memoryInUse();
  const downloads = Array.from({ length: 30 }, () => new Holding(g.serving.port, get, { reads: false }));
  await until(() => accepted.count(g) > downloads.length);
  // A connection that was accepted has not been answered yet, so the bytes may still be free.
  const refused = await until(async () => {
    const answer = await g.ask("GET", `${content}/${id}`);
    return answer.status !== 200 && answer;
  });
  expectProblem(refused, 429, "rate_limited");
  expect(memoryInUse() - before).toBeLessThan(30 * 16 * MiB * 0.25);
  await until(async () => (await g.ask("GET", `${content}/${id}`)).status === 200);

  for (let i = 0; i < 16; i++) await say(g, `${i}`);
  const events = head("GET /sessions/s/branches/main/events?limit=1000", [bearer(g)]);
  const count = accepted.count(g);
  new Holding(g.serving.port, events, { reads: false });
  await until(() => accepted.count(g) > count);
  await until(() => accepted.held(g) === 0);
  await settled(g);
});

test("forms that are made to be slow cost no more than a file of their size", async () => {
  const g = await given([]);
  const type = { "content-type": "multipart/form-data; boundary=b" };
  const costOf = async (body: string): Promise<{ cpu: number; status: number; code?: string }> => {
    const before = process.cpuUsage();
    const answer = await g.ask("POST", content, body, type);
    const { user, system } = process.cpuUsage(before);
    return { cpu: user + system, status: answer.status, code: answer.body.code };
  };
  const part = (name: string, bytes: string) =>
    `--b\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\n\r\n${bytes}\r\n`;
  const plain = await costOf(`${part("x", "y".repeat(13 * MiB))}--b--`);
  expect(plain.status).toBe(201);
  const bombs = {
    parts: `${part("x", "").repeat(200_000)}--b--`,
    name: `${part("x".repeat(13 * MiB), "y")}--b--`,
    escapes: `${part("\\".repeat(16_000), "y")}--b--`,
    "almost boundaries": `${part("x", "\r\n--a\r\n-".repeat(1_500_000))}--b--`,
    "no end": `${part("x", "\r\n--".repeat(3_000_000))}`,
  };
  for (const [name, bomb] of Object.entries(bombs)) {
    const { cpu, status } = await costOf(bomb);
    expect(status, name).toBeLessThan(500);
    expect(cpu / plain.cpu, name).toBeLessThan(10);
  }
  expectProblem(await g.ask("POST", content, bombs.parts, type), 413, "limit_exceeded");
  expectProblem(await g.ask("POST", content, bombs.name, type), 413, "limit_exceeded");
});
