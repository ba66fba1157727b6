// Servers below a prefix: alone, and several in one process, behind one listener or one function.

import { describe, expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { textOf } from "../../src/events/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { createServer, type Server, type ServerOptions, serve } from "../../src/server/index.ts";
import { quick } from "../client/kit.ts";
import { answerOf, askAt, expectProblem, given, type OpenStore, quiet, until } from "./kit.ts";

const prefix = "/api/bough";
const scope = { agentId: "helper", sessionId: "s", branchId: "main" };

export function describePrefix(open: OpenStore): void {
  /** A server on a store of its own whose agent says this. */
  async function speaking(text: string, options: ServerOptions): Promise<Server> {
    const agents = { helper: { model: scriptedModel(() => text), logger: quiet } };
    return createServer({ agents, store: await open(), logger: quiet, ...options });
  }

  /** One turn on a fresh session, seen over a live stream; returns what the agent said. */
  async function talk(client: ReturnType<typeof createClient>): Promise<string> {
    await client.createSession("s");
    const branch = client.branch(scope);
    const seen: string[] = [];
    const stop = new AbortController();
    const listening = (async () => {
      for await (const event of branch.watch({ signal: stop.signal })) {
        seen.push(event.type);
        if (event.type === "turn.committed") break;
      }
    })();
    await branch.submit("Hi");
    await listening;
    expect(seen).toContain("turn.committed");
    return textOf((await branch.state()).messages.at(-1)!);
  }

  describe("a server below a prefix", () => {
    test("1.13 has its routes there and nowhere else, and its document says so", async () => {
      const { ask, serving } = await given([], { open, prefix, isSecond: true });
      expect(serving.url).toBe(`http://127.0.0.1:${serving.port}${prefix}`);
      expect((await ask("GET", `${prefix}/health`)).status).toBe(200);
      for (const path of ["/health", "/", "/api", `${prefix}s/health`, `${prefix}${prefix}/health`]) {
        expectProblem(await ask("GET", path), 404, "route_not_found");
        expectProblem(await ask("GET", path, undefined, { authorization: "Bearer no" }), 401, "unauthorized");
      }
      expectProblem(await ask("GET", `${prefix}/../health`), 400, "invalid_argument");
      const { servers, paths } = (await ask("GET", `${prefix}/openapi.json`)).body;
      expect(servers).toEqual([{ url: prefix }]);
      expect(paths).toHaveProperty("/health");
    });

    test("1.13 has its page there", async () => {
      const { ask, serving, server } = await given([], { open, prefix, isSecond: true, page: "<p>Hello</p>" });
      const none = { authorization: "" };
      for (const path of [prefix, `${prefix}/`]) {
        expect(await ask("GET", path, undefined, none)).toMatchObject({ status: 200, body: "<p>Hello</p>" });
      }
      expectProblem(await ask("GET", "/", undefined, none), 401, "unauthorized");
      expect(serving.startUrl).toBe(`${serving.url}/#token=${server.token}`);
    });

    test.each(["sse", "websocket"] as const)(
      "1.13 is used by a client that has its address, over %s",
      async (transport) => {
        const { serving, server } = await given(["Hello."], { open, prefix, isSecond: true });
        const client = createClient({ ...quick, url: serving.url, token: server.token!, transport });
        expect(await talk(client)).toContain("Hello.");
      },
    );

    test.each(["api", "/api/", "/", "//api", "/a/../b", "/a b", "/:id", "/a?b"])(
      "%j is no prefix, and the server is not made",
      (wrong) => {
        expect(() => createServer({ prefix: wrong })).toThrow(/^prefix must be a path such as/);
      },
    );
  });

  describe("several servers in one process", () => {
    async function twoServers(options: ServerOptions = {}) {
      const one = await speaking("I am one.", { prefix: "/one", ...options });
      const two = await speaking("I am two.", { prefix: "/two", ...options });
      return { one, two };
    }

    test("1.13 share a listener and nothing else: sessions, tokens, rates and places for streams", async () => {
      const limits = { streams: 1, burst: 60, requestsPerSecond: 0.001 };
      const { one, two } = await twoServers({ limits });
      const serving = await serve([one, two], { port: 0 });
      onTestFinished(() => serving.close());
      const origin = serving.url.replace("/one", "");
      const ask = (server: Server, method: string, path: string, token = server.token!) =>
        askAt(origin, method, server.prefix + path, undefined, { authorization: `Bearer ${token}` });
      expect(await talk(createClient({ ...quick, url: `${origin}/one`, token: one.token! }))).toContain("I am one.");
      expect((await ask(two, "GET", "/sessions")).body.sessions).toEqual([]);
      const overSocket = { ...quick, url: `${origin}/two`, token: two.token!, transport: "websocket" } as const;
      expect(await talk(createClient(overSocket))).toContain("I am two.");
      expectProblem(await ask(two, "GET", "/sessions", one.token), 401, "unauthorized");
      const live = (server: Server) =>
        fetch(`${origin}${server.prefix}/agents/helper/sessions/s/branches/main/events/live`, {
          headers: { authorization: `Bearer ${server.token}` },
        });
      const held = [await until(() => given200(live(one))), await until(() => given200(live(two)))];
      expect((await live(one)).status).toBe(429);
      for (let i = 0; i < 80; i++) await ask(one, "GET", "/health");
      expectProblem(await ask(one, "GET", "/health"), 429, "rate_limited");
      expect((await ask(two, "GET", "/health")).status).toBe(200);
      for (const { body } of held) await body!.cancel();
    });

    test("1.13 share a function, and one goes on when the other is closed", async () => {
      const { one, two } = await twoServers();
      onTestFinished(() => two.close());
      const dispatch = (request: Request) =>
        (new URL(request.url).pathname.startsWith("/one/") ? one : two).fetch(request);
      const viaDispatch = (async (url: string, init: RequestInit) => dispatch(new Request(url, init))) as typeof fetch;
      const clientOf = (server: Server) =>
        createClient({
          url: `http://localhost${server.prefix}`,
          token: server.token!,
          fetch: viaDispatch,
          transport: "sse",
        });
      expect(await talk(clientOf(one))).toContain("I am one.");
      expect(await talk(clientOf(two))).toContain("I am two.");
      await one.close();
      const asked = (server: Server) =>
        new Request(`http://localhost${server.prefix}/health`, {
          headers: { authorization: `Bearer ${server.token}` },
        });
      expectProblem(await answerOf(await dispatch(asked(one))), 503, "store_closed");
      expect((await dispatch(asked(two))).status).toBe(200);
    });

    test("1.13 each need a prefix of their own to share a listener", async () => {
      const same = [createServer({ prefix: "/a" }), createServer({ prefix: "/a" })];
      onTestFinished(async () => void (await Promise.all(same.map((server) => server.close()))));
      await expect(serve(same, { port: 0 })).rejects.toThrow("must each have a different prefix");
      await expect(serve([], { port: 0 })).rejects.toThrow("must each have a different prefix");
    });
  });
}

/** The place of a stream that a client has left is free a moment later. */
async function given200(answer: Promise<Response>): Promise<Response | undefined> {
  const response = await answer;
  return response.status === 200 ? response : undefined;
}
