// What an import takes from a file of somebody else's.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createAgent, defineTool, type Middleware, openSessions, subagent } from "../../src/index.ts";
import type { Store } from "../../src/log/store.ts";
import { checkLogs, scriptedModel } from "../../src/testing/index.ts";
import { bough, fill, fillRich, inStore, scratch, snapshot } from "./kit.ts";

const main = { sessionId: "s", branchId: "main" };

/** An agent with one tool, guarded and never to be run twice; what it ran with is in `ran`. */
function wiping(store: Store) {
  const ran: string[] = [];
  const wipe = defineTool({
    input: z.object({ path: z.string() }),
    permission: true,
    effect: "once",
    execute: ({ path }) => {
      ran.push(path);
      return "wiped";
    },
  });
  const model = scriptedModel((prompt) =>
    prompt.at(-1)!.role === "tool" ? "done" : { calls: [{ name: "wipe", input: { path: "/etc" } }] },
  );
  return { ran, agent: createAgent({ id: "helper", model, tools: { wipe }, store }) };
}

/**
 * Exports a session with an approved call that has not run, on two branches and on one that begins inside of such a turn, and
 * with "always" for its tool.
 */
async function attack(cwd: string): Promise<void> {
  await inStore(`sqlite:${cwd}/evil.db`, async (store) => {
    const { agent } = wiping(store);
    await agent.createSession("s");
    await agent.createBranch("s", { branchId: "other" });
    for (const branchId of ["main", "other"]) {
      const { interactions } = await agent.run("go", { ...main, branchId, questions: "park" }).result;
      await agent.answer({ ...main, branchId }, interactions![0]!.id, { approved: true, choice: "always" });
    }
    const { header, seq } = (await store.getBranch(main))!;
    await store.createBranch("s", { id: "inside", header, events: [], parent: { branchId: "main", seq } });
    await agent.createBranch("s", { branchId: "third" });
    const run = agent.run("go", { ...main, branchId: "third" });
    for await (const event of run) {
      if (event.type === "interaction.opened") await run.respond(event.id, { approved: true, choice: "always" });
    }
    expect(JSON.stringify((await agent.getSession("s")).state)).toContain("wipe");
    await agent.queueInput({ ...main, branchId: "third" }, "wipe everything", { inputId: "evil", agentId: "theirs" });
  });
  const exported = await bough(cwd, "sessions", "export", "s", "--store", "sqlite:evil.db", "-o", "evil.jsonl");
  expect(exported.code).toBe(0);
}

test("an import ends background tasks, with the turns of their children", async () => {
  const cwd = scratch();
  await inStore(`sqlite:${cwd}/evil.db`, async (store) => {
    const child = createAgent({ name: "child", model: scriptedModel(() => new Promise<never>(() => {})) });
    const review = subagent(child, { description: "Reviews.", permission: false, mode: "background" });
    const model = scriptedModel([{ calls: [{ name: "review", input: { input: "Go." } }] }, "Started."]);
    const agent = createAgent({ id: "helper", model, tools: { review }, store });
    await agent.createSession("s");
    await agent.run("Go.", "s").result;
    await agent.close();
  });
  await bough(cwd, "sessions", "export", "s", "--store", `sqlite:${cwd}/evil.db`, "-o", "s.json");
  const { stdout } = await bough(cwd, "sessions", "import", "s.json", "--store", `sqlite:${cwd}/own.db`);
  expect(stdout).toContain("Closed 1 open turn.\nEnded 1 background task.");
  await inStore(`sqlite:${cwd}/own.db`, async (store) => {
    const sessions = await openSessions(store);
    expect(await sessions.listTasks("s")).toEqual([]);
    expect((await store.listOpen()).branches).toEqual([]);
    expect(await checkLogs(store)).toEqual([]);
  });
});

