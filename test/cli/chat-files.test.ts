// bough chat: files that go with a message, and messages that wait for their turn.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bough, boughWith, fill, hasTerminal, scratch, start, startInTerminal } from "./kit.ts";
import { noKeys, serveIn } from "./serving.ts";

const png = Buffer.from("89504e470d0a1a0a0000", "hex");

/** A folder with two files and an agent that says what it was sent. */
function prepare(): string {
  const cwd = scratch();
  const root = new URL("../../dist/", import.meta.url).href;
  writeFileSync(
    join(cwd, "bough.config.mjs"),
    `import { scriptedModel } from "${root}scripted/index.js";
const shown = (part) => (part.type === "file" ? part.mediaType + " " + part.filename : part.text);
export default { agents: { a: { model: scriptedModel((prompt) => prompt.at(-1).content.map(shown).join("; ")) } } };
`,
  );
  writeFileSync(join(cwd, "my tree.png"), png);
  writeFileSync(join(cwd, "notes.txt"), "Oaks are tall.");
  writeFileSync(join(cwd, "empty"), "");
  return cwd;
}

function chat(cwd: string, lines: readonly string[], ...words: string[]) {
  return boughWith(cwd, { env: noKeys, input: lines.map((line) => `${line}\n`).join("") }, "chat", ...words);
}

const places = {
  "a local store": async (cwd: string) => ({ cwd, words: ["--config", "bough.config.mjs"] }),
  "a server": async (cwd: string) => ({
    cwd,
    words: ["--url", (await serveIn(cwd, { words: ["--config", "bough.config.mjs"] })).url],
  }),
};

describe.each(Object.entries(places))("on %s", (_, open) => {
  test("an attached file goes with the next message, and with that one only", async () => {
    const { cwd, words } = await open(prepare());
    const lines = ["/attach my tree.png", "/attach 'notes.txt'", "/attach", "What are these?", "And now?", "/history"];
    const { code, stdout } = await chat(cwd, lines, ...words);
    expect(code).toBe(0);
    const tree = "my tree.png, 10 bytes: goes with your next message.";
    const both = `${tree}\nnotes.txt, 14 bytes: goes with your next message.`;
    expect(stdout).toContain(`${tree}\n${both}\n${both}\n`);
    expect(stdout).toMatch(/\nWhat are these\?; image\/png my tree\.png; .*\nAnd now\?\n/);
    expect(stdout).toContain("   1  user       What are these? [my tree.png] [notes.txt]\n");
  });

  test("what can't be attached is told at once, and a detached file is not sent", async () => {
    const { cwd, words } = await open(prepare());
    const lines = ["/attach none.png", "/attach .", "/attach empty", "/attach my\\ tree.png", "/detach", "Hello"];
    const { code, stdout, stderr } = await chat(cwd, lines, ...words);
    expect(stderr).toContain(
      'error: There is no file "none.png".\nerror: "." is not a file.\nerror: "empty" is empty.\n',
    );
    expect(stdout).toBe("my tree.png, 10 bytes: goes with your next message.\nNo files are attached.\nHello\n");
    expect(code).toBe(0);
  });
});

test("attaching makes no session: the message does", async () => {
  const cwd = prepare();
  await chat(cwd, ["/attach notes.txt"], "--config", "bough.config.mjs");
  expect(JSON.parse((await bough(cwd, "sessions", "ls", "--json")).stdout).sessions).toEqual([]);
});

test("a file that is gone when the message is sent is told, stays attached, and nothing is sent", async () => {
  const cwd = prepare();
  const talk = start(cwd, ["chat", "--config", "bough.config.mjs"], noKeys);
  talk.child.stdin.write("/attach notes.txt\n");
  await talk.says("goes with your next message.");
  rmSync(join(cwd, "notes.txt"));
  talk.child.stdin.write("Look\n/history\n");
  await talk.says("There are no messages yet.");
  writeFileSync(join(cwd, "notes.txt"), "Back.");
  talk.child.stdin.end("Look again\n/history\n");
  const { stdout, stderr, code } = await talk.ended;
  expect(stderr).toBe('error: There is no file "notes.txt".\n');
  expect(stdout).toContain("   1  user       Look again [notes.txt]\n");
  expect(code).toBe(0);
});

test("queued messages are listed, changed and withdrawn", async () => {
  const cwd = prepare();
  mkdirSync(join(cwd, ".bough"));
  await fill(`sqlite:${join(cwd, ".bough/bough.db")}`, async (sessions) => {
    await sessions.createSession("s");
    for (const text of ["First", "Second", "Third"]) {
      await sessions.queueInput("s", text);
    }
  });
  const lines = ["/queue", "/queue edit 2 Better words", "/queue rm 1", "/queue", "/queue rm 9", "/queue frob"];
  const { stdout, stderr, code } = await chat(cwd, lines, "--config", "bough.config.mjs", "--session", "s");
  const shown = stdout.split("\n").map((line) => line.replace(/ \d{4}-.*Z /, " "));
  expect(shown).toEqual(["   1   First", "   2   Second", "   3   Third", "   1   Better words", "   2   Third", ""]);
  expect(stderr).toContain("Changed “Second”.\nWithdrew “First”.\n");
  expect(stderr.match(/Usage: \/queue \[edit N TEXT \| rm N\]/g)).toHaveLength(2);
  expect(code).toBe(1);
});

test.skipIf(!hasTerminal)("a person sees that files are attached, before the message is typed", async () => {
  const talk = startInTerminal(prepare(), ["chat", "--config", "bough.config.mjs"], noKeys);
  await talk.says("you › ");
  talk.child.stdin.write("/attach my tree.png\r");
  await talk.says("you (1 file) › ");
  talk.child.stdin.write("What is this?\r");
  await talk.says("a › What is this?; image/png my tree.png");
  talk.child.stdin.write("\u0004");
  expect((await talk.ended).code).toBe(0);
});
