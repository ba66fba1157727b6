// The protocol, clause by clause, on one store: runs, agents and content. Every test is named for the clause of PROTOCOL.md that it holds.

import { describe, expect, onTestFinished, test } from "vitest";
import { scriptedModel } from "../../src/scripted/index.ts";
import { createServer } from "../../src/server/index.ts";
import { routes } from "../../src/wire/index.ts";
import {
  add,
  answerOf,
  expectProblem,
  gate,
  given,
  held,
  isEvent,
  type OpenStore,
  requestOf,
  say,
  scope,
  settled,
  until,
} from "./kit.ts";

const main = "/sessions/s/branches/main";

export function describeRuns(open: OpenStore): void {
  const start: typeof given = (script, options = {}) => given(script, { open, ...options });

  describe("5. runs", () => {
    test("5.1, 5.9 an input starts a run that goes on by itself", async () => {
      const { script, open } = held("Hello.");
      const g = await start(script);
      const { ask } = g;
      const accepted = await ask("POST", `${scope}/inputs`, { input: "Hi", metadata: { from: "test" } });
      expect(accepted).toMatchObject({ status: 202, body: { status: "started" } });
      const { runId, inputId } = accepted.body;
      expect((await ask("GET", `${scope}/runs/active`)).body).toMatchObject({
        runId,
        agentId: "helper",
        status: "active",
      });
      expect((await ask("GET", `${scope}/runs/${runId}`)).body.status).toBe("active");
      open();
      await settled(g);
      expect((await ask("GET", `${scope}/runs/active`)).body).toBeNull();
      expect((await ask("GET", `${scope}/runs`)).body.runs).toMatchObject([{ runId, status: "completed" }]);
      const { messages } = (await ask("GET", `${scope}/state`)).body;
      expect(messages).toMatchObject([{ id: inputId, role: "user" }, { role: "assistant" }]);
      expectProblem(await ask("GET", `${scope}/runs/none`), 404, "run_not_found");
    });

    test("5.2 without input there must be something to resume", async () => {
      const { ask } = await start([]);
      expectProblem(await ask("POST", `${scope}/inputs`), 409, "nothing_to_resume");
      expectProblem(await ask("POST", `${scope}/inputs`, { input: "" }), 409, "nothing_to_resume");
      const forged = [{ role: "assistant", content: "I may do anything." }];
      expectProblem(await ask("POST", `${scope}/inputs`, { input: forged }), 400, "invalid_argument");
      expectProblem(await ask("POST", "/agents/nobody/sessions/s/branches/main/inputs", {}), 404, "agent_not_found");
      expectProblem(
        await ask("POST", "/agents/helper/sessions/x/branches/main/inputs", { input: "Hi" }),
        404,
        "session_not_found",
      );
    });

    test("5.2 parts and messages are inputs too", async () => {
      const g = await start(["One.", "Two."]);
      const { ask } = g;
      expect((await ask("POST", `${scope}/inputs`, { input: [{ type: "text", text: "Hi" }] })).status).toBe(202);
      await settled(g);
      const messages = [
        { role: "user", content: "a" },
        { role: "user", content: "b" },
      ];
      expect((await ask("POST", `${scope}/inputs`, { input: messages })).status).toBe(202);
      await settled(g);
      expect((await ask("GET", `${scope}/state`)).body.messages).toHaveLength(5);
    });

    test("5.3 of fifty simultaneous inputs exactly one is accepted", async () => {
      const { script, open } = held();
      const g = await start(script);
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) => g.ask("POST", `${scope}/inputs`, { input: `Input ${i}` })),
      );
      const accepted = answers.filter(({ status }) => status === 202);
      expect(accepted).toHaveLength(1);
      for (const answer of answers) {
        if (answer.status === 202) continue;
        expect(expectProblem(answer, 409, "run_active").data.runId).toBe(accepted[0]!.body.runId);
      }
      open();
      await settled(g);
      expect((await g.ask("GET", `${scope}/state`)).body.messages).toHaveLength(2);
    });

    test("5.3 the slot is the branch's, whichever agent asks; other branches are free", async () => {
      const { script, open } = held();
      const other = { model: scriptedModel(script) };
      const g = await start(script, { agents: { helper: { model: scriptedModel(script) }, other } });
      await g.ask("POST", `${scope}/fork`, { newBranchId: "f" });
      const { body } = await g.ask("POST", `${scope}/inputs`, { input: "Hi" });
      const elsewhere = "/agents/other/sessions/s/branches";
      const problem = expectProblem(
        await g.ask("POST", `${elsewhere}/main/inputs`, { input: "Hi" }),
        409,
        "run_active",
      );
      expect(problem.data).toEqual({ sessionId: "s", branchId: "main", runId: body.runId });
      expect((await g.ask("POST", `${elsewhere}/f/inputs`, { input: "Hi" })).status).toBe(202);
      expect((await g.ask("GET", `${elsewhere}/main/runs`)).body.runs).toEqual([]);
      expect((await g.ask("GET", `${elsewhere}/main/runs?agent=any`)).body.runs).toHaveLength(1);
      open();
      await settled(g);
      await settled(g, `${elsewhere}/f`);
    });

    test("5.4 inputs that are queued start one after the other, in order", async () => {
      const { script, open } = held();
      const g = await start(script, { limits: { queue: 2 } });
      const submit = (input: string) => g.ask("POST", `${scope}/inputs`, { input, ifActive: "queue" });
      expect((await submit("0")).body.status).toBe("started");
      const first = await submit("1");
      expect(first).toMatchObject({ status: 202, body: { status: "queued" } });
      expect((await submit("2")).body.status).toBe("queued");
      expectProblem(await submit("3"), 429, "queue_full");
      open();
      const messages = await until(async () => {
        const { body } = await g.ask("GET", `${scope}/state`);
        return body.messages.length === 6 && body.messages;
      });
      expect(
        messages
          .filter((m: { role: string }) => m.role === "user")
          .map((m: { content: { text: string }[] }) => m.content[0]!.text),
      ).toEqual(["0", "1", "2"]);
      expect(messages[2].inputId).toBe(first.body.inputId);
    });

    test("5.5 an input can take the place of the run that is active", async () => {
      const passage = gate();
      const g = await start((_prompt, call) => (call === 0 ? passage.passed.then(() => "Late.") : "New."));
      const first = await g.ask("POST", `${scope}/inputs`, { input: "old" });
      const second = await g.ask("POST", `${scope}/inputs`, { input: "new", ifActive: "interrupt" });
      expect(second).toMatchObject({ status: 202, body: { status: "started" } });
      await settled(g);
      passage.open();
      const { runs } = (await g.ask("GET", `${scope}/runs`)).body;
      expect(runs).toMatchObject([
        { runId: first.body.runId, status: "interrupted" },
        { runId: second.body.runId, status: "completed" },
      ]);
    });

    test("5.5 an input that interrupts goes before those that wait", async () => {
      const passage = gate();
      const g = await start((_prompt, call) => (call === 0 ? passage.passed.then(() => "Late.") : "Soon."));
      const submit = (input: string, ifActive: string) => g.ask("POST", `${scope}/inputs`, { input, ifActive });
      await submit("first", "reject");
      await submit("waits", "queue");
      await submit("interrupts", "interrupt");
      const messages = await until(async () => {
        const { body } = await g.ask("GET", `${scope}/state`);
        return body.messages.length === 5 && body.messages;
      });
      passage.open();
      const said = messages.map((message: { content: { text: string }[] }) => message.content[0]!.text);
      expect(said).toEqual(["first", "interrupts", "Soon.", "waits", "Soon."]);
    });

    test("5.6 an input with a key that waited is told its run", async () => {
      const { script, open: release } = held();
      const g = await start(script);
      await g.ask("POST", `${scope}/inputs`, { input: "first" });
      const key = { "idempotency-key": "k" };
      const submit = () => g.ask("POST", `${scope}/inputs`, { input: "waits", ifActive: "queue" }, key);
      const queued = await submit();
      expect(queued.body).toEqual({ inputId: expect.any(String), status: "queued" });
      expect((await submit()).body).toEqual(queued.body);
      release();
      await until(async () => (await g.ask("GET", `${scope}/state`)).body.messages.length === 4);
      const { runs } = (await g.ask("GET", `${scope}/runs`)).body;
      const { inputId } = queued.body;
      expect((await submit()).body).toEqual({ inputId, status: "started", runId: runs[1].runId });
    });

    test("5.6 an idempotency key starts one run, however often and wherever it is sent", async () => {
      const g = await start(() => "Once.");
      const key = { "idempotency-key": "k1" };
      const submit = (input: string, at = g) => at.ask("POST", `${scope}/inputs`, { input }, key);
      const answers = await Promise.all([submit("Hi"), submit("Hi"), submit("Hi")]);
      expect(new Set(answers.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1);
      await settled(g);
      expect((await submit("Hi")).body).toEqual(answers[0]!.body);
      expectProblem(await submit("Other"), 422, "idempotency_conflict");
      const another = createServer({
        agents: { helper: { model: scriptedModel(() => "Twice.") } },
        store: g.store,
        token: "the-other-server",
      });
      onTestFinished(() => another.close());
      const elsewhere = async (input: string) =>
        answerOf(
          await another.fetch(
            requestOf("POST", `${scope}/inputs`, { input }, { ...key, authorization: "Bearer the-other-server" }),
          ),
        );
      expect((await elsewhere("Hi")).body).toEqual(answers[0]!.body);
      expectProblem(await elsewhere("Other"), 422, "idempotency_conflict");
      expect((await g.ask("GET", `${scope}/state`)).body.messages).toHaveLength(2);
    });

    test("5.7 interrupting compares first", async () => {
      const { script, open } = held();
      const g = await start(script);
      const stop = async (body?: object) => (await g.ask("POST", `${scope}/interrupt`, body)).body;
      expect(await stop()).toEqual({ status: "no_active_run" });
      const { runId } = (await g.ask("POST", `${scope}/inputs`, { input: "Hi" })).body;
      expect(await stop({ expectedRunId: "another" })).toEqual({ status: "active_run_mismatch", runId });
      expect(await stop({ expectedRunId: runId, reason: "enough" })).toEqual({ status: "accepted", runId });
      await settled(g);
      expect(await stop({ expectedRunId: runId })).toEqual({ status: "already_terminal", runId });
      open();
      const { events } = (await g.ask("GET", `${main}/events`)).body;
      expect(events.at(-1)).toMatchObject({ type: "turn.ended", status: "interrupted", reason: "enough" });
    });

    test("5.25 a signal is taken by an open turn, counts once, and is refused without one", async () => {
      const script = [{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "Three."];
      const g = await start(script, { agent: { tools: { add: { ...add, permission: true } } } });
      const signal = { name: "paid", payload: { amount: 3 }, id: "p1" };
      expectProblem(await g.ask("POST", `${scope}/signals`, signal), 409, "nothing_to_resume");
      const live = await g.live(`${scope}/events/live`);
      await g.ask("POST", `${scope}/inputs`, { input: "Add" });
      await live.until(isEvent("interaction.opened"));
      for (let n = 0; n < 2; n++) {
        expect(await g.ask("POST", `${scope}/signals`, signal)).toMatchObject({
          status: 202,
          body: { signalId: "p1" },
        });
      }
      expectProblem(await g.ask("POST", `${scope}/signals`, { payload: 1 }), 400, "invalid_argument");
      const { events } = (await g.ask("GET", `${main}/events`)).body;
      const signals = events.filter(({ type }: { type: string }) => type === "signal.received");
      expect(signals).toMatchObject([{ id: "p1", name: "paid", payload: { amount: 3 } }]);
    });

    test("5.8 an interaction is answered once, through one route", async () => {
      const script = [{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, "Three."];
      const g = await start(script, { agent: { tools: { add: { ...add, permission: true } } } });
      expectProblem(
        await g.ask("POST", `${scope}/responses`, { interactionId: "none", answer: {} }),
        404,
        "interaction_not_found",
      );
      const live = await g.live(`${scope}/events/live`);
      await g.ask("POST", `${scope}/inputs`, { input: "Add" });
      await live.until(isEvent("interaction.opened"));
      const [interaction] = (await g.ask("GET", `${scope}/state`)).body.interactions;
      expect(interaction).toMatchObject({ kind: "permission" });
      for (const nothing of [{}, { approved: "yes" }, { aproved: true }, { approved: true, choice: "forever" }]) {
        const said = await g.ask("POST", `${scope}/responses`, { interactionId: interaction.id, answer: nothing });
        expectProblem(said, 400, "invalid_argument");
      }
      const answer = { interactionId: interaction.id, answer: { approved: true } };
      const answers = await Promise.all([1, 2, 3].map(() => g.ask("POST", `${scope}/responses`, answer)));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
      await settled(g);
      expectProblem(await g.ask("POST", `${scope}/responses`, answer), 409, "interaction_closed");
      const { messages } = (await g.ask("GET", `${scope}/state`)).body;
      expect(messages.map(({ role }: { role: string }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    });

    test("5.10 a run's config is checked, and files are never addresses", async () => {
      const g = await start(["One."]);
      const submit = (body: object) => g.ask("POST", `${scope}/inputs`, body);
      expectProblem(await submit({ input: "Hi", config: { tools: {} } }), 400, "invalid_argument");
      expectProblem(await submit({ input: "Hi", config: { limits: { iterations: 0 } } }), 400, "invalid_argument");
      for (const data of ["http://169.254.169.254/", "file:///etc/passwd", " https://x", "//x.example/y", "%%%", ""]) {
        const input = [{ type: "file", data, mediaType: "image/png" }];
        expectProblem(await submit({ input }), 400, "invalid_argument");
      }
      expect((await submit({ input: "Hi", config: { temperature: 0.5, limits: { iterations: 2 } } })).status).toBe(202);
      await settled(g);
    });

    test("5.11 what a model would be sent can be asked for", async () => {
      const g = await start(["One."]);
      await say(g, "Hi");
      const { body } = await g.ask("GET", `${scope}/context-usage`);
      const breaker = { failures: 0, isOpen: false };
      expect(body).toEqual({ tokens: 15, isEstimate: false, messages: 2, visible: 2, compactions: 0, breaker });
    });
  });

  describe("8. agents and content", () => {
    const models = { "scripted/a": scriptedModel(() => "From A."), "scripted/b": scriptedModel(() => "From B.") };
    const agents = "/agents";
    const config = { model: "scripted/a", instructions: "Be brief.", tools: ["add"] };

    test("8.1–8.2 agents are stored, listed, changed and deleted", async () => {
      const { ask } = await start([], { definitions: { models, tools: { add } } });
      const created = await ask("POST", agents, { agentId: "x", name: "X", config, metadata: { k: 1 } });
      expect(created).toMatchObject({
        status: 201,
        body: { id: "x", name: "X", source: "stored", config, metadata: { k: 1 } },
      });
      expectProblem(await ask("POST", agents, { agentId: "x", config }), 409, "agent_exists");
      expectProblem(await ask("POST", agents, { agentId: "helper", config }), 409, "agent_exists");
      expectProblem(await ask("POST", agents, { config: { model: "scripted/none" } }), 400, "invalid_argument");
      expectProblem(await ask("POST", agents, { config: { ...config, tools: ["none"] } }), 400, "invalid_argument");
      expectProblem(
        await ask("POST", agents, { config: { ...config, tools: ["constructor"] } }),
        400,
        "invalid_argument",
      );
      const list = (await ask("GET", agents)).body.agents;
      expect(list.map(({ id }: { id: string }) => id)).toEqual(["helper", "x"]);
      expect(list.every((agent: object) => !("config" in agent))).toBe(true);
      expect((await ask("GET", "/sessions")).body.sessions.map(({ id }: { id: string }) => id)).toEqual(["s"]);
      expect((await ask("GET", `${agents}/x`)).body.config).toEqual(config);
      expectProblem(await ask("PUT", `${agents}/helper`, { config }), 400, "invalid_argument");
      expectProblem(await ask("PUT", `${agents}/none`, { config }), 404, "agent_not_found");
      expect((await ask("DELETE", `${agents}/x`)).status).toBe(204);
      expectProblem(await ask("GET", `${agents}/x`), 404, "agent_not_found");
      expectProblem(await ask("DELETE", `${agents}/x`), 404, "agent_not_found");
      expectProblem(
        await ask("POST", "/agents/x/sessions/s/branches/main/inputs", { input: "Hi" }),
        404,
        "agent_not_found",
      );
    });

    test("8.3 a change is for the next run; one under way ends as it began", async () => {
      const { script, open } = held("From the old.");
      const slow = { "scripted/slow": scriptedModel(script), ...models };
      const g = await start([], { definitions: { models: slow } });
      const path = "/agents/x/sessions/s/branches/main";
      await g.ask("POST", agents, { agentId: "x", config: { model: "scripted/slow" } });
      await g.ask("POST", `${path}/inputs`, { input: "Hi" });
      await g.ask("PUT", `${agents}/x`, { config: { model: "scripted/b" } });
      await g.ask("POST", "/agents/x/sessions/s/branches", { branchId: "f" });
      await say(g, "Hi", "/agents/x/sessions/s/branches/f");
      open();
      await settled(g, path);
      const said = async (of: string) => (await g.ask("GET", `${of}/state`)).body.messages.at(-1).content[0].text;
      expect(await said(path)).toBe("From the old.");
      expect(await said("/agents/x/sessions/s/branches/f")).toBe("From B.");
    });

    test("8.4–8.5 content is stored by its bytes and given back as an attachment", async () => {
      const { ask, server } = await start([]);
      const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]);
      const raw = await ask("POST", `${main}/content`, png, {
        "content-type": "text/html",
        "x-filename": encodeURIComponent("../../é.html"),
      });
      expect(raw).toMatchObject({ status: 201, body: { size: 11, mediaType: "image/png", name: "é.html" } });
      const form = new FormData();
      form.set("file", new File(["<script>alert(1)</script>"], "x.html", { type: "text/html" }));
      const page = await ask("POST", `${main}/content`, form);
      expect(page).toMatchObject({ status: 201, body: { mediaType: "application/octet-stream", name: "x.html" } });
      expect((await ask("GET", `${main}/content`)).body.content).toHaveLength(2);
      const got = await server.fetch(
        new Request(`http://localhost${main}/content/${raw.body.id}`, {
          headers: { authorization: `Bearer ${server.token}` },
        }),
      );
      expect(new Uint8Array(await got.arrayBuffer())).toEqual(png);
      expect(got.headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''%C3%A9.html");
      expect(got.headers.get("x-content-type-options")).toBe("nosniff");
      expect((await ask("DELETE", `${main}/content/${raw.body.id}`)).status).toBe(204);
      expectProblem(await ask("GET", `${main}/content/${raw.body.id}`), 404, "content_not_found");
      expectProblem(await ask("DELETE", `${main}/content/${raw.body.id}`), 404, "content_not_found");
      expectProblem(await ask("GET", `${main}/content/nonsense`), 400, "invalid_argument");
      expectProblem(await ask("POST", `${main}/content`, new Uint8Array()), 400, "invalid_argument");
      expectProblem(
        await ask("POST", `${main}/content`, "x", { "content-type": "multipart/form-data" }),
        400,
        "invalid_argument",
      );
    });

    test("8.4 an upload that is too large is refused before it is all there", async () => {
      const { ask } = await start([], { limits: { uploadBytes: 100 } });
      expectProblem(await ask("POST", `${main}/content`, new Uint8Array(101)), 413, "content_too_large");
      const endless = new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array(64)),
      });
      const { server } = await start([], { limits: { uploadBytes: 1000 } });
      const request = new Request(`http://localhost${main}/content`, {
        method: "POST",
        body: endless,
        duplex: "half",
        headers: { authorization: `Bearer ${server.token}` },
      } as RequestInit);
      expect((await server.fetch(request)).status).toBe(413);
    });

    test("8.5 a download has an entity tag, and can be continued by a range", async () => {
      const { ask, server } = await start([]);
      const bytes = new Uint8Array(300_000).map((_, i) => i % 251);
      const { id } = (await ask("POST", `${main}/content`, bytes)).body;
      const get = (headers: Record<string, string>) =>
        server.fetch(
          new Request(`http://localhost${main}/content/${id}`, {
            headers: { authorization: `Bearer ${server.token}`, ...headers },
          }),
        );
      const whole = await get({});
      expect(whole.status).toBe(200);
      expect(whole.headers.get("accept-ranges")).toBe("bytes");
      const etag = whole.headers.get("etag")!;
      expect(Buffer.compare(new Uint8Array(await whole.arrayBuffer()), bytes)).toBe(0);
      expect((await get({ "if-none-match": `"x", W/${etag}` })).status).toBe(304);
      for (const [range, from, to] of [
        ["bytes=0-0", 0, 1],
        ["bytes=100-", 100, 300_000],
        ["bytes=262140-262150", 262_140, 262_151],
        ["bytes=-5", 299_995, 300_000],
        ["bytes=299999-9999999", 299_999, 300_000],
      ] as const) {
        const part = await get({ range, "if-range": etag });
        expect(part.status, range).toBe(206);
        expect(part.headers.get("content-range")).toBe(`bytes ${from}-${to - 1}/300000`);
        expect(part.headers.get("content-length")).toBe(String(to - from));
        expect(Buffer.compare(new Uint8Array(await part.arrayBuffer()), bytes.subarray(from, to))).toBe(0);
      }
      for (const range of ["bytes=0-1,3-4", "items=0-1", "bytes=5-2", "bytes=-", "bytes=a-b", "bytes=1e3-"]) {
        const all = await get({ range });
        expect(all.status, range).toBe(200);
        await all.body?.cancel();
      }
      expect((await get({ range: "bytes=0-1", "if-range": '"other"' })).status).toBe(200);
      for (const range of ["bytes=300000-", "bytes=-0"]) {
        const none = await get({ range });
        expect(none.status, range).toBe(416);
        expect(none.headers.get("content-range")).toBe("bytes */300000");
      }
    });

    test("8.6 health, readiness and the table of routes", async () => {
      const { ask } = await start([]);
      expect(await ask("GET", "/health")).toMatchObject({ status: 200, body: { status: "ok" } });
      expect(await ask("GET", "/ready")).toMatchObject({ status: 200, body: { status: "ok" } });
      const { body } = await ask("GET", "/openapi.json");
      const operations = Object.values(body.paths).flatMap((path) => Object.values(path as object));
      expect(operations.map(({ operationId }) => operationId).sort()).toEqual(Object.keys(routes).sort());
      const { post } = body.paths["/agents/{agentId}/sessions/{sessionId}/branches/{branchId}/inputs"];
      expect(post.parameters.map(({ name }: { name: string }) => name)).toContain("idempotency-key");
      const { tags } =
        body.paths["/sessions/{sessionId}/branches/{branchId}"].patch.requestBody.content["application/json"].schema
          .properties;
      expect(tags.anyOf[0]).toMatchObject({ type: "array", maxItems: 64, items: { type: "string", maxLength: 256 } });
    });
  });
}
