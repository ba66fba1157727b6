// Two servers with a store of their own each, on one database: what a run of one shows is seen on the other while it happens.

import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { Store } from "../../src/log/store.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { lazyStore } from "../../src/sessions/lazy-store.ts";
import { postgresStore } from "../../src/stores/postgres/index.ts";
import { redisStore } from "../../src/stores/redis/index.ts";
import type { Frame } from "../../src/wire/index.ts";
import { type Given, given, isEvent, type LiveStream, scope, settled } from "../server/kit.ts";
import { type Place, places, presentPlaces } from "./kit/places.ts";

const present = presentPlaces().map(([kind]) => kind);
const live = `${scope}/events/live`;

/** A model that says a text piece by piece, each when it is told to. */
function stepped(text: string, chunks: number) {
  let allowed = 0;
  let wake = () => {};
  const sleep = async () => {
    while (allowed === 0) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    allowed--;
  };
  return {
    model: scriptedModel(() => text, { chunks, sleep }),
    /** The stream's parts: its start, the text's start, the pieces, the text's end, the end. */
    say(parts: number) {
      allowed = parts;
      wake();
    },
  };
}

/** What a reader has of the messages that are being written, by the rules of the protocol. */
function assembled(frames: readonly Frame[]): string {
  const texts = new Map<string, string>();
  for (const frame of frames) {
    if (frame.type === "snapshot") texts.set(frame.message.messageId, frame.message.text);
    else if (frame.type === "event" && frame.event.type === "text-delta") {
      texts.set(frame.event.messageId, (texts.get(frame.event.messageId) ?? "") + frame.event.text);
    }
  }
  return [...texts.values()].join("|");
}

const hasText = (stream: LiveStream, text: string) => () => assembled(stream.frames) === text;

function keptOf(stream: LiveStream) {
  return stream.frames.flatMap((frame) => (frame.type === "event" && frame.event.seq ? [frame.event] : []));
}

async function joined(node: Given): Promise<LiveStream> {
  const stream = await node.live(live);
  await stream.until(({ type }) => type === "ready");
  return stream;
}

