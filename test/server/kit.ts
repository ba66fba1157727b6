// What the suites share: a server that listens, on a store, with a scripted agent, and a client that is nothing but HTTP.

import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { z } from "zod";
import type { AgentOptions } from "../../src/agent/index.ts";
import { defineTool } from "../../src/index.ts";
import type { Store } from "../../src/log/store.ts";
import { type Script, scriptedModel } from "../../src/scripted/index.ts";
import { createServer, type Server, type ServerOptions, type Serving, serve } from "../../src/server/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { type Frame, type Problem, SseReader } from "../../src/wire/index.ts";

/** Opens a store that nobody has yet; the server that gets it closes it. */
export type OpenStore = () => Promise<Store>;

export const openMemory: OpenStore = async () => memoryStore();

export const openSqlite: OpenStore = async () => sqliteStore(join(freshDirectory(), "bough.db"));

/** A directory that goes with the test. */
export function freshDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "bough-server-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export interface Answer<T = any> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

export interface Given {
  readonly server: Server;
  readonly serving: Serving;
  readonly store: Store;
  /** Asks over a connection, with the server's token unless headers say otherwise. The path goes out as it is. */
  // biome-ignore lint/suspicious/noExplicitAny: likewise
  ask<T = any>(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer<T>>;
  /** The frames of a live stream, over a connection. */
  live(path: string, headers?: Record<string, string>): Promise<LiveStream>;
  /** The same in the server's own process: what is not read waits there, and in no kernel's buffer. */
  liveHere(path: string): Promise<LiveStream>;
}

export const quiet = { warn: () => {} };
export const scope = "/agents/helper/sessions/s/branches/main";

/** A server with one agent "helper" that follows the script, and a session "s". */
export async function given(
  script: Script,
  options: Partial<ServerOptions> & { open?: OpenStore; agent?: Partial<AgentOptions>; isSecond?: boolean } = {},
): Promise<Given> {
  const { open = openMemory, agent, isSecond = false, ...more } = options;
  const store = (more.store as Store | undefined) ?? (await open());
  const helper = { model: scriptedModel(script), logger: quiet, ...agent };
  const server = createServer({ agents: { helper }, logger: quiet, ...more, store });
  const serving = await serve(server, { port: 0 });
  onTestFinished(() => serving.close());
  const headersOf = (own: Record<string, string> = {}) => ({
    ...(server.token !== undefined && { authorization: `Bearer ${server.token}` }),
    ...own,
  });
  const ask: Given["ask"] = (method, path, body, headers) => askAt(serving.url, method, path, body, headersOf(headers));
  const live: Given["live"] = async (path, headers) =>
    new LiveStream(await fetch(serving.url + path, { headers: headersOf(headers) }));
  const liveHere: Given["liveHere"] = async (path) =>
    new LiveStream(await server.fetch(requestOf("GET", path, undefined, headersOf())));
  if (!more.auth && !isSecond) expect((await ask("POST", "/sessions", { sessionId: "s" })).status).toBe(201);
  return { server, serving, store, ask, live, liveHere };
}

/** Asks a server over a connection of its own; nothing about the path or the headers is made right on the way. */
export async function askAt(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const sent = body === undefined ? undefined : await bodyOf(body);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const length = sent && { "content-length": String(sent.bytes.length) };
    const all = { ...length, ...sent?.headers, ...headers };
    const request = httpRequest(url, { method, path, headers: all, agent: false }, resolve);
    request.on("error", reject);
    request.end(sent?.bytes);
  });
  const chunks: Buffer[] = [];
  const isStream = response.headers["content-type"]?.startsWith("text/event-stream");
  if (isStream) response.destroy();
  else for await (const chunk of response) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  const told = new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
  const isJson = /json/.test(told.get("content-type") ?? "");
  return { status: response.statusCode!, headers: told, body: isJson && text ? JSON.parse(text) : text };
}

