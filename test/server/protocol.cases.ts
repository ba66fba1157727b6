// The protocol, clause by clause, on one store. Every test is named for the clause of PROTOCOL.md that it holds.

import { describe, expect, test } from "vitest";
import { add as addTool, expectProblem, given, held, type OpenStore, say, scope, settled, until } from "./kit.ts";

const main = "/sessions/s/branches/main";

export function describeProtocol(open: OpenStore): void {
  const start: typeof given = (script, options = {}) => given(script, { open, ...options });

  describe("1. requests and answers", () => {
    test("1.1 another media type is refused", async () => {
      const { ask } = await start([]);
      const answer = await ask("POST", "/sessions", '{"sessionId":"x"}', { "content-type": "text/plain" });
      expectProblem(answer, 415, "media_type_refused");
      const packed = await ask("POST", "/sessions", {}, { "content-encoding": "gzip" });
      expectProblem(packed, 415, "media_type_refused");
    });

    test("1.2 unknown keys and parameters are refused", async () => {
      const { ask } = await start([]);
      const misspelt = await ask("POST", "/sessions", { sessionID: "x" });
      expectProblem(misspelt, 400, "invalid_argument");
      expect(misspelt.body.detail).toBe('Unknown key "sessionID".');
      const deeper = await ask("POST", `${scope}/inputs`, { input: "Hi", config: { limits: { turns: 1 } } });
      expect(deeper.body.detail).toBe('Unknown key "config.limits.turns".');
      expectProblem(await ask("POST", `${scope}/inputs`, []), 400, "invalid_argument");
      expectProblem(await ask("GET", "/sessions?limit=3&limit=4"), 400, "invalid_argument");
      expectProblem(await ask("GET", "/sessions?__proto__=3"), 400, "invalid_argument");
    });

    test("1.3 a refusal does not repeat what was said", async () => {
      const { ask } = await start([]);
      const secret = "my secret words";
      const { body } = await ask("POST", `${scope}/inputs`, { input: [{ type: secret, text: secret }] });
      expect(body.code).toBe("invalid_argument");
      expect(JSON.stringify(body)).not.toContain(secret);
    });

    test.each([
      "/sessions/%2e%2e/tree",
      "/sessions/s/../s",
      "/sessions/s/%2E",
      "/sessions/s/.%2e/health",
      "/sessions/a%2Fb",
      "/sessions/a%5cb",
      "/sessions//s",
      "/sessions/%00",
      "/sessions/~s",
    ])("1.4 %s is no path", async (path) => {
      const { ask } = await start([]);
      expectProblem(await ask("GET", path), 400, "invalid_argument");
    });

    test("1.5 bodies are bounded in size and depth, and can't change what an object is", async () => {
      const { ask } = await start([], { limits: { bodyBytes: 1000 } });
      expectProblem(await ask("POST", "/sessions", { metadata: { a: "x".repeat(1000) } }), 413, "limit_exceeded");
      const deep = `{"metadata":{"a":${"[".repeat(100)}${"]".repeat(100)}}}`;
      const json = { "content-type": "application/json" };
      expectProblem(await ask("POST", "/sessions", deep, json), 413, "limit_exceeded");
      for (const key of ["__proto__", "constructor", "prototype"]) {
        const poisoned = `{"sessionId":"p","metadata":{"${key}":{"polluted":true}}}`;
        expectProblem(await ask("POST", "/sessions", poisoned, json), 400, "invalid_argument");
      }
      expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    });

    test("1.6 there are no other routes", async () => {
      const { ask } = await start([]);
      expectProblem(await ask("GET", "/nowhere"), 404, "route_not_found");
      expectProblem(await ask("PUT", "/sessions"), 404, "route_not_found");
      expectProblem(await ask("OPTIONS", "/sessions"), 404, "route_not_found");
    });

    test("1.7 times are milliseconds, and what has no value is absent", async () => {
      const { ask } = await start([]);
      const before = Date.now();
      const { body } = await ask("POST", `${scope}/fork`, { newBranchId: "f" });
      expect(Math.abs(body.createdAt - before)).toBeLessThan(60_000);
      expect(Object.values(body)).not.toContain(null);
      expect(body).not.toHaveProperty("description");
    });

    test("1.8 every answer tells browsers to do nothing with it", async () => {
      const { ask } = await start([]);
      for (const path of ["/health", "/nowhere"]) {
        const { headers } = await ask("GET", path);
        expect(headers.get("x-content-type-options")).toBe("nosniff");
        expect(headers.get("content-security-policy")).toContain("default-src 'none'");
        expect(headers.get("cache-control")).toBe("no-store");
        expect(headers.get("access-control-allow-origin")).toBeNull();
      }
    });
  });

  describe("3. sessions", () => {
    test("3.1 a session is created once, with branch main", async () => {
      const { ask } = await start([]);
      const created = await ask("POST", "/sessions", { sessionId: "é 1", metadata: { owner: "ann" } });
      expect(created).toMatchObject({ status: 201, body: { id: "é 1", metadata: { owner: "ann" } } });
      expectProblem(await ask("POST", "/sessions", { sessionId: "é 1" }), 409, "session_exists");
      const branches = await ask("GET", `/sessions/${encodeURIComponent("é 1")}/branches`);
      expect(branches.body.branches.map(({ id }: { id: string }) => id)).toEqual(["main"]);
      expect((await ask("POST", "/sessions")).status).toBe(201);
    });

    test("3.2 listing goes page by page", async () => {
      const { ask } = await start([]);
      for (const id of ["a", "b", "c", "d"]) await ask("POST", "/sessions", { sessionId: id });
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const { body } = await ask("GET", `/sessions?limit=2${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
        seen.push(...body.sessions.map(({ id }: { id: string }) => id));
        cursor = body.cursor;
      } while (cursor);
      expect(seen.sort()).toEqual(["a", "b", "c", "d", "s"]);
      expectProblem(await ask("GET", "/sessions?cursor=nonsense"), 400, "invalid_argument");
    });

    test("3.3 searching compares metadata exactly; what looks like a pattern is a text", async () => {
      const { ask } = await start([]);
      await ask("POST", "/sessions", { sessionId: "a", metadata: { team: "x" } });
      await ask("POST", "/sessions", { sessionId: "b", metadata: { team: "%" } });
      const find = async (team: string) =>
        (await ask("POST", "/sessions/search", { metadata: { team } })).body.sessions.map(
          ({ id }: { id: string }) => id,
        );
      expect(await find("x")).toEqual(["a"]);
      expect(await find("%")).toEqual(["b"]);
      expect(await find("' OR 1=1 --")).toEqual([]);
      for (const key of ["a' OR 1=1", "$.a", "~namespace", 'a"b']) {
        expectProblem(await ask("POST", "/sessions/search", { metadata: { [key]: "x" } }), 400, "invalid_argument");
      }
    });

    test("3.11 a session is ensured: created if there is none, otherwise left as it is", async () => {
      const { ask } = await start([]);
      const both = await Promise.all(["a", "b"].map((owner) => ask("PUT", "/sessions/new", { metadata: { owner } })));
      expect(both.map(({ status }) => status)).toEqual([200, 200]);
      expect(both[0]!.body).toEqual(both[1]!.body);
      const { body } = await ask("PUT", "/sessions/new", { metadata: { owner: "c" } });
      expect(body).toEqual(both[0]!.body);
      expect((await ask("GET", "/sessions/new/branches")).body.branches).toMatchObject([{ id: "main" }]);
      expectProblem(await ask("PUT", "/sessions/new", { sessionId: "x" }), 400, "invalid_argument");
    });

    test("3.4–3.6 a session is read, patched and deleted", async () => {
      const { ask } = await start([]);
      await ask("PATCH", "/sessions/s", { metadata: { a: 1, b: 2 } });
      const { body } = await ask("PATCH", "/sessions/s", { metadata: { a: null, c: 3 } });
      expect(body.metadata).toEqual({ b: 2, c: 3 });
      expect((await ask("GET", "/sessions/s")).body).toEqual(body);
      expect((await ask("DELETE", "/sessions/s")).status).toBe(204);
      expectProblem(await ask("GET", "/sessions/s"), 404, "session_not_found");
      expectProblem(await ask("DELETE", "/sessions/s"), 404, "session_not_found");
    });

    test("3.8–3.10 remembered permissions are listed, leave a fact where they are used, and are revoked", async () => {
      let calls = 0;
      const script: Parameters<typeof given>[0] = (prompt) =>
        prompt.at(-1)!.role === "tool" ? "Done." : { calls: [{ name: "add", input: { a: ++calls, b: 1 } }] };
      const g = await start(script, { agent: { tools: { add: { ...addTool, permission: true } } } });
      const asked = () => until(async () => (await g.ask("GET", `${scope}/state`)).body.interactions[0]);
      const granted = async () =>
        (await g.ask("GET", `${main}/events?limit=1000`)).body.events.filter(
          ({ type }: { type: string }) => type === "permission.granted",
        );
      await g.ask("POST", `${scope}/inputs`, { input: "Add" });
      const { id: interactionId } = await asked();
      await g.ask("POST", `${scope}/responses`, { interactionId, answer: { approved: true, choice: "always" } });
      await settled(g);
      const { body } = await g.ask("GET", "/sessions/s/permissions");
      const kept = { agentId: "helper", tool: "add", decision: "allow", at: expect.any(Number), interactionId };
      expect(body).toEqual({ permissions: [kept] });
      expect(await granted()).toEqual([]);
      await say(g, "Add");
      expect(await granted()).toMatchObject([{ toolName: "add", how: "always", interactionId }]);
      const revoke = (query: string) => g.ask("DELETE", `/sessions/s/permissions/add${query}`);
      expect(await revoke("?agentId=another")).toMatchObject({ status: 200, body: { revoked: 0 } });
      expect((await revoke("?agentId=helper")).body).toEqual({ revoked: 1 });
      expect((await revoke("")).body).toEqual({ revoked: 0 });
      expect((await g.ask("GET", "/sessions/s/permissions")).body).toEqual({ permissions: [] });
      await g.ask("POST", `${scope}/inputs`, { input: "Add" });
      expect((await asked()).id).not.toBe(interactionId);
      expectProblem(await g.ask("GET", "/sessions/none/permissions"), 404, "session_not_found");
      expectProblem(await g.ask("DELETE", "/sessions/none/permissions/add"), 404, "session_not_found");
    });

    test("3.6 a session in which something runs stays", async () => {
      const { script, open } = held();
      const g = await start(script);
      await g.ask("POST", `${scope}/inputs`, { input: "Hi" });
      expectProblem(await g.ask("DELETE", "/sessions/s"), 409, "run_active");
      open();
      await settled(g);
      expect((await g.ask("DELETE", "/sessions/s")).status).toBe(204);
    });
  });

  describe("4. branches", () => {
    test("4.1–4.3, 3.7, 4.8 branches are created, forked, and know their places", async () => {
      const g = await start(["One.", "Two."]);
      const { ask } = g;
      await say(g, "first");
      await say(g, "second");
      const { messages } = (await ask("GET", `${scope}/state`)).body;
      const fork = await ask("POST", `${scope}/fork`, {
        fromMessageId: messages[1].id,
        newBranchId: "f",
        name: "Formal",
      });
      expect(fork).toMatchObject({
        status: 201,
        body: { id: "f", name: "Formal", forkedFrom: "main", forkedAtMessageId: messages[1].id, messageCount: 2 },
      });
      expect((await ask("GET", "/agents/helper/sessions/s/branches/f/state")).body.messages).toEqual(
        messages.slice(0, 2),
      );
      expect((await ask("GET", `${main}/siblings`)).body.branches.length).toBeGreaterThan(0);
      const { body: tree } = await ask("GET", "/sessions/s/tree");
      expect(tree.branches).toMatchObject([{ id: "main", forks: [{ id: "f", forks: [] }] }]);
      expectProblem(await ask("POST", `${scope}/fork`, { fromMessageId: "nobody" }), 404, "message_not_on_branch");
      expectProblem(await ask("POST", `${scope}/fork`, { fromMessageId: "a", fromSeq: 1 }), 400, "invalid_argument");
      const empty = await ask("POST", "/agents/helper/sessions/s/branches", { branchId: "e" });
      expect(empty).toMatchObject({ status: 201, body: { id: "e", messageCount: 0 } });
      expectProblem(await ask("POST", "/agents/helper/sessions/s/branches", { branchId: "e" }), 409, "branch_exists");
      expectProblem(await ask("POST", "/agents/nobody/sessions/s/branches", {}), 404, "agent_not_found");
      expectProblem(await ask("GET", "/sessions/s/branches/nobody"), 404, "branch_not_found");
    });

    test("4.1, 4.8 branches and siblings come in pages, each branch once, with ancestors only when asked for alone", async () => {
      const { ask } = await start([]);
      const ids = ["a", "b", "c", "d"];
      for (const newBranchId of ids) await ask("POST", `${scope}/fork`, { newBranchId });
      await ask("POST", "/agents/helper/sessions/s/branches/d/fork", { newBranchId: "e" });
      for (const [path, expected] of [
        ["/sessions/s/branches", ["main", ...ids, "e"]],
        ["/sessions/s/branches/a/siblings", ["main", ...ids]],
      ] as const) {
        const found: string[] = [];
        let cursor = "";
        do {
          const { status, body } = await ask("GET", `${path}?limit=2${cursor}`);
          expect(status).toBe(200);
          expect(body.branches.length).toBeLessThanOrEqual(2);
          for (const branch of body.branches) {
            found.push(branch.id);
            expect(branch).not.toHaveProperty("ancestors");
            expect(branch).toHaveProperty("totalForks");
          }
          cursor = body.cursor === undefined ? "" : `&cursor=${encodeURIComponent(body.cursor)}`;
        } while (cursor !== "");
        expect(found).toEqual(expected);
        expectProblem(await ask("GET", `${path}?limit=1001`), 400, "invalid_argument");
        expectProblem(await ask("GET", `${path}?cursor=none`), 400, "invalid_argument");
      }
      expect((await ask("GET", "/sessions/s/branches/e")).body).toMatchObject({
        ancestors: ["main", "d"],
        totalAncestors: 2,
        children: [],
      });
    });

    test("4.4 what is said about a branch is patched", async () => {
      const { ask } = await start([]);
      await ask("PATCH", main, { name: "N", tags: ["a"], metadata: { x: 1 } });
      const { body } = await ask("PATCH", main, { name: null, metadata: { y: 2 } });
      expect(body).toMatchObject({ tags: ["a"], metadata: { x: 1, y: 2 } });
      expect(body.name).toBeUndefined();
    });

    test("4.5 deleting is refused for main, for branches with forks and while a run is active", async () => {
      const { script, open } = held();
      const g = await start(script, { allowRecursiveDelete: true });
      const { ask } = g;
      expectProblem(await ask("DELETE", main), 409, "branch_protected");
      await ask("POST", `${scope}/fork`, { newBranchId: "a" });
      await ask("POST", "/agents/helper/sessions/s/branches/a/fork", { newBranchId: "b" });
      const problem = expectProblem(await ask("DELETE", "/sessions/s/branches/a"), 409, "branch_has_children");
      expect(problem.data.children).toEqual(["b"]);
      await ask("POST", "/agents/helper/sessions/s/branches/b/inputs", { input: "Hi" });
      expectProblem(await ask("DELETE", "/sessions/s/branches/a?recursive=true"), 409, "run_active");
      open();
      await settled(g, "/agents/helper/sessions/s/branches/b");
      expect((await ask("DELETE", "/sessions/s/branches/a?recursive=true")).status).toBe(204);
      expectProblem(await ask("GET", "/sessions/s/branches/b"), 404, "branch_not_found");
    });

    test("4.5 a branch is deleted with its forks only where the server's program allows that", async () => {
      const { ask } = await start([]);
      await ask("POST", `${scope}/fork`, { newBranchId: "a" });
      await ask("POST", "/agents/helper/sessions/s/branches/a/fork", { newBranchId: "b" });
      const problem = expectProblem(await ask("DELETE", "/sessions/s/branches/a?recursive=true"), 403, "forbidden");
      expect(problem.detail).toBe("This server does not let clients delete a branch together with its forks.");
      expect((await ask("GET", "/sessions/s/branches")).body.branches).toHaveLength(3);
      expect((await ask("DELETE", "/sessions/s/branches/b?recursive=false")).status).toBe(204);
      expect((await ask("DELETE", "/sessions/s/branches/a")).status).toBe(204);
    });

    test("4.6 a branch goes back, and its log stays", async () => {
      const g = await start(["One.", "Two."]);
      const { ask } = g;
      await say(g, "first");
      await say(g, "second");
      const before = (await ask("GET", `${main}/events`)).body.events.length;
      expect((await ask("POST", `${main}/revert`, { toMessageIndex: 2 })).body.messageCount).toBe(2);
      expect((await ask("GET", `${main}/events`)).body.events.length).toBe(before + 1);
      expectProblem(await ask("POST", `${main}/revert`, {}), 400, "invalid_argument");
      expectProblem(await ask("POST", `${main}/revert`, { toSeq: 999 }), 410, "position_not_on_branch");
      expectProblem(await ask("POST", `${main}/revert`, { expectedSeq: before + 1 }), 400, "invalid_argument");
      const behind = { toMessageIndex: 0, expectedSeq: before };
      expectProblem(await ask("POST", `${main}/revert`, behind), 409, "sequence_conflict");
      const current = { ...behind, expectedSeq: before + 1 };
      expect((await ask("POST", `${main}/revert`, current)).body.messageCount).toBe(0);
    });

    test("4.7 events come page by page without gaps", async () => {
      const g = await start(["One."]);
      await say(g, "first");
      const all = (await g.ask("GET", `${main}/events`)).body.events;
      expect(all.map(({ seq }: { seq: number }) => seq)).toEqual([1, 2, 3, 4, 5]);
      expect((await g.ask("GET", `${main}/events?after=2&limit=2`)).body.events).toEqual(all.slice(2, 4));
    });

    test("4.7 events are what the log keeps; their routing is in the frames of a stream only", async () => {
      const g = await start(["One."]);
      await say(g, "first");
      const routing = ["sessionId", "branchId", "version", "channel", "direction"];
      const { events } = (await g.ask("GET", `${main}/events`)).body;
      for (const event of events) {
        expect(Object.keys(event)).toEqual(expect.arrayContaining(["seq", "id", "at", "type"]));
        for (const key of [...routing, "agent", "traceId", "spanId", "parentSpanId"])
          expect(event).not.toHaveProperty(key);
      }
      const stream = await g.live(`${scope}/events/live`);
      await stream.until(({ type }) => type === "ready");
      const told = stream.frames.flatMap((frame) => (frame.type === "event" ? [frame.event] : []));
      expect(told.map(({ seq }) => seq)).toEqual(events.map(({ seq }: { seq: number }) => seq));
      for (const [i, event] of told.entries()) {
        expect(event).toMatchObject(events[i]);
        for (const key of routing) expect(event).toHaveProperty(key);
      }
    });

    test.each([
      ["limit=0", '"limit" must be at least 1.'],
      ["limit=1001", '"limit" must be at most 1000.'],
      ["limit=-1", '"limit" must be an integer ≥ 0.'],
      ["after=1e3", '"after" must be an integer ≥ 0.'],
      ["turnId=", '"turnId" must not be empty.'],
      ["typ=x", 'Unknown key "typ".'],
    ])("1.2 a query that is wrong is told what is wanted: %s", async (query, sentence) => {
      const g = await start([]);
      const { detail } = expectProblem(await g.ask("GET", `${main}/events?${query}`), 400, "invalid_argument");
      expect(detail).toBe(sentence);
    });

    test("4.11 events are read by range, turn, run and type", async () => {
      const g = await start(["One.", "Two.", "Three."]);
      await say(g, "first");
      const runId = await say(g, "second");
      await say(g, "third");
      const events = async (query: string) => (await g.ask("GET", `${main}/events?${query}`)).body;
      const all = (await events("")).events;
      const isOfTurn = ({ id, turnId }: { id: string; turnId?: string }) => (turnId ?? id) === all[5].id;
      const ofTurn = all.filter(isOfTurn);
      expect(all[5]).toMatchObject({ type: "turn.started", runId });
      expect(ofTurn).toHaveLength(4);
      expect(await events(`turnId=${all[5].id}`)).toEqual({ events: ofTurn });
      expect(await events(`runId=${runId}`)).toEqual({ events: ofTurn });
      expect(await events(`runId=${runId}&type=message.added&after=7`)).toEqual({ events: [all[7]] });
      expect(await events(`runId=${runId}&limit=2`)).toEqual({ events: ofTurn.slice(0, 2), after: 7 });
      expect(await events("after=2&before=5")).toMatchObject({ events: all.slice(2, 4) });
      expect((await events("type=turn.committed")).events.map(({ seq }: { seq: number }) => seq)).toEqual([5, 9, 13]);
      expect(await events("turnId=none")).toEqual({ events: [] });
      expectProblem(await g.ask("GET", `${main}/events?turnId=`), 400, "invalid_argument");
      expectProblem(await g.ask("GET", "/sessions/s/branches/x/events?turnId=t"), 404, "branch_not_found");
    });

    test("4.9 checkpoints are saved, listed, looked at, forked and gone back to", async () => {
      const g = await start(["One.", "Two."]);
      const { ask } = g;
      await say(g, "first");
      const saved = await ask("POST", `${main}/checkpoints`, { checkpointId: "c", label: "here" });
      expect(saved).toMatchObject({ status: 201, body: { id: "c", label: "here", messageIndex: 2 } });
      expectProblem(await ask("POST", `${main}/checkpoints`, { checkpointId: "c" }), 409, "checkpoint_exists");
      await say(g, "second");
      expect((await ask("GET", `${main}/checkpoints`)).body.checkpoints).toMatchObject([{ id: "c" }]);
      const then = (await ask("GET", `${main}/checkpoints/c`)).body;
      expect(then).toMatchObject({ checkpoint: { id: "c" }, seq: saved.body.seq });
      expect(then.messages).toHaveLength(2);
      const fork = await ask("POST", `${scope}/checkpoints/c/fork`, { newBranchId: "f" });
      expect(fork).toMatchObject({ status: 201, body: { id: "f", messageCount: 2 } });
      expect((await ask("POST", `${main}/checkpoints/c/revert`)).body.messageCount).toBe(2);
      expectProblem(await ask("GET", `${main}/checkpoints/x`), 404, "checkpoint_not_found");
      expectProblem(await ask("POST", `${main}/checkpoints/x/revert`), 404, "checkpoint_not_found");
    });
  });
}
