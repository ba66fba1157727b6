// bough serve as a real process: who is let in, what it is told by files, how it stops, and what a kill leaves.

import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { bough, boughWith, scratch, start, startByShell } from "./kit.ts";
import { noKeys, serveIn, stuckConfig } from "./serving.ts";

describe("bough serve", () => {
  test("serves a demo agent on a SQLite file, says what speaks, and prints its token once", async () => {
    const cwd = scratch();
    const { url, token, started } = await serveIn(cwd);
    started.child.kill("SIGTERM");
    const { code, stdout, stderr } = await started.ended;
    expect(code).toBe(0);
    expect(stdout.split(token).length - 1).toBe(1);
    expect(stdout).toContain("a scripted demo, not a model (no ANTHROPIC_API_KEY, no OPENAI_API_KEY)");
    expect(stdout).toContain("sqlite:./.bough/bough.db");
    expect(stderr).toContain("Stopped.");
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(existsSync(join(cwd, ".bough/bough.db"))).toBe(true);
    expect(readFileSync(join(cwd, ".bough/.gitignore"), "utf8")).toBe("*\n");
  });

  test("needs the token on every route, and shows a page without secrets to whoever opens it", async () => {
    const { url, token, ask } = await serveIn(scratch());
    for (const path of ["/health", "/agents", "/sessions", "/openapi.json", "/nowhere"]) {
      expect((await fetch(url + path)).status, path).toBe(401);
    }
    expect((await ask("GET", "/agents")).body).toEqual({ agents: [{ id: "demo", name: "demo", source: "code" }] });
    const page = await fetch(`${url}/`);
    const html = await page.text();
    expect(page.status).toBe(200);
    expect(html).toContain("<title>Bough Studio</title>");
    expect(html).not.toContain(token);
    const policy = page.headers.get("content-security-policy")!;
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(policy).not.toContain("unsafe");
    expect((await fetch(`${url}/`, { method: "POST" })).status).toBe(401);
    expect((await fetch(`${url}/`, { headers: { origin: "http://evil.example" } })).status).toBe(403);
  });

  test("takes a token from the environment and keeps it off the screen", async () => {
    const token = "from-the-environment-0123";
    const { url, started } = await serveIn(scratch(), { env: { BOUGH_TOKEN: token } });
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${url}/health`, { headers })).status).toBe(200);
    started.child.kill("SIGTERM");
    const { stdout, stderr } = await started.ended;
    expect(stdout + stderr).not.toContain(token);
  });

  test("prints one line of JSON for scripts", async () => {
    const started = start(scratch(), ["serve", "--port", "0", "--json"]);
    await started.says("\n");
    started.child.kill("SIGTERM");
    const { code, stdout, stderr } = await started.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const told = JSON.parse(stdout);
    expect(told).toMatchObject({ agents: ["demo"], store: "sqlite:./.bough/bough.db", pid: started.child.pid });
    expect(told.startUrl).toMatch(new RegExp(`^${told.url}/#token=.{40,}$`));
  });

  test("says which port is taken", async () => {
    const { url } = await serveIn(scratch());
    const { code, stderr } = await bough(scratch(), "serve", "--port", new URL(url).port);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: Port \d+ is in use, perhaps by another bough serve\. Choose another with --port N/);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  test("warns when it listens beyond this machine, and answers there to its own names only", async () => {
    const { url, token, started } = await serveIn(scratch(), { words: ["--host", "0.0.0.0"] });
    await started.says("warning: The server listens on all networks");
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${url}/health`, { headers })).status).toBe(200);
  });

  test.each([
    [["serve", "--port", "99999"], "--port must be an integer from 0 to 65535."],
    [["serve", "--port", "many"], '--port must be an integer ≥ 0, not "many".'],
    [["serve", "--token", "short"], "at least 16 characters"],
    [["serve", "--config", "none.ts"], "The configuration file none.ts does not exist."],
    [["serve", "--host", "203.0.113.77", "--port", "0"], 'no address "203.0.113.77"'],
  ])("ends with 2 and one sentence for %j", async (words, sentence) => {
    const { code, stdout, stderr } = await bough(scratch(), ...words);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(sentence);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  test("goes on after a kill with the turn that was cut off, without running again what has its result", async () => {
    const cwd = scratch();
    const words = ["--config", stuckConfig(cwd)];
    const scope = "/agents/worker/sessions/s/branches/main";
    const first = await serveIn(cwd, { words, env: { STUCK: "1" } });
    await first.ask("POST", "/sessions", { sessionId: "s" });
    await first.ask("POST", `${scope}/inputs`, { input: "Do both." });
    await first.until(async () => {
      const { events } = (await first.ask("GET", "/sessions/s/branches/main/events")).body;
      return events.some(({ type }: { type: string }) => type === "tool.returned");
    });
    first.started.child.kill("SIGKILL");
    await first.started.ended;

    const second = await serveIn(cwd, { words });
    await second.started.says("Resuming 1 interrupted run.");
    await second.until(async () => (await second.ask("GET", `${scope}/state`)).body.openTurn === undefined);

    const { messages } = (await second.ask("GET", `${scope}/state`)).body;
    expect(messages.at(-1)).toMatchObject({ role: "assistant", content: [{ type: "text", text: "Both are done." }] });
    expect(readFileSync(join(cwd, "ledger.txt"), "utf8")).toBe("quick\nslow\n");
  });

  test("stops when the shell that npm has started it with is gone", async () => {
    const started = startByShell(scratch(), ["serve", "--port", "0"], noKeys);
    await started.says("Press Ctrl-C to stop.");
    started.child.kill("SIGTERM");
    // The pipes stay open until the server itself has ended.
    expect((await started.ended).stderr).toContain("Stopped.");
  });

  test("takes the Ctrl-C that npm passes on for the one that the terminal has sent", async () => {
    const cwd = scratch();
    const first = await serveIn(cwd, { words: ["--config", stuckConfig(cwd)], env: { SLOW_MS: "1500" } });
    await first.ask("POST", "/sessions", { sessionId: "s" });
    await first.ask("POST", "/agents/worker/sessions/s/branches/main/inputs", { input: "Do both." });
    first.started.child.kill("SIGINT");
    first.started.child.kill("SIGINT");
    expect(await first.started.ended).toMatchObject({ code: 0, stderr: expect.stringContaining("Stopped.") });
    expect(readFileSync(join(cwd, "ledger.txt"), "utf8")).toBe("quick\nslow\n");
  });

  test("stops at once at a second signal, and the turn goes on at the next start", async () => {
    const cwd = scratch();
    const words = ["--config", stuckConfig(cwd)];
    const first = await serveIn(cwd, { words, env: { STUCK: "1" } });
    await first.ask("POST", "/sessions", { sessionId: "s" });
    await first.ask("POST", "/agents/worker/sessions/s/branches/main/inputs", { input: "Do both." });
    first.started.child.kill("SIGTERM");
    await first.started.says("Stopping.");
    const again = setInterval(() => first.started.child.kill("SIGTERM"), 100);
    const { code } = await first.started.ended;
    clearInterval(again);
    expect(code).toBe(130);
    const second = await serveIn(cwd, { words });
    const state = "/agents/worker/sessions/s/branches/main/state";
    await second.until(async () => (await second.ask("GET", state)).body.openTurn === undefined);
    expect((await second.ask("GET", state)).body.messages).toHaveLength(4);
  });

  test("drains at SIGTERM: a run that is about to end ends, and its fact is in the log", async () => {
    const cwd = scratch();
    const scope = "/agents/worker/sessions/s/branches/main";
    const first = await serveIn(cwd, { words: ["--config", stuckConfig(cwd)], env: { SLOW_MS: "1500" } });
    await first.ask("POST", "/sessions", { sessionId: "s" });
    await first.ask("POST", `${scope}/inputs`, { input: "Do both." });
    first.started.child.kill("SIGTERM");
    const { code, stderr } = await first.started.ended;
    expect(code).toBe(0);
    expect(stderr).toContain("Stopping. Runs have 10 s to finish.");
    const { stdout } = await bough(cwd, "events", "tail", "s", "main", "--json");
    expect(JSON.parse(stdout.trim().split("\n").at(-1)!)).toMatchObject({ type: "turn.committed" });
  });
});

describe("bough.config", () => {
  /** A folder in which `bough` is installed. */
  function project(files: Record<string, string>): string {
    const cwd = scratch();
    symlinkSync(fileURLToPath(new URL("../../node_modules", import.meta.url)), join(cwd, "node_modules"));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
    return cwd;
  }

  const code = (type: string) => `
    import { defineConfig } from "bough/server";
    import { scriptedModel } from "bough/scripted";
    const words${type} = ["Configured."];
    export default defineConfig({
      store: "sqlite:./own.db",
      agents: { plain: { model: scriptedModel(words) }, made: async () => ({ model: scriptedModel(words) }) },
    });
  `;

  test.each(["ts", "mts", "js", "mjs"])("is found and read from bough.config.%s", async (ending) => {
    const cwd = project({
      [`bough.config.${ending}`]: code(ending.endsWith("ts") ? ": string[]" : ""),
      "package.json": '{ "type": "module" }',
    });
    const { ask, started } = await serveIn(cwd);
    await started.says(`bough.config.${ending}`);
    const { agents } = (await ask("GET", "/agents")).body;
    expect(agents.map(({ id }: { id: string }) => id)).toEqual(["plain", "made"]);
    expect(existsSync(join(cwd, "own.db"))).toBe(true);
  });

  test("has models and a context of agents, and what clients may set", async () => {
    const config = `
      import { scriptedModel } from "bough/scripted";
      const context = { "~standard": { version: 1, vendor: "x", validate: (value) => ({ value }) } };
      const models = { other: scriptedModel(() => "From the other.") };
      const helper = { model: scriptedModel(() => "Hello."), models, context };
      export default { store: "memory:", allowConfig: ["model"], agents: { helper } };
    `;
    const { ask, until } = await serveIn(project({ "bough.config.mjs": config }));
    const path = "/agents/helper/sessions/s/branches/main";
    await ask("POST", "/sessions", { sessionId: "s" });
    const asked = { input: "Hi", config: { model: "other" }, context: { plan: "free" } };
    expect((await ask("POST", `${path}/inputs`, asked)).status).toBe(202);
    await until(async () => (await ask("GET", `${path}/state`)).body.messages.length === 2);
    const { messages } = (await ask("GET", `${path}/state`)).body;
    expect(messages[1].content[0].text).toBe("From the other.");
  });

  test("may leave agents to a function and a default", async () => {
    const config = `
      import { scriptedModel } from "bough/scripted";
      export default {
        store: "memory:",
        resolveAgent: async (id) => id.startsWith("team-") ? { name: id, model: scriptedModel(() => "Team.") } : undefined,
        defaultAgent: () => ({ name: "Anybody", model: scriptedModel(() => "Default.") }),
      };
    `;
    const cwd = project({ "bough.config.mjs": config });
    const { ask, started } = await serveIn(cwd);
    await started.says("for every other id");
    expect((await ask("GET", "/agents/team-a")).body).toEqual({ id: "team-a", name: "team-a", source: "code" });
    expect((await ask("GET", "/agents/x")).body).toEqual({ id: "x", name: "Anybody", source: "code" });
    const say = (id: string) => boughWith(cwd, { env: noKeys, input: "Hi\n" }, "chat", "--agent", id);
    expect((await say("team-b")).stdout).toBe("Team.\n");
    expect((await say("x")).stdout).toBe("Default.\n");
  });

  test("is read from JSON, which names models", async () => {
    const config = { agents: { helper: { model: "openai/gpt-5-mini", instructions: "Be brief." } } };
    const { ask } = await serveIn(project({ "bough.config.json": JSON.stringify(config) }));
    expect((await ask("GET", "/agents")).body).toEqual({ agents: [{ id: "helper", source: "code" }] });
  });

  test.each([
    ["bough.config.json", "{", "bough.config.json can't be loaded: "],
    ["bough.config.json", "[]", "bough.config.json: agents is missing."],
    ["bough.config.json", '{"agnets":{}}', "bough.config.json: unknown setting agnets. Known settings: "],
    ["bough.config.json", '{"agents":{}}', "bough.config.json: agents is empty"],
    ["bough.config.json", '{"defaultAgent":{}}', "bough.config.json: defaultAgent.model is missing."],
    ["bough.config.mjs", "export default { resolveAgent: 1 };", "bough.config.mjs: resolveAgent must be a function"],
    ["bough.config.json", '{"agents":{"a":{}}}', "bough.config.json: agents.a.model is missing."],
    ["bough.config.json", '{"agents":{"a":{"model":7}}}', "bough.config.json: agents.a.model is invalid"],
    ["bough.config.json", '{"agents":{"a":{"model":"x/y","tools":[]}}}', "unknown setting agents.a.tools"],
    ["bough.config.json", '{"agents":{"a":{"model":"nobody/x"}}}', 'agents.a: Unknown provider "nobody"'],
    ["bough.config.json", '{"agents":{"a/b":{"model":"x/y"}}}', '"a/b" is not a valid agent id'],
    [
      "bough.config.json",
      '{"port":"x","agents":{"a":{"model":"openai/y"}}}',
      "bough.config.json: port must be an integer from 0 to 65535.",
    ],
    [
      "bough.config.mjs",
      "export default { agents: { a: { model: {} } } };",
      "agents.a: The model is not an AI SDK language",
    ],
    ["bough.config.mjs", "export const x = 1;", "bough.config.mjs has no default export"],
    ["bough.config.mjs", "throw new Error('no luck');", "bough.config.mjs can't be loaded: no luck"],
    ["bough.config.mjs", "throw new Error('no\\n  luck');", "bough.config.mjs can't be loaded: no luck"],
    [
      "bough.config.mjs",
      "export default { agents: { a: () => null } };",
      "bough.config.mjs: agents.a must be an object.",
    ],
    [
      "bough.config.mjs",
      "export default { agents: { a: { model: {}, store: './x' } } };",
      "bough.config.mjs: unknown setting agents.a.store",
    ],
    [
      "bough.config.mjs",
      "const model = { specificationVersion: 'v4', doStream() {} }; export default { agents: { a: { model, limits: { iterations: 0 } } } };",
      "bough.config.mjs: agents.a: limits.iterations must be an integer ≥ 1.",
    ],
  ])("%s with %s is refused with file and field", async (file, text, sentence) => {
    const { code, stdout, stderr } = await bough(project({ [file]: text }), "serve", "--port", "0");
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(sentence);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  test("that never comes to its end is left at the first signal", async () => {
    const cwd = project({ "bough.config.mjs": 'console.error("loading"); await new Promise(() => {});' });
    const started = start(cwd, ["serve", "--port", "0"]);
    await started.says("loading");
    started.child.kill("SIGTERM");
    expect(await started.ended).toMatchObject({ code: 130, stdout: "" });
  });

  test("with auth of its own lets in whom it knows, and no token", async () => {
    const identity = 'request.headers.get("x-api-key") === "ada" ? { tenant: "t", scopes: ["read"] } : undefined';
    const text = code("").replace("agents:", `auth: (request) => (${identity}), agents:`);
    const cwd = project({ "bough.config.mjs": text });
    const { url, token, started } = await serveIn(cwd);
    expect(token).toBe("");
    await started.says(`Chat     npx bough chat --url ${url}\n`);
    await started.says("Token    set BOUGH_TOKEN for chat\n");
    expect((await fetch(`${url}/agents`)).status).toBe(401);
    expect((await fetch(`${url}/agents`, { headers: { "x-api-key": "ada" } })).status).toBe(200);
    const refused = await bough(cwd, "serve", "--token", "0123456789abcdef");
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--token has no effect, because bough.config.mjs sets auth."),
    });
  });

  test("of two kinds is refused until one is named", async () => {
    const cwd = project({ "bough.config.json": "{}", "bough.config.js": "" });
    const { code, stderr } = await bough(cwd, "serve");
    expect(code).toBe(2);
    expect(stderr).toContain("Found bough.config.js and bough.config.json. Choose one with --config FILE.");
  });

  test("a missing provider package is told at the start, with what to install", async () => {
    const config = { agents: { a: { model: "mistral/large" } } };
    const { code, stderr } = await bough(project({ "bough.config.json": JSON.stringify(config) }), "serve");
    expect(code).toBe(1);
    expect(stderr).toContain("npm install @ai-sdk/mistral");
  });

  test("with a key, the demo agent is a real model's", async () => {
    const cwd = project({});
    const env = { OPENAI_API_KEY: "none" };
    const { started } = await serveIn(cwd, { env });
    await started.says("openai/gpt-5-mini (OPENAI_API_KEY is set)");
    expect((await boughWith(cwd, { env, input: "" }, "chat")).code).toBe(0);
  });
});
