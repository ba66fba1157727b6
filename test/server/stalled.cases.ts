// Readers that stop reading: they lose their stream, with the cursor to go on from, and nobody else loses anything.

import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import type { OpenSocket, SocketEnd } from "../../src/server/index.ts";
import type { Frame } from "../../src/wire/index.ts";
import {
  type Given,
  gate,
  given,
  held,
  isEvent,
  type LiveStream,
  type OpenStore,
  requestOf,
  say,
  scope,
  until,
} from "./kit.ts";
import { keptOf } from "./process.ts";

const main = "/sessions/s/branches/main";
const live = `${scope}/events/live`;
const turns = 6;

/** The library's side of a socket, as slow as a test wants it. Answers every ping. */
class FakeEnd implements SocketEnd {
  readonly sent: string[] = [];
  closed: { code: number; reason: string } | undefined;
  isDestroyed = false;
  readonly #take: () => Promise<void>;
  #socket: ReturnType<OpenSocket> | undefined;

  constructor(take: () => Promise<void>) {
    this.#take = take;
  }

  async open(g: Given): Promise<ReturnType<OpenSocket>> {
    const headers = { authorization: `Bearer ${g.server.token}` };
    const opened = (await g.server.connect(requestOf("GET", `${scope}/ws`, undefined, headers))) as OpenSocket;
    const socket = opened(this);
    this.#socket = socket;
    onTestFinished(() => socket.closed());
    return socket;
  }

  async send(text: string): Promise<void> {
    await this.#take();
    this.sent.push(text);
  }

  close(code: number, reason: string): void {
    this.closed ??= { code, reason };
  }

  destroy(): void {
    this.isDestroyed = true;
    this.#socket!.closed();
  }

  ping(): void {
    this.#socket!.pong();
  }
}

