// bough chat as a real process: in pipes and in a pseudo-terminal, on a local store and with a server.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LLMock } from "@copilotkit/aimock";
import { describe, expect, onTestFinished, test } from "vitest";
import { bough, boughWith, hasTerminal, scratch, start, startInTerminal } from "./kit.ts";
import { noKeys, serveIn, stuckConfig } from "./serving.ts";

/** Says lines through a pipe. */
function chat(cwd: string, lines: readonly string[], ...words: string[]) {
  return boughWith(cwd, { env: noKeys, input: lines.map((line) => `${line}\n`).join("") }, "chat", ...words);
}

function config(cwd: string, agents: string): string[] {
  const root = new URL("../../dist/", import.meta.url).href;
  const text = `import { scriptedModel } from "${root}scripted/index.js";\nexport default { agents: ${agents} };\n`;
  writeFileSync(join(cwd, "bough.config.mjs"), text);
  return ["--config", "bough.config.mjs"];
}

describe("bough chat in a pipe", () => {
  test("gives the answers on stdout and everything else on stderr", async () => {
    const { code, stdout, stderr } = await chat(scratch(), ["What time is it?", "Hello"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^It is \d{4}-.*Z\.\nI am a scripted demo: .*real model\.\n$/);
    expect(stderr).toMatch(/^> now \{\}\n< now \d{4}-.*Z\n$/);
  });

  test("tells where it begins, what was said there and what the model thinks on stderr", async () => {
    const cwd = scratch();
    const words = config(
      cwd,
      '{ a: { model: scriptedModel(() => ({ reasoning: "Trees.\\nTall ones.", text: "Oak." })) } }',
    );
    await chat(cwd, ["A tree?"], ...words, "--session", "s");
    const { stdout, stderr } = await chat(cwd, ["Another?"], ...words, "--session", "s");
    expect(stdout).toBe("Oak.\n");
    expect(stderr).toBe(
      "Session s, branch main.\n   1  user       A tree?\n   2  assistant  Oak.\nTrees.\nTall ones.\n",
    );
  });

  test("emits the event types that the configuration registers for all agents", async () => {
    const cwd = scratch();
    const root = new URL("../../dist/", import.meta.url).href;
    const text = `import { defineEvent } from "${root}index.js";
import { scriptedModel } from "${root}scripted/index.js";
const schema = { "~standard": { version: 1, vendor: "own", validate: (value) => ({ value }) } };
const orderPlaced = defineEvent({ type: "order.placed", kept: true, schema });
const shop = { name: "shop", afterTurn: (context) => context.emit(orderPlaced, { total: 12 }) };
export default {
  store: "sqlite:./bough.db",
  events: [orderPlaced],
  agents: { a: { model: scriptedModel(["Oak."]), middleware: [shop] } },
};
`;
    writeFileSync(join(cwd, "bough.config.mjs"), text);
    const said = await chat(cwd, ["A tree?"], "--config", "bough.config.mjs", "--session", "s");
    expect(said).toMatchObject({ code: 0, stdout: "Oak.\n" });
    const { stdout } = await bough(cwd, "sessions", "export", "s", "--store", "sqlite:./bough.db");
    expect(stdout).toContain("order.placed");
  });

  test("asks for permission, and takes the next line for the answer", async () => {
    const cwd = scratch();
    const first = await chat(cwd, ["Note: one", "y", "Note: two", "n not now", "Note: three", "a", "Note: four"]);
    expect(first.code).toBe(0);
    expect(first.stdout.trim().split("\n")).toEqual([
      "Done: written to ./.bough/notes.md.",
      "I did not do it: not now",
      "Done: written to ./.bough/notes.md.",
      "Done: written to ./.bough/notes.md.",
    ]);
    expect(first.stderr.match(/\? write_note asks for permission/g)).toHaveLength(3);
    expect(readFileSync(join(cwd, ".bough/notes.md"), "utf8")).toBe("- one\n- three\n- four\n");
  });

  test("denies what nobody is there to allow, and asks again for an answer it can't read", async () => {
    const cwd = scratch();
    const { stdout, stderr } = await chat(cwd, ["Note: never", "perhaps"]);
    expect(stderr).toContain("Answer y, a or n");
    expect(stdout).toBe("I did not do it: No user is available to give permission.\n");
    expect(existsSync(join(cwd, ".bough/notes.md"))).toBe(false);
  });

  test("asks a question with choices", async () => {
    const { stdout, stderr } = await chat(scratch(), ["Ask me something", "2", "Ask me again", "a beech"]);
    expect(stderr).toContain(
      "? Which tree do you like best?\n    1. oak\n    2. larch\n    3. birch\n".replace(/\n {4}/g, "\n    "),
    );
    expect(stdout).toBe("larch: a good choice.\na beech: a good choice.\n");
  });

  test("forks, switches, undoes and shows what there is", async () => {
    const cwd = scratch();
    const lines = [
      "What time is it?",
      "/fork 2 early",
      "/fork",
      "/branches",
      "/switch main",
      "/undo",
      "/history",
      "/sessions",
    ];
    const { code, stdout } = await chat(cwd, lines, "--session", "s");
    expect(code).toBe(0);
    expect(stdout).toContain(
      "  main  4 messages\n  └─ early  3 messages, forked after message 2\n*    └─ fork-1  3 messages",
    );
    expect(stdout).toContain("Reverted 4 messages, starting with “What time is it?”.");
    expect(stdout).toContain("There are no messages yet.");
    expect(stdout).toMatch(/\dZ {2}s\n$/);
    const again = await chat(cwd, ["/history"], "--session", "s", "--branch", "early");
    expect(again.stdout).toContain("   1  user       What time is it?");
  });

  test.each([
    ["in a store", async () => ["--session", "s"]],
    [
      "with a server",
      async () => {
        const { url, token } = await serveIn(scratch());
        return ["--url", `${url}/#token=${token}`, "--session", "s"];
      },
    ],
  ])("answers again, edits and redoes %s", async (_where, place) => {
    const lines = ["Hello", "/again", "/again", "/edit 1 What time is it?", "/undo", "/redo", "/branches"];
    const { code, stdout, stderr } = await chat(scratch(), lines, ...(await place()));
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining("error") });
    expect(stdout.match(/I am a scripted demo/g)!.length).toBeGreaterThan(2);
    expect(stdout).toMatch(/It is \d{4}/);
    expect(stdout).toContain("Reverted 4 messages, starting with “What time is it?”.");
    expect(stdout).toMatch(
      /main {2}2 messages\n.*again-1 .*forked after message 1\n.*again-2 .*forked after message 1/,
    );
    expect(stdout).toMatch(/edit-1 {2}0 messages.*\n\*.*redo-1 {2}4 messages/);
  });

  test("compacts, and takes it back", async () => {
    const cwd = scratch();
    const { code, stdout, stderr } = await chat(
      cwd,
      ["Hello", "Hello again", "/compact 1", "/uncompact"],
      "--session",
      "s",
    );
    expect(code).toBe(0);
    expect(stdout + stderr).toContain("Compacted 2 messages.");
    expect(stdout + stderr).toContain("Took back the compaction of 2 messages.");
  });

  test.each([
    [["Hello", "/compact x"], "/compact [N]"],
    [["Hello", "/compact 1"], "(nothing_to_compact)"],
    [["Hello", "/uncompact"], "(compaction_not_found)"],
    [["/frob"], "Unknown command: /frob"],
    [["/switch main"], "There are no messages yet."],
    [["Hello", "/switch nowhere"], "Name one of this session's branches: main."],
    [["Hello", "/fork 99"], "Message index 99 must be from 0 to 2."],
    [["Hello", "/fork 1 main"], "(branch_exists)"],
    [["Hello", "/undo", "/undo"], 'Branch "main" has no messages.'],
    [["Hello", "/redo"], 'Nothing was undone on branch "main".'],
    [["Hello", "/edit x"], "Usage: /edit N TEXT"],
    [["Hello", "/edit 9 Hi"], "There is no message 9"],
    [["Hello", "/edit 2 Hi"], "is not a user's"],
    [["/sessions nobody"], "(session_not_found)"],
    [["/history x"], "/history [N]"],
  ])("ends with 1 after %j, and says why", async (lines, sentence) => {
    const { code, stderr } = await chat(scratch(), lines);
    expect(code).toBe(1);
    expect(stderr).toContain(sentence);
  });

  test.each([
    [["--branch", "b"], "--branch requires --session"],
    [["--agent", "nobody"], 'There is no agent "nobody". Available: demo.'],
    [["--token", "t"], "--token requires --url"],
    [["--url", "ftp://x"], "--url must be an http:// or https:// URL"],
    [["--url", "http://127.0.0.1:1", "--store", "./x"], "--url can't be combined with --store"],
  ])("ends with 2 for %j", async (words, sentence) => {
    const { code, stderr } = await chat(scratch(), [], ...words);
    expect(code).toBe(2);
    expect(stderr).toContain(sentence);
  });

  test("a failed answer is told, and the last one decides the exit code", async () => {
    const cwd = scratch();
    const words = config(
      cwd,
      '{ a: { model: scriptedModel(["Fine.", { error: new Error("no luck") }]), retry: { attempts: 1 } } }',
    );
    const { code, stdout, stderr } = await chat(cwd, ["One", "Two"], ...words);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "Fine.\n" });
    expect(stderr).toContain("no luck");
  });

  test("writes out what would steer the terminal, from models and tools alike", async () => {
    const cwd = scratch();
    const evil = String.raw`"a\u001b]0;title\u0007b\u009b31mc\u202ed\r\ne"`;
    const tools = `{ t: { inputSchema: { jsonSchema: { type: "object" } }, execute: () => ${evil} } }`;
    const script = `[{ calls: [{ name: "t", input: { x: ${evil} } }] }, ${evil}]`;
    const words = config(cwd, `{ a: { model: scriptedModel(${script}, { chunks: 99 }), tools: ${tools} } }`);
    const { stdout, stderr } = await chat(cwd, ["Go", "/history"], ...words);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    expect(stdout + stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
    expect(stdout).toContain("a\\u001b]0;title\\u0007b\\u009b31mc\\u202ed\ne\n");
  });

  test("prints events and findings as lines of JSON", async () => {
    const { code, stdout, stderr } = await chat(
      scratch(),
      ["Note: x", '{"approved":true}', "/branches", "/frob"],
      "--json",
    );
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const kept = lines.filter(({ seq }) => seq !== undefined).map(({ type }) => type);
    expect(kept).toEqual([
      "turn.started",
      "message.added",
      "message.added",
      "interaction.opened",
      "interaction.answered",
      "tool.started",
      "tool.returned",
      "message.added",
      "turn.committed",
    ]);
    expect(lines.at(-1)).toEqual({ type: "branches", branches: [{ id: "main", messages: 4 }], current: "main" });
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "invalid_argument" } });
    expect(code).toBe(1);
  });

  test.each(["anthropic", "openai"])(
    "with a key for %s, its model speaks and uses the demo's tools",
    async (provider) => {
      const mock = new LLMock({ port: 0 });
      await mock.start();
      onTestFinished(async () => void (await mock.stop()));
      const isAsked = ({ messages }: { messages: { role: string }[] }) => messages.at(-1)?.role === "user";
      const call = { toolCalls: [{ name: "write_note", arguments: '{"text":"by a model"}' }] };
      mock.on({ userMessage: /note/, predicate: isAsked }, call);
      mock.on({ predicate: () => true }, { content: "Said by a provider." });
      const name = provider.toUpperCase();
      const env = { ...noKeys, [`${name}_API_KEY`]: "none", [`${name}_BASE_URL`]: `${mock.url}/v1` };
      const cwd = scratch();
      const { code, stdout } = await boughWith(cwd, { env, input: "Take a note\ny\n" }, "chat");
      expect({ code, stdout }).toEqual({ code: 0, stdout: "Said by a provider.\n" });
      expect(readFileSync(join(cwd, ".bough/notes.md"), "utf8")).toBe("- by a model\n");
    },
  );

  test("makes no session when nothing is said", async () => {
    const cwd = scratch();
    await chat(cwd, ["/help"]);
    expect(JSON.parse((await bough(cwd, "sessions", "ls", "--json")).stdout).sessions).toEqual([]);
  });

  test("goes on with a turn that a kill has cut off, without running again what has its result", async () => {
    const cwd = scratch();
    const words = ["--config", stuckConfig(cwd), "--session", "s"];
    const first = start(cwd, ["chat", ...words], { ...noKeys, STUCK: "1" });
    first.child.stdin.write("Do both.\n");
    await first.says("< quick quick is done");
    first.child.kill("SIGKILL");
    await first.ended;
    const second = await chat(cwd, [], ...words);
    expect(second).toMatchObject({ code: 0 });
    expect(second.stderr).toContain("The last turn is unfinished; resuming it.");
    expect(second.stdout).toContain("Both are done.\n");
    expect(readFileSync(join(cwd, "ledger.txt"), "utf8")).toBe("quick\nslow\n");
  });

  test("asks again, after a kill, the question that was open", async () => {
    const cwd = scratch();
    const first = start(cwd, ["chat", "--session", "s"], noKeys);
    first.child.stdin.write("Note: survives\n");
    await first.says("? write_note asks for permission");
    first.child.kill("SIGKILL");
    await first.ended;
    const { stdout } = await chat(cwd, ["y"], "--session", "s");
    expect(stdout).toContain("Done: written to");
    expect(readFileSync(join(cwd, ".bough/notes.md"), "utf8")).toBe("- survives\n");
  });
});

