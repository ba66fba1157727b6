import { expect, onTestFinished, test, vi } from "vitest";
import type { Http } from "./http.ts";
import { createClient } from "./index.ts";
import type { Arrival } from "./transport.ts";
import { websocketTransport } from "./websocket.ts";

type Listener = (event: { data?: string }) => void;

/** A socket that opens at once and says what the test says. */
class FakeSocket {
  static made: FakeSocket[] = [];
  readonly url: string;
  readonly protocols: string[];
  readonly #listeners = new Map<string, Listener>();
  isClosed = false;

  constructor(url: string, protocols: string[] = []) {
    this.url = url;
    this.protocols = protocols;
    FakeSocket.made.push(this);
    queueMicrotask(() => this.tell("open"));
  }

  addEventListener(type: string, listener: Listener): void {
    this.#listeners.set(type, listener);
  }

  tell(type: string, data?: string): void {
    this.#listeners.get(type)?.(data === undefined ? {} : { data });
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    queueMicrotask(() => this.tell("close"));
  }
}

const http = {
  token: async () => "t",
  urlOf: (path: string, { after }: { after: number }) => `https://far${path}?after=${after}`,
} as unknown as Http;

async function open(after = 7) {
  const leaving = new AbortController();
  const batches = await websocketTransport(http, "/scope", FakeSocket).open(after, leaving.signal);
  return { batches, socket: FakeSocket.made.at(-1)!, leave: () => leaving.abort() };
}

async function all(batches: AsyncIterable<readonly Arrival[]>): Promise<Arrival[]> {
  const arrivals: Arrival[] = [];
  for await (const batch of batches) arrivals.push(...batch);
  return arrivals;
}

test("the token goes along as a subprotocol, never in the address; frames come until it is closed", async () => {
  const { batches, socket } = await open();
  expect([socket.url, socket.protocols]).toEqual(["wss://far/scope/ws?after=7", ["bough", "bough-token.t"]]);
  socket.tell("message", '{"type":"ready","seq":7}');
  socket.close();
  expect(await all(batches)).toEqual([{ type: "ready", seq: 7 }]);
});

test("whoever leaves closes the socket", async () => {
  const { batches, socket, leave } = await open();
  leave();
  expect(await all(batches)).toEqual([]);
  expect(socket.isClosed).toBe(true);
});

test("what nobody takes does not pile up: too much of it ends the connection, and nothing of it counts", async () => {
  const { batches, socket } = await open();
  const frame = JSON.stringify({ type: "event", event: { type: "text-delta", text: "x".repeat(100_000) } });
  for (let i = 0; i < 50; i++) socket.tell("message", frame);
  expect(await all(batches)).toEqual([]);
  expect(socket.isClosed).toBe(true);
});

test("a runtime without WebSocket is told what to install", () => {
  vi.stubGlobal("WebSocket", undefined);
  onTestFinished(() => void vi.unstubAllGlobals());
  expect(() => createClient({ url: "http://far", transport: "websocket" })).toThrow(/install ws/);
  expect(() => createClient({ url: "http://far" })).not.toThrow();
});