describe.each(["postgres", "redis"])("two nodes on one %s", (kind) => {
  const isPresent = present.includes(kind);
  let place: Place;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "bough-live-"));
    if (isPresent) place = await places[kind]!(folder);
  });
  afterAll(async () => {
    await place?.stop?.();
    await rm(folder, { recursive: true });
  });

  let made = 0;
  /** Stores of different handles on data of the test's own. */
  function handles(): () => Promise<Store> {
    const name = `live_${++made}`;
    return () =>
      kind === "postgres"
        ? postgresStore(place.url, { schema: name, applicationName: name, pollMs: 200 })
        : redisStore(place.url, { prefix: name, pollMs: 200, onWarning: () => {} });
  }

  /** A node that runs, another one, and what the model says. */
  async function nodes(text: string, chunks: number) {
    const open = handles();
    const { model, say } = stepped(text, chunks);
    const agent = { model };
    const one = await given(() => "", { store: await open(), agent });
    const other = await given(() => "", { store: await open(), agent, isSecond: true });
    return { one, other, say, open };
  }

  test.skipIf(!isPresent)("a reader on the other sees the words while the model still speaks", async () => {
    const { one, other, say } = await nodes("Once upon a time.", 17);
    const stream = await joined(other);
    await one.ask("POST", `${scope}/inputs`, { input: "Tell me" });
    say(2 + 5);
    await stream.until(hasText(stream, "Once "));
    say(5);
    await stream.until(hasText(stream, "Once upon "));
    expect(stream.types).not.toContain("turn.committed");
    say(100);
    await stream.until(isEvent("run-end"));
    await stream.until(isEvent("turn.committed"));
    expect(assembled(stream.frames)).toBe("Once upon a time.");
    expect(keptOf(stream)).toMatchObject((await one.ask("GET", "/sessions/s/branches/main/events")).body.events);
    const order = stream.types.filter((type) => /^(text|run|turn|message)/.test(type));
    // F2: the words come between the input and the answer that they make.
    expect(order.indexOf("turn.started")).toBe(0);
    expect(order.lastIndexOf("text-delta")).toBeLessThan(order.lastIndexOf("message.added"));
    expect(order.indexOf("text-delta")).toBeGreaterThan(order.indexOf("message.added"));
  });

  test.skipIf(!isPresent)("also when the stores are named by a URL and opened when they are needed", async () => {
    const { model, say } = stepped("Once upon a time.", 17);
    const store = () => lazyStore(place.url, { clock: systemClock });
    const one = await given(() => "", { store: store(), agent: { model } });
    const other = await given(() => "", { store: store(), agent: { model }, isSecond: true });
    const stream = await joined(other);
    await one.ask("POST", `${scope}/inputs`, { input: "Tell me" });
    say(2 + 5);
    await stream.until(hasText(stream, "Once "));
    say(100);
    await settled(one);
  });

  test.skipIf(!isPresent)("readers that come in the middle have the message from its beginning", async () => {
    const { one, other, say } = await nodes("Once upon a time.", 17);
    await one.ask("POST", `${scope}/inputs`, { input: "Tell me" });
    say(2 + 10);
    const near = await joined(one);
    await near.until(hasText(near, "Once upon "));
    const first = await joined(other);
    await first.until(hasText(first, "Once upon "));
    const second = await joined(other);
    expect(second.frames.slice(-2)).toMatchObject([
      { type: "snapshot", message: { text: "Once upon " } },
      { type: "ready" },
    ]);
    say(100);
    for (const stream of [near, first, second]) {
      await stream.until(isEvent("turn.committed"));
      expect(assembled(stream.frames)).toBe("Once upon a time.");
    }
    // Nothing is left of the message for who comes now.
    const late = await joined(other);
    expect(late.frames.filter(({ type }) => type === "snapshot")).toEqual([]);
  });

  test.skipIf(!isPresent)(
    "a text too long to be told in time arrives as a fact, and the run is not held up",
    async () => {
      const long = "😀é\u0001".repeat(100_000);
      const { one, other, say } = await nodes(long, 2);
      const stream = await joined(other);
      await one.ask("POST", `${scope}/inputs`, { input: "Go on" });
      say(100);
      await stream.until(isEvent("turn.committed"));
      const [message] = keptOf(stream)
        .flatMap((event) => (event.type === "message.added" ? [event] : []))
        .slice(-1);
      expect(message!.content).toEqual([{ type: "text", text: long }]);
      expect(assembled(stream.frames).length).toBeLessThanOrEqual(long.length);
    },
  );

  test.skipIf(!isPresent)("readers that take nothing, here or on the way, hold nobody up", async () => {
    const text = "word ".repeat(20_000);
    const { one, other, say } = await nodes(text, 2000);
    const stuck = await joined(other);
    const reading = await joined(other);
    await deaf(kind, place.url);
    await one.ask("POST", `${scope}/inputs`, { input: "Go on" });
    say(10_000);
    await settled(one);
    await reading.until(isEvent("turn.committed"));
    expect(keptOf(reading)).toMatchObject((await one.ask("GET", "/sessions/s/branches/main/events")).body.events);
    expect(stuck.types).not.toContain("turn.committed");
  });

  test.skipIf(!isPresent)("connections that end are made again, and the words go on", async () => {
    const { one, other, say } = await nodes("Once upon a time.", 17);
    const stream = await joined(other);
    await one.ask("POST", `${scope}/inputs`, { input: "Tell me" });
    say(2 + 5);
    await stream.until(hasText(stream, "Once "));
    await cutAll(kind, place.url);
    say(100);
    await stream.until(isEvent("turn.committed"));
    await settled(one);
    expect(keptOf(stream)).toMatchObject((await one.ask("GET", "/sessions/s/branches/main/events")).body.events);
    say(0);
    await one.ask("POST", `${scope}/inputs`, { input: "Again" });
    say(2 + 5);
    await stream.until(() => assembled(stream.frames).endsWith("|Once "));
    say(100);
    await settled(one);
  });

  test.skipIf(!isPresent)(
    "a node that died in the middle of a message leaves nothing of it to whoever joins later",
    async () => {
      const { one, other, say } = await nodes("Once upon a time.", 17);
      const stream = await joined(other);
      await one.ask("POST", `${scope}/inputs`, { input: "Tell me" });
      say(2 + 5);
      await stream.until(hasText(stream, "Once "));
      // Handed over, which is all that the log sees of a death.
      await one.server.close();
      await stream.until(isEvent("turn.resumed"));
      const late = await joined(other);
      expect(assembled(late.frames)).toBe("");
      say(100);
      await late.until(isEvent("turn.committed"));
      expect(assembled(late.frames)).toBe("Once upon a time.");
    },
  );

  test.skipIf(!isPresent)("tenants hear nothing of each other", async () => {
    const open = handles();
    const { model, say } = stepped("Secret.", 7);
    const auth = (request: Request) => ({
      tenant: request.headers.get("x-tenant")!,
      scopes: ["read", "write", "run"] as never,
    });
    const options = async () => ({ store: await open(), agent: { model }, auth: auth as never });
    const [one, other] = [await given(() => "", await options()), await given(() => "", await options())];
    for (const tenant of ["a", "b"]) await one.ask("POST", "/sessions", { sessionId: "s" }, { "x-tenant": tenant });
    const [ofA, ofB] = [await other.live(live, { "x-tenant": "a" }), await other.live(live, { "x-tenant": "b" })];
    for (const stream of [ofA, ofB]) await stream.until(({ type }) => type === "ready");
    await one.ask("POST", `${scope}/inputs`, { input: "Hi" }, { "x-tenant": "a" });
    say(2 + 3);
    await ofA.until(hasText(ofA, "Sec"));
    say(100);
    await ofA.until(isEvent("turn.committed"));
    await one.ask("POST", `${scope}/inputs`, { input: "Hi" }, { "x-tenant": "b" });
    say(100);
    await ofB.until(isEvent("turn.committed"));
    expect(
      new Set(ofB.frames.flatMap((frame) => (frame.type === "event" ? [frame.event.runId] : []))).size,
    ).toBeLessThan(3);
    expect(assembled(ofB.frames).includes("|")).toBe(false);
    await settled({ ...one, ask: (method, path, body) => one.ask(method, path, body, { "x-tenant": "b" }) });
  });
});

/** Somebody who listens to everything there is and reads nothing of it. */
async function deaf(kind: string, url: string): Promise<void> {
  const { port } = new URL(url);
  if (kind === "redis") {
    const socket = connect(Number(port), "127.0.0.1").pause();
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    await new Promise<void>((resolve) => socket.write("PSUBSCRIBE *\r\n", () => resolve()));
    return;
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  client.on("error", () => {});
  for (let i = 1; i < 20; i++) await client.query(`LISTEN live_${i}_live`);
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  stream.pause();
  onTestFinished(() => void stream.destroy());
}

async function cutAll(kind: string, url: string): Promise<void> {
  if (kind === "redis") {
    const client = createClient({ url });
    await client.connect();
    onTestFinished(() => client.destroy());
    for (const type of ["normal", "pubsub"])
      await client.sendCommand(["CLIENT", "KILL", "TYPE", type, "SKIPME", "yes"]);
    return;
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'live_%'");
  await client.end();
}