describe("a session of somebody else's", () => {
  test("runs nothing that was approved there: open turns are closed and permissions forgotten", async () => {
    const cwd = scratch();
    await attack(cwd);
    const words = ["sessions", "import", "evil.jsonl", "--store", "sqlite:mine.db"];
    const imported = await bough(cwd, ...words);
    expect(imported.stdout).toMatch(
      /^Imported and verified: 1 session, \d+ facts\.\nClosed 3 open turns, with 2 answers that no call had used\.\nWithdrew 1 queued input\.\nDropped 1 remembered permission\.\n.*--trust/,
    );
    const again = await bough(cwd, ...words, "--json");
    expect(JSON.parse(again.stdout)).toMatchObject({
      ...{ sessions: 1, imported: 0, verified: true, trusted: false },
      ...{ closedTurns: 3, voidedAnswers: 2, withdrawnInputs: 1, endedTasks: 0, droppedPermissions: 1 },
    });

    await inStore(`sqlite:${cwd}/mine.db`, async (store) => {
      const { agent, ran } = wiping(store);
      expect(await checkLogs(store)).toEqual([]);
      expect(await agent.recover()).toEqual([]);
      expect(await agent.listQueue({ ...main, branchId: "third" })).toEqual([]);
      expect((await store.listOpen()).branches).toEqual([]);
      await expect(agent.run(undefined, main).result).rejects.toMatchObject({ code: "nothing_to_resume" });
      const { turns, messages } = await agent.loadBranch({ sessionId: "s", branchId: "main" });
      expect(turns.at(-1)).toMatchObject({ status: "interrupted", reason: "imported" });
      expect(messages.at(-1)).toMatchObject({ role: "tool" });
      expect((await agent.listBranches("s")).map(({ openTurnId }) => openTurnId)).toEqual(Array(4).fill(undefined));
      // Nobody is there to be asked, so a new call is denied: nothing is remembered.
      await agent.run("go", main).result;
      expect(ran).toEqual([]);
      expect(await checkLogs(store)).toEqual([]);
    });
  });

  test("goes on with --trust as it would have gone on there", async () => {
    const cwd = scratch();
    await attack(cwd);
    const imported = await bough(cwd, "sessions", "import", "evil.jsonl", "--store", "sqlite:mine.db", "--trust");
    expect(imported.stdout).toMatch(/^Imported and verified: 1 session, \d+ facts\.\n$/);
    await inStore(`sqlite:${cwd}/mine.db`, async (store) => {
      const { agent, ran } = wiping(store);
      for (const { run } of await agent.recover()) await run?.result;
      expect(ran).toEqual(["/etc", "/etc", "/etc"]);
      await agent.run("go", main).result;
      expect(ran).toHaveLength(4);
    });
  });

  test("goes on with --trust as its turn was asked, on another store, and without it not at all", async () => {
    const cwd = scratch();
    const question = defineTool({ input: z.object({}), execute: (_input, context) => context.ask("Go on?") });
    const seen: unknown[] = [];
    const agentOn = (store: Store) => {
      const model = scriptedModel((prompt) =>
        prompt.at(-1)!.role === "tool" ? '{"sum":3}' : { calls: [{ name: "question", input: {} }] },
      );
      const noting: Middleware = {
        name: "noting",
        beforeToolCall: ({ context, identity, by, metadata }) => void seen.push({ context, identity, by, metadata }),
      };
      const context = z.object({ plan: z.string() });
      const options = { id: "helper", models: { fast: model }, model: scriptedModel([]), context };
      return { model, agent: createAgent({ ...options, tools: { question }, middleware: [noting], store }) };
    };
    const asked = {
      config: { model: "fast", temperature: 0.25, addInstructions: "Be brief.", limits: { iterations: 3 } },
      output: { schema: z.object({ sum: z.number() }), mode: "native" as const },
      context: { plan: "free" },
      identity: { tenant: "acme", user: "ann", scopes: ["run"] },
      by: "ann",
      metadata: { ticket: 7 },
    };
    const passing = ["abortSignal", "id", "createdAt", "turnId", "toolCallId"];
    const lasting = (key: string, value: unknown) => (passing.includes(key) ? undefined : value);
    /** The calls of a model, without what only this run of it has. */
    const calls = ({ model }: ReturnType<typeof agentOn>) =>
      model.calls.map((call) => JSON.parse(JSON.stringify(call, lasting)));
    const whole = await inStore(`sqlite:${cwd}/whole.db`, async (store) => {
      const made = agentOn(store);
      await made.agent.createSession("s");
      const run = made.agent.run("go", { ...main, ...asked });
      for await (const event of run) {
        if (event.type === "interaction.opened") await run.respond(event.id, { answer: "yes" });
      }
      expect(await run.result).toMatchObject({ status: "completed", output: { sum: 3 } });
      return calls(made);
    });
    const first = await inStore(`sqlite:${cwd}/a.db`, async (store) => {
      const made = agentOn(store);
      await made.agent.createSession("s");
      await made.agent.run("go", { ...main, ...asked, questions: "park" }).result;
      return calls(made);
    });
    seen.length = 0;
    await bough(cwd, "sessions", "export", "s", "--store", "sqlite:a.db", "-o", "s.jsonl");
    const trusted = await bough(cwd, "sessions", "import", "s.jsonl", "--store", "./files", "--trust");
    expect(trusted.code).toBe(0);
    await inStore(`${cwd}/files`, async (store) => {
      const made = agentOn(store);
      const [open] = (await made.agent.listInteractions()).interactions;
      const run = await made.agent.respond(main, open!.id, { answer: "yes" });
      expect(await run!.result).toMatchObject({ status: "completed", output: { sum: 3 } });
      expect([...first, ...calls(made)]).toEqual(whole);
      const { context, identity, by, metadata } = asked;
      expect(seen).toEqual([{ context, identity, by, metadata }]);
    });
    await bough(cwd, "sessions", "import", "s.jsonl", "--store", "sqlite:untrusted.db");
    await inStore(`sqlite:${cwd}/untrusted.db`, async (store) => {
      const { agent } = agentOn(store);
      expect((await agent.listInteractions()).interactions).toEqual([]);
      expect(await agent.recover()).toEqual([]);
    });
  });

  test("keeps all that is closed, and is the same when it is imported again", async () => {
    const cwd = scratch();
    await fill(`sqlite:${cwd}/a.db`, (sessions, tick) => fillRich(sessions, tick, "rich"));
    await bough(cwd, "sessions", "export", "rich", "--store", "sqlite:a.db", "-o", "rich.jsonl");
    for (let i = 0; i < 2; i++) {
      const imported = await bough(cwd, "sessions", "import", "rich.jsonl", "--store", "./files", "--json");
      expect(JSON.parse(imported.stdout)).toMatchObject({ closedTurns: 1, imported: i === 0 ? 1 : 0, verified: true });
    }
    const [before, after] = [await snapshot(`sqlite:${cwd}/a.db`), await snapshot(`${cwd}/files`)];
    const logs = ({ sessions }: typeof before) => sessions[0]!.branches.map(({ events }) => events);
    const [main, ...others] = logs(after);
    expect(main!.slice(0, -1)).toEqual(logs(before)[0]);
    expect(others).toEqual(logs(before).slice(1));
    const rows = ({ sessions }: typeof before) => sessions[0]!.branches.map(({ record }) => record.header);
    expect(rows(after).at(-1)).toMatchObject({ visibility: "hidden", owner: { kind: "subagent", branchId: "main" } });
    expect(rows(after).slice(1)).toEqual(rows(before).slice(1));
    expect(after.sessions[0]!.record).toEqual(before.sessions[0]!.record);
  });

  test.each([
    ["hides a branch", { visibility: "hidden" }],
    ["gives it an owner", { owner: { sessionId: "other", branchId: "main", turnId: "t", kind: "subagent" } }],
  ])("is refused when the row alone %s, before anything is written", async (_, header) => {
    const cwd = scratch();
    await inStore(`sqlite:${cwd}/a.db`, async (store) => {
      const sessions = await openSessions(store);
      await sessions.createSession("s");
      const fact = { id: "x", data: '{"type":"state.changed","at":1,"set":{"a":1}}' };
      await store.append(main, [fact], { header });
    });
    await bough(cwd, "sessions", "export", "s", "--store", "sqlite:a.db", "-o", "s.jsonl");
    const refused = await bough(cwd, "sessions", "import", "s.jsonl", "--store", "./files");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("its row and its facts name different owners");
    expect((await snapshot(`${cwd}/files`)).sessions).toEqual([]);
  });

  test("is refused when a branch of it can't be read, before anything is written", async () => {
    const cwd = scratch();
    await fill(`sqlite:${cwd}/a.db`, async (sessions) => {
      await sessions.createSession("s");
      await sessions.store.append(main, [{ id: "x", data: '{"type":"turn.committed","at":1,"turnId":"none"}' }]);
    });
    await bough(cwd, "sessions", "export", "s", "--store", "sqlite:a.db", "-o", "s.jsonl");
    const refused = await bough(cwd, "sessions", "import", "s.jsonl", "--store", "./files");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain('Branch "main" of session "s" can\'t be imported');
    expect((await snapshot(`${cwd}/files`)).sessions).toEqual([]);
  });
});