describe("bough chat with a server", () => {
  test("says, asks, forks and undoes there", async () => {
    const cwd = scratch();
    const { url, token } = await serveIn(cwd);
    const lines = ["Note: remote", "y", "/fork 2 early", "/branches", "/switch main", "/undo", "/history"];
    const { code, stdout, stderr } = await chat(scratch(), lines, "--url", `${url}/#token=${token}`);
    expect({ code, stdout: stdout.split("\n")[0] }).toEqual({ code: 0, stdout: "Done: written to ./.bough/notes.md." });
    expect(stderr).toContain('? write_note asks for permission: { "text": "remote" }');
    expect(stdout).toContain("  main  4 messages\n* └─ early  3 messages, forked after message 2\n");
    expect(stdout).toContain("Reverted 4 messages");
    expect(readFileSync(join(cwd, ".bough/notes.md"), "utf8")).toBe("- remote\n");
  });

  test("takes a question off the screen that somebody else has answered", async () => {
    const { url, token, ask, until } = await serveIn(scratch());
    const talk = start(scratch(), ["chat", "--url", `${url}/#token=${token}`, "--session", "s"], noKeys);
    talk.child.stdin.write("Note: shared\n");
    await talk.says("? write_note asks for permission");
    const scope = "/agents/demo/sessions/s/branches/main";
    const [{ id }] = (await ask("GET", `${scope}/state`)).body.interactions;
    await ask("POST", `${scope}/responses`, { interactionId: id, answer: { approved: false, reason: "not here" } });
    await talk.says("I did not do it: not here");
    await until(async () => (await ask("GET", `${scope}/state`)).body.openTurn === undefined);
    // A line that comes now is no answer any more.
    talk.child.stdin.end("What time is it?\n");
    const { code, stdout } = await talk.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/not here\nIt is \d/);
  });

  test("is refused without the right token, in one sentence", async () => {
    const { url } = await serveIn(scratch());
    const { code, stderr } = await chat(scratch(), ["Hello"], "--url", url, "--token", "wrong-wrong-wrong-wrong");
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: .*\(unauthorized\)\n$/);
  });

  test("goes on by itself when the server is killed and started again", async () => {
    const cwd = scratch();
    const token = "the-same-token-both-times";
    const words = ["--config", stuckConfig(cwd), "--token", token];
    const first = await serveIn(cwd, { words, env: { STUCK: "1" } });
    const talk = start(scratch(), ["chat", "--url", first.url, "--token", token], noKeys);
    talk.child.stdin.end("Do both.\n");
    await talk.says("< quick quick is done");
    first.started.child.kill("SIGKILL");
    await talk.says("Connection lost; reconnecting");
    const second = await serveIn(cwd, { words: [...words, "--port", new URL(first.url).port] });
    const { code, stdout } = await talk.ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: "Both are done.\n" });
    expect(readFileSync(join(cwd, "ledger.txt"), "utf8")).toBe("quick\nslow\n");
    second.started.child.kill("SIGTERM");
  });

  test("hears the end of what runs when the server is told to stop", async () => {
    const cwd = scratch();
    const { url, token, started } = await serveIn(cwd, {
      words: ["--config", stuckConfig(cwd)],
      env: { SLOW_MS: "1000" },
    });
    const talk = start(scratch(), ["chat", "--url", `${url}/#token=${token}`], noKeys);
    talk.child.stdin.end("Do both.\n");
    await talk.says("< quick quick is done");
    started.child.kill("SIGTERM");
    expect(await talk.ended).toMatchObject({ code: 0, stdout: "Both are done.\n" });
  });
});

