// Branches that work for another one, over the wire: who sees them, and who writes to them.

import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { createAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/scripted/index.ts";
import { openSessions, type Sessions } from "../../src/sessions/index.ts";
import { type Route, routes } from "../../src/wire/index.ts";
import { add, expectProblem, type Given, given, type OpenStore, say, scope, settled, until } from "./kit.ts";

const owner = { sessionId: "s", branchId: "main", turnId: "t", callId: "c", kind: "subagent" };
const hidden = { owner, visibility: "hidden" } as const;
const helper = "/agents/helper";
const h = "/sessions/s/branches/h";

const ids = (branches: readonly { id: string }[]) => branches.map(({ id }) => id);

/** What a server's own program does on the same store. */
const program = ({ store }: Given): Promise<Sessions> => openSessions(store);

/** A path and a body for a route, about the hidden branch. */
function askOf(route: Route, name: string, messageId: string): [string, unknown] {
  const params: Record<string, string> = { agentId: "helper", sessionId: "s", branchId: "h", checkpointId: "c" };
  const path = route.path.replace(/:(\w+)/g, (_, key: string) => params[key] ?? "x");
  if (route.takes) return [path, new Uint8Array([1, 2, 3])];
  const bodies: Record<string, unknown> = {
    revertBranch: { toMessageIndex: 0 },
    submitInput: { input: "Hi" },
    updateBranch: { name: "mine" },
    respond: { interactionId: "i", answer: {} },
    forkBranch: { newBranchId: "of h", fromMessageId: messageId },
    forkCheckpoint: { newBranchId: "of c" },
  };
  return [path, route.body && (bodies[name] ?? {})];
}

export function describeHidden(open: OpenStore): void {
  const start = async (script: Parameters<typeof given>[0] = ["One.", "Two."], more: object = {}) => {
    const g = await given(script, { open, ...more });
    await say(g, "Hello");
    const sessions = await program(g);
    await sessions.forkBranch({ sessionId: "s", branchId: "main" }, { newBranchId: "h", ...hidden });
    await sessions.saveCheckpoint({ sessionId: "s", branchId: "h" }, { id: "c" });
    return { ...g, sessions };
  };

  test("4.12 a hidden branch is in no list, tree or group unless all are asked for; by its id it can be read", async () => {
    const { ask } = await start();
    await ask("POST", `${scope}/fork`, { newBranchId: "f" });
    const list = async (query = "") => (await ask("GET", `/sessions/s/branches${query}`)).body.branches;
    const tree = async (query = "") => (await ask("GET", `/sessions/s/tree${query}`)).body.branches;
    expect(ids(await list())).toEqual(["main", "f"]);
    expect(ids(await list("?visibility=shown"))).toEqual(["main", "f"]);
    expect(ids(await list("?visibility=all"))).toEqual(["main", "h", "f"]);
    const { body: first } = await ask("GET", "/sessions/s/branches?visibility=all&limit=1");
    expect(ids(await list(`?visibility=all&limit=1&cursor=${first.cursor}`))).toEqual(["h"]);
    expect((await tree()).map((each: { forks: [] }) => ids(each.forks))).toEqual([["f"]]);
    expect((await tree("?visibility=all")).map((each: { forks: [] }) => ids(each.forks))).toEqual([["h", "f"]]);
    expect(await list()).toMatchObject([{ totalForks: 1 }, { totalSiblings: 2, previousSibling: "main" }]);
    expect(ids((await ask("GET", "/sessions/s/branches/f/siblings")).body.branches)).toEqual(["main", "f"]);
    for (const query of ["?visibility=hidden", "?visibility="]) {
      expectProblem(await ask("GET", `/sessions/s/branches${query}`), 400, "invalid_argument");
    }

    expect((await ask("GET", h)).body).toMatchObject({ id: "h", forkedFrom: "main", ...hidden });
    expect((await ask("GET", `${helper}${h}/state`)).body).toMatchObject({
      branch: { id: "h", ...hidden },
      messages: [{ role: "user" }, { role: "assistant" }],
    });
    expect((await ask("GET", `${h}/events`)).body.events.at(-1)).toMatchObject({ type: "branch.forked", ...hidden });
    for (const path of ["/messages", "/checkpoints", "/content", "/siblings"]) {
      expect((await ask("GET", h + path)).status).toBe(200);
    }
  });

  test("4.12 no request makes a branch hidden or gives it an owner, metadata included", async () => {
    const { ask } = await start();
    const ways: [string, string][] = [
      ["POST", `${helper}/sessions/s/branches`],
      ["POST", `${scope}/fork`],
      ["PATCH", "/sessions/s/branches/main"],
      ["POST", `${helper}${h}/checkpoints/c/fork`],
    ];
    for (const [method, path] of ways) {
      for (const said of [{ owner }, { visibility: "hidden" }, { visibility: "shown" }, { owner: null }]) {
        expectProblem(await ask(method, path, said), 400, "invalid_argument");
      }
    }
    const metadata = { ...hidden, kind: "subagent", parentSessionId: "s", parentBranchId: "main" };
    const { body } = await ask("POST", `${helper}/sessions/s/branches`, { branchId: "liar", metadata });
    expect(body).not.toHaveProperty("owner");
    await ask("PATCH", "/sessions/s/branches/main", { metadata });
    expect(ids((await ask("GET", "/sessions/s/branches")).body.branches)).toEqual(["main", "liar"]);
    expect((await ask("POST", `${helper}/sessions/s/branches/liar/inputs`, { input: "Hi" })).status).toBe(202);
    await settled({ ask } as Given, `${helper}/sessions/s/branches/liar`);
  });

  test("4.13 a hidden branch is read, forked and answered by clients; all else that writes is refused", async () => {
    const { ask, store } = await start();
    const { body: state } = await ask("GET", `${helper}${h}/state`);
    const before = await store.getBranch({ sessionId: "s", branchId: "h" });
    const about = (Object.entries(routes) as [string, Route][]).filter(
      ([, { method, path }]) => method !== "GET" && path.includes(":branchId"),
    );
    const refused: string[] = [];
    for (const [name, route] of about) {
      const [path, body] = askOf(route, name, state.messages[0].id);
      const answer = await ask(route.method, path, body);
      if (answer.body.code !== "branch_hidden") continue;
      const problem = expectProblem(answer, 403, "branch_hidden");
      expect(problem.data).toEqual({ sessionId: "s", branchId: "h" });
      refused.push(name);
    }
    expect(refused.sort()).toEqual([
      "cancelTask",
      "checkCompaction",
      "compact",
      "deleteBranch",
      "deleteContent",
      "editInput",
      "interrupt",
      "pin",
      "revertBranch",
      "revertCheckpoint",
      "saveCheckpoint",
      "submitInput",
      "uncompact",
      "unpin",
      "updateBranch",
      "uploadContent",
      "withdrawInput",
    ]);
    expect(await store.getBranch({ sessionId: "s", branchId: "h" })).toEqual(before);
    expect(await store.content!.list({ sessionId: "s", branchId: "h" })).toEqual([]);
    for (const id of ["of h", "of c"]) {
      const { body } = await ask("GET", `/sessions/s/branches/${encodeURIComponent(id)}`);
      expect(body).toMatchObject({ id, forkedFrom: "h", ancestors: ["main"] });
      expect(body).not.toHaveProperty("visibility");
      expect(body).not.toHaveProperty("owner");
      await say({ ask } as Given, "Go on", `${helper}/sessions/s/branches/${encodeURIComponent(id)}`);
    }
    // A branch that nobody has is told as such.
    expectProblem(await ask("DELETE", "/sessions/s/branches/nobody"), 404, "branch_not_found");
  });

  test("4.13 the same over a socket, whose frames go by the rules of their routes", async () => {
    const g = await start();
    const at = `${g.serving.url.replace("http", "ws")}${helper}${h}/ws`;
    const socket = new WebSocket(at, ["bough", `bough-token.${g.server.token}`]);
    onTestFinished(() => socket.terminate());
    // biome-ignore lint/suspicious/noExplicitAny: frames of every shape
    const frames: any[] = [];
    socket.on("message", (data) => frames.push(JSON.parse(String(data))));
    await until(() => frames.some(({ type }) => type === "ready"));
    const reply = async (frame: { id: string }) => {
      socket.send(JSON.stringify(frame));
      return until(() => frames.find(({ type, id }) => type === "reply" && id === frame.id));
    };
    const sent = [
      { type: "input", id: "1", input: "Hi" },
      { type: "interrupt", id: "2" },
    ];
    for (const frame of sent) {
      expect(await reply(frame)).toMatchObject({ status: 403, body: { code: "branch_hidden" } });
    }
    const answer = { type: "response", id: "3", interactionId: "i", answer: {} };
    expect(await reply(answer)).toMatchObject({ status: 404, body: { code: "interaction_not_found" } });
  });

  test("4.13 a question of a hidden branch is listed, and its answer resumes its turn", async () => {
    const sum = { calls: [{ name: "add", input: { a: 1, b: 2 } }] };
    const agent = { tools: { add: { ...add, permission: true } } };
    const g = await start(["One.", "Three."], { agent });
    const path = `${helper}${h}`;
    // The run of a subagent: begun by the program, on a branch that no client may write to.
    const subagent = createAgent({ id: "helper", model: scriptedModel([sum]), ...agent, store: g.store });
    await subagent.run("Add", { sessionId: "s", branchId: "h", questions: "park" }).result;
    const { interactions } = (await g.ask("GET", "/interactions")).body;
    expect(interactions).toMatchObject([{ branchId: "h", kind: "permission" }]);
    const answered = await g.ask("POST", `${path}/responses`, {
      interactionId: interactions[0].id,
      answer: { approved: true },
    });
    expect(answered).toMatchObject({ status: 200, body: { runId: expect.any(String) } });
    await settled(g, path);
    expect((await g.ask("GET", `${h}/messages`)).body.messages).toHaveLength(6);
  });

  test("4.5 a branch's hidden branches go with it and don't hold it, their shown forks do", async () => {
    const { ask, sessions } = await start();
    await ask("POST", `${scope}/fork`, { newBranchId: "f" });
    const f = { sessionId: "s", branchId: "f" };
    const ofF = { ...hidden, owner: { ...owner, branchId: "f" } };
    await sessions.forkBranch(f, { newBranchId: "hf", ...ofF });
    await sessions.createBranch("s", { branchId: "fresh", ...ofF });
    await ask("POST", `${helper}/sessions/s/branches/hf/fork`, { newBranchId: "v" });
    const refused = await ask("DELETE", "/sessions/s/branches/f");
    expect(expectProblem(refused, 409, "branch_has_children").data).toMatchObject({ children: ["v"] });
    expect((await ask("DELETE", "/sessions/s/branches/v")).status).toBe(204);
    expect((await ask("DELETE", "/sessions/s/branches/f")).status).toBe(204);
    const left = (await ask("GET", "/sessions/s/branches?visibility=all")).body.branches;
    expect(ids(left)).toEqual(["main", "h"]);
  });
}