export function describeStalled(open: OpenStore): void {
  const start: typeof given = (script, options = {}) => given(script, { open, ...options });

  test("6.10 five hundred readers that stall are dropped with their cursors, and a run does not notice", async () => {
    const limits = { bufferBytes: 16_384, streams: 510 };
    const g = await start((_prompt, call) => `${call}`.repeat(2000), { limits });
    const reading = await g.live(live);
    await reading.until(({ type }) => type === "ready");
    const stalled: LiveStream[] = [];
    for (let i = 0; i < 500; i++) stalled.push(await g.liveHere(live));
    for (const stream of stalled) await stream.until(({ type }) => type === "ready");
    const seen = reading.until((frame) => frame.type === "event" && frame.event.seq === 1 + 4 * turns);
    for (let i = 0; i < turns; i++) await say(g, `${i}`);
    await seen;
    const { events } = (await g.ask("GET", `${main}/events`)).body;
    expect(keptOf(reading.frames)).toMatchObject(events);
    for (const stream of stalled) {
      await stream.toEnd();
      const last = stream.frames.at(-1) as Extract<Frame, { type: "end" }>;
      expect(last).toMatchObject({ type: "end", reason: "slow" });
      const got = keptOf(stream.frames);
      expect(got.at(-1)?.seq ?? 0).toBe(last.after);
      expect(got).toMatchObject(events.slice(0, last.after));
    }
    const { after } = stalled[0]!.frames.at(-1) as Extract<Frame, { type: "end" }>;
    const again = await g.live(`${live}?after=${after}`);
    await again.until(({ type }) => type === "ready");
    expect([...keptOf(stalled[0]!.frames), ...keptOf(again.frames)]).toMatchObject(events);
  });

  test("6.10, 7.3 a socket that stalls is dropped, and resumes with its cursor", async () => {
    const g = await start(() => "x".repeat(200_000), {
      limits: { bufferBytes: 100_000, heartbeatMs: 40, streams: 1, answerBytes: 2 ** 30 },
    });
    const connect = (after: number) =>
      new WebSocket(`${g.serving.url.replace("http", "ws")}${scope}/ws?after=${after}`, [
        "bough",
        `bough-token.${g.server.token}`,
      ]);
    const frames: Frame[] = [];
    const collect = (ws: WebSocket) =>
      ws.on("error", () => {}).on("message", (data) => frames.push(JSON.parse(`${data}`)));
    const stalls = collect(connect(0));
    await until(() => frames.some(({ type }) => type === "ready"));
    stalls.pause();
    for (let i = 0; i < 30; i++) await say(g, `${i}`);
    // Its place is free once it is dropped.
    await until(async () => (await g.ask("GET", live)).status === 200);
    const closed = new Promise((resolve) => stalls.once("close", resolve));
    stalls.resume();
    await closed;
    const { events } = (await g.ask("GET", `${main}/events?limit=1000`)).body;
    let rest = collect(connect(keptOf(frames).at(-1)!.seq!));
    await until(() => {
      // The place of the one that looked may not be free yet.
      if (rest.readyState === WebSocket.CLOSED) rest = collect(connect(keptOf(frames).at(-1)!.seq!));
      return keptOf(frames).length >= events.length;
    });
    expect(keptOf(frames)).toMatchObject(events);
    rest.terminate();
  });

  test("7.3 a socket that is too slow for its frames is closed with 1013 and its cursor", async () => {
    const g = await start(() => "x".repeat(20_000), { limits: { bufferBytes: 4096 } });
    const { passed, open: take } = gate();
    let taking = Promise.resolve();
    const end = new FakeEnd(() => taking);
    await end.open(g);
    await until(() => end.sent.some((text) => text.includes('"ready"')));
    taking = passed;
    await say(g, "Hi");
    take();
    expect(await until(() => end.closed)).toEqual({ code: 1013, reason: "slow" });
    const frames = end.sent.map((text) => JSON.parse(text) as Frame);
    const last = frames.at(-1) as Extract<Frame, { type: "end" }>;
    expect(last).toMatchObject({ type: "end", reason: "slow" });
    expect(keptOf(frames).at(-1)?.seq ?? 0).toBe(last.after);
  });

  test("7.4 a socket that takes its frames slowly but steadily is not dropped", async () => {
    const g = await start(() => "word ".repeat(50), { limits: { heartbeatMs: 250 } });
    const end = new FakeEnd(() => new Promise((resolve) => setTimeout(resolve, 15)));
    await end.open(g);
    for (let i = 0; i < 6; i++) await say(g, `${i}`);
    const { events } = (await g.ask("GET", `${main}/events`)).body;
    const kept = () => keptOf(end.sent.map((text) => JSON.parse(text) as Frame));
    await until(() => kept().length === events.length);
    expect(kept()).toMatchObject(events);
    expect(end.isDestroyed).toBe(false);
  });

  test("7.3 a socket that sends more than can be worked on is closed with 1008", async () => {
    const { script, open: release } = held();
    const g = await start(script);
    const end = new FakeEnd(() => Promise.resolve());
    const socket = await end.open(g);
    for (let i = 0; i < 70; i++) socket.message(JSON.stringify({ type: "interrupt", id: `${i}` }));
    expect(end.closed).toEqual({ code: 1008, reason: "rate_limited" });
    release();
    expect((await g.ask("GET", "/health")).status).toBe(200);
  });

  test("7.3 a socket whose waiting frames have too many bytes is closed with 1008", async () => {
    const { script, open: release } = held();
    const g = await start(script, { limits: { tenantBytes: 10_000 } });
    const end = new FakeEnd(() => Promise.resolve());
    const socket = await end.open(g);
    const message = JSON.stringify({ type: "interrupt", reason: "x".repeat(6000) });
    socket.message(message);
    expect(end.closed).toBeUndefined();
    socket.message(message);
    expect(end.closed).toEqual({ code: 1008, reason: "rate_limited" });
    release();
  });

  test("6.10 a run whose only reader stalls in the middle of it ends all the same", async () => {
    const g = await start(() => "word ".repeat(20_000), { limits: { bufferBytes: 4096 } });
    const stalled = await g.liveHere(live);
    await stalled.until(({ type }) => type === "ready");
    await say(g, "Hi");
    await stalled.toEnd();
    expect(stalled.frames.at(-1)).toMatchObject({ type: "end", reason: "slow" });
    const again = await g.live(`${live}?after=0`);
    await again.until(isEvent("turn.committed"));
  });
}
