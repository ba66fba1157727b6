// Who may do what: scopes, the program's own `authorize`, and the ids by which requests are found again.

import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { BoughError, defineTool } from "../../src/index.ts";
import { type Script, scriptedModel } from "../../src/scripted/index.ts";
import {
  type ActionScope,
  createServer,
  type Identity,
  type Server,
  type ServerOptions,
} from "../../src/server/index.ts";
import { type Frame, type ReplyFrame, type Route, routes, type Scope, scopes } from "../../src/wire/index.ts";
import { add, answerOf, expectProblem, type OpenStore, quiet, requestOf, scope, until } from "./kit.ts";

const all = Object.entries(routes) as [string, Route][];

/** A server that lets in whoever names itself, with the scopes that it names. */
async function given(open: OpenStore, script: Script, options: Partial<ServerOptions> = {}, tools = {}) {
  const server = createServer({
    agents: { helper: { model: scriptedModel(script), tools, logger: quiet } },
    store: await open(),
    auth: ({ headers }) => {
      const user = headers.get("x-api-key");
      const allowed = headers.get("x-scopes")?.split(",") as Scope[] | undefined;
      return user === null ? undefined : { tenant: "t", user, scopes: allowed ?? scopes };
    },
    limits: { requestsPerSecond: 10_000, burst: 10_000 },
    logger: quiet,
    ...options,
  });
  onTestFinished(() => server.close());
  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    answerOf(await server.fetch(requestOf(method, path, body, { "x-api-key": "ada", ...headers })));
  const by = (...allowed: Scope[]) => ({ "x-scopes": allowed.join(",") });
  return { server, ask, by };
}

/** A socket without a connection: frames go in by `ask`. */
async function socketOf(server: Server, headers: Record<string, string>) {
  const opened = await server.connect(requestOf("GET", `${scope}/ws`, undefined, { "x-api-key": "ada", ...headers }));
  if (opened instanceof Response) return expect.fail(`${opened.status}`);
  const frames: (Frame | ReplyFrame)[] = [];
  const closed: string[] = [];
  const socket = opened({
    send: async (text) => void frames.push(JSON.parse(text)),
    close: (_code, reason) => void closed.push(reason),
    destroy: () => {},
    ping: () => {},
  });
  onTestFinished(() => socket.closed());
  const ask = (frame: Record<string, unknown>) => {
    const id = `${frames.length}`;
    socket.message(JSON.stringify({ ...frame, id }));
    return until(() => frames.find((each): each is ReplyFrame => each.type === "reply" && each.id === id));
  };
  return { ask, frames, closed };
}

const paths: Record<string, string> = {
  agentId: "helper",
  sessionId: "s",
  branchId: "main",
  checkpointId: "c",
  runId: "r",
  contentId: "x",
  messageId: "m",
  toMessageId: "n",
  inputId: "i",
};
const pathOf = ({ path }: Route) => path.replace(/:(\w+)/g, (_, name: string) => paths[name]!);
/** The second of two messages that are compared is of the same branch, so nothing is decided by it. */
const idsIn = ({ path }: Route) => {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!).filter((name) => name !== "toMessageId");
  return Object.fromEntries(names.map((name) => [name, paths[name]!]));
};

/** A body that the route takes, and the ids that only it names. */
function bodyOf(name: string, { body, takes }: Route): { body?: unknown; ids?: ActionScope } {
  if (takes) return { body: new Uint8Array([1]) };
  const known: Record<string, { body: unknown; ids?: ActionScope }> = {
    createSession: { body: { sessionId: "new" }, ids: { sessionId: "new" } },
    createBranch: { body: { branchId: "new" }, ids: { branchId: "new" } },
    createAgent: { body: { agentId: "new", config: { model: "a/b" } }, ids: { agentId: "new" } },
    updateAgent: { body: { config: { model: "a/b" } } },
    updateSession: { body: { metadata: {} } },
    revertBranch: { body: { toMessageIndex: 0 } },
    respond: { body: { interactionId: "i", answer: {} }, ids: { interactionId: "i" } },
    signal: { body: { name: "go" } },
  };
  return known[name] ?? (body ? { body: {} } : {});
}

const mine = defineTool({ description: "Runs where the client is.", input: z.object({}) });
const guarded = { ...add, permission: true };