describe.skipIf(!hasTerminal)("bough chat in a terminal", () => {
  test("prompts, streams, interrupts at Ctrl-C, and leaves at Ctrl-D with how to come back", async () => {
    const talk = startInTerminal(scratch(), ["chat", "--session", "s"], noKeys);
    await talk.says("you › ");
    talk.child.stdin.write("Wait 60\r");
    await talk.says("> wait");
    talk.child.stdin.write("\u0003");
    await talk.says("(interrupted");
    talk.child.stdin.write("What time is it?\r");
    await talk.says("demo › It is");
    talk.child.stdin.write("\u0004");
    const { code, stdout } = await talk.ended;
    expect(code).toBe(0);
    expect(stdout).toContain("Interrupting. Press Ctrl-C again to leave.");
    expect(stdout).toContain("To continue: bough chat --session s");
  });

  test("leaves at a second Ctrl-C, also when a tool hangs", async () => {
    const cwd = scratch();
    const words = ["chat", "--config", stuckConfig(cwd), "--session", "s"];
    const talk = startInTerminal(cwd, words, { ...noKeys, STUCK: "1" });
    await talk.says("you › ");
    talk.child.stdin.write("Do both.\r");
    await talk.says("< quick");
    talk.child.stdin.write("\u0003\u0003");
    expect(await talk.ended).toMatchObject({ code: 0 });
  });

  test("takes nothing that was typed before a question for its answer", async () => {
    const cwd = scratch();
    const talk = startInTerminal(cwd, ["chat"], noKeys);
    await talk.says("you › ");
    talk.child.stdin.write("Note: too soon\ry\ry\r");
    await talk.says("Allow it?");
    talk.child.stdin.write("n\r");
    await talk.says("I did not do it");
    talk.child.stdin.write("\u0004");
    await talk.ended;
    expect(existsSync(join(cwd, ".bough/notes.md"))).toBe(false);
  });
});