async function bodyOf(body: unknown): Promise<{ bytes: Uint8Array; headers: Record<string, string> }> {
  if (body instanceof FormData) {
    const form = new Response(body);
    const headers = { "content-type": form.headers.get("content-type")! };
    return { bytes: new Uint8Array(await form.arrayBuffer()), headers };
  }
  if (body instanceof Uint8Array) return { bytes: body, headers: {} };
  if (typeof body === "string") return { bytes: Buffer.from(body), headers: {} };
  return { bytes: Buffer.from(JSON.stringify(body)), headers: { "content-type": "application/json" } };
}

export function requestOf(method: string, path: string, body: unknown, headers: Record<string, string>): Request {
  const isRaw = body instanceof Uint8Array || body instanceof FormData || typeof body === "string";
  return new Request(`http://localhost${path}`, {
    method,
    headers: { ...(body !== undefined && !isRaw && { "content-type": "application/json" }), ...headers },
    ...(body !== undefined && { body: isRaw ? (body as string) : JSON.stringify(body) }),
  });
}

export async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  return { status: response.status, headers: response.headers, body: isJson && text ? JSON.parse(text) : text };
}

/** Reads a stream's frames as they come. */
export class LiveStream {
  readonly response: Response;
  readonly frames: (Frame & { id?: string })[] = [];
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #sse = new SseReader();
  readonly #decoder = new TextDecoder();
  isEnded = false;
  /** Everything as it came. */
  text = "";

  constructor(response: Response) {
    expect(response.status).toBe(200);
    this.response = response;
    this.#reader = response.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>;
    onTestFinished(() => this.leave());
  }

  /** Reads until a frame fits, or the stream ends. */
  async until(fits: (frame: Frame & { id?: string }) => boolean): Promise<Frame & { id?: string }> {
    let seen = 0;
    for (;;) {
      for (; seen < this.frames.length; seen++) if (fits(this.frames[seen]!)) return this.frames[seen]!;
      if (this.isEnded) expect.fail(`the stream ended first: ${JSON.stringify(this.frames.at(-1))}`);
      await this.readMore();
    }
  }

  async readMore(): Promise<void> {
    const { done, value } = await this.#reader.read();
    if (done) {
      this.isEnded = true;
      return;
    }
    const text = this.#decoder.decode(value, { stream: true });
    this.text += text;
    for (const { id, data } of this.#sse.read(text)) {
      this.frames.push({ ...(JSON.parse(data) as Frame), ...(id !== undefined && { id }) });
    }
  }

  async toEnd(): Promise<void> {
    while (!this.isEnded) await this.readMore();
  }

  leave(): Promise<void> {
    return this.#reader.cancel().catch(() => {});
  }

  /** Types of the events, in order. */
  get types(): string[] {
    return this.frames.flatMap((frame) => (frame.type === "event" ? [frame.event.type] : []));
  }
}

export const isEvent = (type: string) => (frame: Frame) => frame.type === "event" && frame.event.type === type;

export function expectProblem(answer: Answer, status: number, code: string): Problem {
  expect(answer.body).toMatchObject({ code, status });
  expect(answer.status).toBe(status);
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  return answer.body;
}

/** A promise and the function that resolves it. */
export function gate(): { readonly passed: Promise<void>; open(): void } {
  let open = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open: () => open() };
}

/** Waits until something else brings it about. */
export async function until<T>(look: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
  for (let i = 0; i < 2_000; i++) {
    const seen = await look();
    if (seen) return seen;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return expect.fail(`waited in vain for ${look}`);
}

export const add = defineTool({
  description: "Adds.",
  input: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});

/** Waits until nothing runs on the branch. */
export function settled({ ask }: Given, path = scope): Promise<unknown> {
  return until(async () => (await ask("GET", `${path}/state`)).body.openTurn === undefined);
}

/** A model that waits until it is opened, and then says it. */
export function held(text = "Done.") {
  const passage = gate();
  return { ...passage, script: () => passage.passed.then(() => text) };
}

/** A whole turn; returns the run's id. */
export async function say(g: Given, input: string, path = scope): Promise<string> {
  const { status, body } = await g.ask("POST", `${path}/inputs`, { input });
  expect(status).toBe(202);
  await settled(g, path);
  return body.runId;
}