export function describePolicy(open: OpenStore): void {
  const asking = [
    { calls: [{ name: "add", input: { a: 1, b: 2 } }] },
    { calls: [{ name: "mine", input: {} }] },
    "Done.",
  ];
  const opened = async ({ ask }: Awaited<ReturnType<typeof given>>, kind: string): Promise<string> => {
    const found = await until(async () =>
      (await ask("GET", `${scope}/state`)).body.interactions.find((each: { kind: string }) => each.kind === kind),
    );
    return found.id;
  };

  test("2.2 run submits and returns a client's results but approves nothing; approve is the other way round", async () => {
    const g = await given(open, asking, {}, { add: guarded, mine });
    const { ask, by } = g;
    await ask("POST", "/sessions", { sessionId: "s" });
    expectProblem(await ask("POST", `${scope}/inputs`, { input: "Hi" }, by("read", "approve")), 403, "forbidden");
    expect((await ask("POST", `${scope}/inputs`, { input: "Hi" }, by("run"))).status).toBe(202);
    const answer = (interactionId: string, said: object, ...allowed: Scope[]) =>
      ask("POST", `${scope}/responses`, { interactionId, answer: said }, by(...allowed));
    const permission = await opened(g, "permission");
    for (const allowed of [["run"], ["run", "read", "write", "admin"]] as Scope[][]) {
      expectProblem(await answer(permission, { approved: true }, ...allowed), 403, "forbidden");
    }
    expect((await answer(permission, { approved: true }, "approve")).status).toBe(200);
    const call = await opened(g, "client-tool");
    expectProblem(await answer(call, { output: 1 }, "approve"), 403, "forbidden");
    expect((await answer(call, { output: 1 }, "run")).status).toBe(200);
    // What is over is told as that, so that a second page of a client is not told that it may not.
    expectProblem(await answer(call, { output: 1 }, "run"), 409, "interaction_closed");
    expectProblem(await answer("never", { approved: true }, "run"), 404, "interaction_not_found");
  });

  test("2.2, 7.2 a frame that answers needs the scope of its question", async () => {
    const g = await given(open, asking, {}, { add: guarded, mine });
    await g.ask("POST", "/sessions", { sessionId: "s" });
    const runs = await socketOf(g.server, g.by("read", "run"));
    const approves = await socketOf(g.server, g.by("read", "approve"));
    expect(await approves.ask({ type: "input", input: "Hi" })).toMatchObject({ status: 403 });
    expect(await runs.ask({ type: "input", input: "Hi" })).toMatchObject({ status: 202 });
    const permission = { type: "response", interactionId: await opened(g, "permission"), answer: { approved: true } };
    expect(await runs.ask(permission)).toMatchObject({ status: 403, body: { code: "forbidden" } });
    expect(await approves.ask({ type: "interrupt" })).toMatchObject({ status: 403 });
    expect(await approves.ask(permission)).toMatchObject({ status: 200 });
    const call = { type: "response", interactionId: await opened(g, "client-tool"), answer: { output: 1 } };
    expect(await approves.ask(call)).toMatchObject({ status: 403 });
    expect(await runs.ask(call)).toMatchObject({ status: 200 });
  });

  test("2.10 authorize is asked for every route, with the ids of the request, and refusing refuses", async () => {
    const asked: [Identity, string, ActionScope][] = [];
    let isAllowed = false;
    const { server, ask } = await given(open, [], {
      authorize: async (...action) => {
        asked.push(action);
        return isAllowed;
      },
    });
    for (const [name, route] of all) {
      const { body, ids } = bodyOf(name, route);
      const expected = [{ tenant: "t", user: "ada", scopes }, name, { ...idsIn(route), ...ids }];
      isAllowed = false;
      expectProblem(await ask(route.method, pathOf(route), body), 403, "forbidden");
      if (name === "socket") {
        const headers = { "x-api-key": "ada" };
        expect(await server.connect(requestOf("GET", pathOf(route), undefined, headers))).toMatchObject({
          status: 403,
        });
        expect(asked.splice(0, 1)).toEqual([expected]);
      }
      expect(asked.splice(0), name).toEqual([expected]);
      isAllowed = true;
      // A stream has no end that could be waited for.
      const streamed =
        route.gives === "stream" &&
        (await server.fetch(requestOf("GET", pathOf(route), undefined, { "x-api-key": "ada" })));
      if (streamed) await streamed.body?.cancel();
      const { status } = streamed || (await ask(route.method, pathOf(route), body));
      expect(status, name).not.toBe(403);
      expect(asked.splice(0), name).toEqual([expected]);
    }
    isAllowed = false;
    await ask("POST", "/sessions", { sessionId: "refused" });
    isAllowed = true;
    expectProblem(await ask("GET", "/sessions/refused"), 404, "session_not_found");
    // Neither a missing scope nor a missing credential gets as far as the program.
    asked.splice(0);
    expectProblem(await ask("GET", "/sessions", undefined, { "x-scopes": "run" }), 403, "forbidden");
    expect(asked).toEqual([]);
  });

  test("2.10 authorize can hide a session as if it did not exist, and one that fails lets nothing through", async () => {
    const authorize: ServerOptions["authorize"] = (_identity, _action, { sessionId }) => {
      if (sessionId === "hidden") throw new BoughError("session_not_found", "Not for you.");
      if (sessionId === "broken") throw new Error("The database of rights is gone.");
      return true;
    };
    const { ask } = await given(open, [], { authorize });
    const headers = { "x-request-id": "same" };
    const hidden = await ask("GET", "/sessions/hidden", undefined, headers);
    const missing = await ask("GET", "/sessions/missing", undefined, headers);
    expect(JSON.stringify(hidden.body)).toBe(JSON.stringify(missing.body).replaceAll("missing", "hidden"));
    expect([...hidden.headers]).toEqual([...missing.headers]);
    const broken = await ask("POST", "/sessions", { sessionId: "broken" }, headers);
    expectProblem(broken, 500, "server_failed");
    expect(JSON.stringify(broken.body)).not.toContain("rights");
  });

  test("2.10 a stream ends within a heartbeat of authorize's refusing it", async () => {
    let isAllowed = true;
    const authorize: ServerOptions["authorize"] = (_identity, action) => isAllowed || action !== "liveEvents";
    const { server, ask } = await given(open, [], { authorize, limits: { heartbeatMs: 20 } });
    await ask("POST", "/sessions", { sessionId: "s" });
    const headers = { "x-api-key": "ada" };
    const response = await server.fetch(requestOf("GET", `${scope}/events/live`, undefined, headers));
    const text = response.text();
    isAllowed = false;
    expect(await text).toMatch(/"type":"end","reason":"unauthorized"/);
  });

  test("2.10, 7.2 authorize is asked for every frame", async () => {
    const refused = new Set<string>();
    const asked: [string, ActionScope][] = [];
    const authorize: ServerOptions["authorize"] = (_identity, action, about) => {
      asked.push([action, about]);
      return !refused.has(action);
    };
    const { server, ask } = await given(open, [], { authorize });
    await ask("POST", "/sessions", { sessionId: "s" });
    const socket = await socketOf(server, {});
    const about = { agentId: "helper", sessionId: "s", branchId: "main" };
    const frames = {
      submitInput: { type: "input", input: "" },
      interrupt: { type: "interrupt" },
      respond: { type: "response", interactionId: "i", answer: {} },
    };
    for (const [action, frame] of Object.entries(frames)) {
      asked.splice(0);
      expect((await socket.ask(frame)).status).not.toBe(403);
      const ids = action === "respond" ? { ...about, interactionId: "i" } : about;
      expect(asked).toEqual([
        ["socket", about],
        [action, ids],
      ]);
      refused.add(action);
      expect(await socket.ask(frame)).toMatchObject({ status: 403, body: { code: "forbidden" } });
    }
  });

  test("1.11 every answer names its request: by the client's id where it is plain, by a new one otherwise", async () => {
    const warned: unknown[][] = [];
    const { server, ask } = await given(open, [], {
      logger: { warn: (...words) => void warned.push(words) },
      authorize: (_identity, action) => {
        if (action === "getAgent") throw new Error("broken");
        return true;
      },
    });
    const own = { "x-request-id": "trace-1:a.b_c" };
    expect((await ask("GET", "/health", undefined, own)).headers.get("x-request-id")).toBe("trace-1:a.b_c");
    const refused = await ask("GET", "/sessions/none", undefined, own);
    expect(refused.headers.get("x-request-id")).toBe("trace-1:a.b_c");
    expect(refused.body.requestId).toBe("trace-1:a.b_c");
    const ids = new Set<string>();
    for (const bad of ["", "-a", "a b", "a\tb", "<script>", "x".repeat(65), '"']) {
      const { headers, body } = await ask("GET", "/sessions/none", undefined, { "x-request-id": bad });
      expect(headers.get("x-request-id")).toMatch(/^[A-Za-z0-9]{16}$/);
      expect(body.requestId).toBe(headers.get("x-request-id"));
      ids.add(body.requestId);
    }
    expect(ids.size).toBe(7);
    expect((await server.fetch(new Request("http://localhost/health"))).headers.get("x-request-id")).toMatch(
      /^\w{16}$/,
    );
    await ask("GET", "/agents/helper", undefined, own);
    expect(warned.at(-1)![0]).toContain("trace-1:a.b_c");
    await ask("POST", "/sessions", { sessionId: "s" });
    const socket = await socketOf(server, own);
    expect(await socket.ask({ type: "interrupt" })).toMatchObject({ requestId: "trace-1:a.b_c.1" });
    const second = await socket.ask({ type: "response", interactionId: "i", answer: {} });
    expect(second).toMatchObject({ requestId: "trace-1:a.b_c.2", body: { requestId: "trace-1:a.b_c.2" } });
  });
}