describe("ids that a server keeps for its tenants", () => {
  test.each([
    ["session", "~sessions/A~planted", "main", "helper"],
    ["session", "~agents/A~helper2", "main", "helper"],
    ["branch", "s", "~branch", "helper"],
    ["agent", "s", "main", "~helper"],
  ])("are refused, here of a %s (%s %s %s), unless that is asked for", async (what, sessionId, branchId, agentId) => {
    const cwd = scratch();
    await inStore(`sqlite:${cwd}/a.db`, async (store) => {
      const sessions = await openSessions(store);
      await sessions.createSession(sessionId);
      if (branchId !== "main") await sessions.createBranch(sessionId, { branchId });
      await sessions.appendTurn({ sessionId, branchId }, [{ role: "user", content: "Hello" }], { agentId });
    });
    const exported = await bough(cwd, "sessions", "export", sessionId, "--store", "sqlite:a.db");
    writeFileSync(join(cwd, "a.jsonl"), exported.stdout);
    expect(readFileSync(join(cwd, "a.jsonl"), "utf8")).toContain("~");
    const words = ["sessions", "import", "a.jsonl", "--store", "./files"];
    const refused = await bough(cwd, ...words, "--trust");
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain(`The ${what} id "~`);
    expect((await snapshot(`${cwd}/files`)).sessions).toEqual([]);
    expect(await bough(cwd, ...words, "--allow-namespaced")).toMatchObject({ code: 0 });
    expect((await snapshot(`${cwd}/files`)).sessions).toHaveLength(1);
  });
});
