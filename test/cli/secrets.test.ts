// What of secrets can be seen of the command: by other users of the machine, on the screen, in files, and in what scripts read.

import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { visible } from "../../src/chat/text.ts";
import { shownWords } from "../../src/cli/process-title.ts";
import { toJson } from "../../src/cli/terminal.ts";
import { bough, boughWith, fill, hasTerminal, scratch, start, startInTerminal } from "./kit.ts";
import { noKeys, serveIn } from "./serving.ts";

const hasModes = process.getuid !== undefined;
const isRoot = process.getuid?.() === 0;
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

describe("the token", () => {
  test("is in a file of its owner's while the server runs, where chat finds it, and goes with the server", async () => {
    const cwd = scratch();
    const { url, token, started } = await serveIn(cwd);
    const file = join(cwd, ".bough", `token-${new URL(url).port}`);
    expect(readFileSync(file, "utf8")).toBe(token);
    if (hasModes) expect([modeOf(file), modeOf(join(cwd, ".bough"))]).toEqual(["600", "700"]);
    const chat = await boughWith(cwd, { env: noKeys, input: "Hello\n" }, "chat", "--url", url);
    expect(chat).toMatchObject({ code: 0, stdout: expect.stringContaining("scripted demo") });
    const elsewhere = await boughWith(scratch(), { env: noKeys, input: "Hello\n" }, "chat", "--url", url);
    expect(elsewhere.code).toBe(1);
    const told = await boughWith(scratch(), { env: { ...noKeys, BOUGH_TOKEN: token } }, "chat", "--url", url);
    expect(told.code).toBe(0);
    started.child.kill("SIGTERM");
    const { stdout } = await started.ended;
    expect(stdout).toContain(`Chat     npx bough chat --url ${url}\n`);
    expect(stdout).toMatch(/Token {4}in \.bough\/token-\d+;/);
    expect(existsSync(file)).toBe(false);
  });

  test("of another server that took the port since stays in its file", async () => {
    const cwd = scratch();
    const { url, started } = await serveIn(cwd);
    const file = join(cwd, ".bough", `token-${new URL(url).port}`);
    writeFileSync(file, "of another server");
    started.child.kill("SIGTERM");
    await started.ended;
    expect(readFileSync(file, "utf8")).toBe("of another server");
  });

  test("is not written through a link that stands in its place", async () => {
    const cwd = scratch();
    const victim = join(cwd, "victim");
    writeFileSync(victim, "untouched");
    mkdirSync(join(cwd, ".bough"), 0o700);
    const { url, token, started } = await serveIn(cwd, { words: [] });
    const { port } = new URL(url);
    started.child.kill("SIGTERM");
    await started.ended;
    symlinkSync(victim, join(cwd, ".bough", `token-${port}`));
    const again = await serveIn(cwd, { words: ["--port", port] });
    expect(readFileSync(victim, "utf8")).toBe("untouched");
    expect(readFileSync(join(cwd, ".bough", `token-${port}`), "utf8")).toBe(again.token);
    expect(again.token).not.toBe(token);
  });

  test("is not sent to another machine", async () => {
    const cwd = scratch();
    mkdirSync(join(cwd, ".bough"), 0o700);
    writeFileSync(join(cwd, ".bough/token-80"), "x".repeat(20), { mode: 0o600 });
    const { findToken } = await import("../../src/cli/token-file.ts");
    const before = process.cwd();
    process.chdir(cwd);
    try {
      expect(findToken(new URL("http://127.0.0.1/"))).toBe("x".repeat(20));
      expect(findToken(new URL("http://[::1]:80/"))).toBe("x".repeat(20));
      expect(findToken(new URL("http://example.com/"))).toBeUndefined();
      expect(findToken(new URL("http://127.0.0.1:81/"))).toBeUndefined();
    } finally {
      process.chdir(before);
    }
  });

  test.runIf(existsSync("/proc/self/cmdline"))("given as an option is not in the list of processes", async () => {
    const secret = "CANARY-on-the-command-line";
    const { started } = await serveIn(scratch(), { words: ["--token", secret] });
    const shown = readFileSync(`/proc/${started.child.pid}/cmdline`, "utf8");
    expect(shown).toContain("bough serve");
    expect(shown).not.toContain("CANARY");
  });

  test("is in nothing that is served without it: the page is Studio, and may run only its own scripts", async () => {
    const { url } = await serveIn(scratch(), { words: ["--token", "CANARY-token-1234567890"] });
    const answer = await fetch(`${url}/`);
    const page = await answer.text();
    expect(page).toContain("<title>Bough Studio</title>");
    expect(page).not.toContain("CANARY");
    expect(page).not.toMatch(/<script(?![^>]*src=)/);
    const policy = answer.headers.get("content-security-policy")!;
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("require-trusted-types-for 'script'");
    const [script] = /assets\/[\w-]+\.js/.exec(page)!;
    const file = await fetch(`${url}/${script}`, { headers: { "accept-encoding": "br" } });
    expect(file.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(file.headers.get("content-encoding")).toBe("br");
  });

  test("is all that there is without Studio", async () => {
    const { url } = await serveIn(scratch(), { words: ["--no-studio"] });
    expect((await fetch(`${url}/`, { headers: { accept: "text/html" } })).status).toBe(401);
  });
});

test("the words of a command lose tokens and passwords", () => {
  const words = ["serve", "--token", "S3cret", "--token=S3cret", "--store", "postgres://u:S3cret@h/db"];
  expect(shownWords([...words, "--store=redis://:S3cret@h", "--url", "http://h/#token=S3cret"]).join(" ")).toBe(
    "serve --token *** --token=*** --store postgres://u:***@h/db --store=redis://:***@h --url http://h/#…",
  );
});

describe("a password in the URL of a store", () => {
  const urls = [
    "postgres://ada:S3cretPw@127.0.0.1:1/app",
    "postgres://127.0.0.1:1/app?user=ada&password=S3cretPw",
    "postgres://ada:S3cret/Pw#x@127.0.0.1:1/app",
    "redis://:S3cretPw@127.0.0.1:1",
  ];

  test.each(urls)("is not shown by doctor, nor in errors, for %s", async (url) => {
    for (const words of [
      ["doctor", url],
      ["doctor", url, "--json"],
      ["store", "check", url],
      ["store", "check", url, "--json"],
      ["sessions", "ls", "--store", url, "--json"],
    ]) {
      const { code, stdout, stderr } = await bough(scratch(), ...words);
      expect(code, words.join(" ")).not.toBe(0);
      expect(stdout + stderr, words.join(" ")).not.toMatch(/S3cret/);
    }
  });

  test.runIf(hasTerminal)("is not in the words by which a chat is gone on with", async () => {
    const cwd = scratch();
    const { child, ended, says } = startInTerminal(cwd, ["chat", "--store", "sqlite:./own.db"], noKeys);
    await says("/help lists the commands");
    child.stdin.write("Hello\r");
    await says("I am a scripted");
    child.stdin.write("\u0004");
    expect((await ended).stdout).toContain("To continue: bough chat --store sqlite:./own.db --session ");
  });
});

describe("a configuration", () => {
  const program =
    'import { writeFileSync } from "node:fs";\nwriteFileSync("executed", "");\nexport default { agents: {} };\n';

  async function expectRefused(cwd: string, why: RegExp): Promise<void> {
    for (const command of ["serve", "chat"]) {
      const { code, stderr } = await boughWith(cwd, { env: noKeys }, command);
      expect(code).toBe(2);
      expect(stderr).toMatch(why);
    }
    expect(existsSync(join(cwd, "executed"))).toBe(false);
    const { stdout } = await bough(cwd, "doctor");
    expect(stdout).toMatch(/warn {2}Config/);
  }

  test.runIf(hasModes)("that every user can write is refused before it is executed", async () => {
    const cwd = scratch();
    writeFileSync(join(cwd, "bough.config.mjs"), program);
    chmodSync(join(cwd, "bough.config.mjs"), 0o666);
    await expectRefused(cwd, /^error: bough\.config\.mjs can be written by every user .*, so it is not loaded\./);
  });

  test.runIf(isRoot)("of another user is refused before it is executed (needs root to make one)", async () => {
    const cwd = scratch();
    writeFileSync(join(cwd, "bough.config.mjs"), program);
    chownSync(join(cwd, "bough.config.mjs"), 12345, 12345);
    await expectRefused(cwd, /^error: bough\.config\.mjs belongs to another user \(uid 12345/);
  });

  test("tells its hosts and origins on the banner", async () => {
    const cwd = scratch();
    const config = { agents: {}, hosts: ["app.example"], origins: ["https://app.example"] };
    const root = new URL("../../dist/", import.meta.url).href;
    writeFileSync(
      join(cwd, "bough.config.mjs"),
      `import { scriptedModel } from "${root}scripted/index.js";
      export default { ...${JSON.stringify(config)}, agents: { a: { model: scriptedModel(["Hi."]) } } };`,
    );
    const started = start(cwd, ["serve", "--port", "0"], noKeys);
    await started.says("Hosts    app.example");
    await started.says("Origins  https://app.example");
  });
});

describe.runIf(hasModes)("doctor", () => {
  test("warns about files of a store that others can read, and about nothing when there are none", async () => {
    const cwd = scratch();
    const store = join(cwd, ".bough/bough.db");
    mkdirSync(join(cwd, ".bough"), 0o700);
    await fill(`sqlite:${store}`, async (sessions) => void (await sessions.createSession("s")));
    expect((await bough(cwd, "doctor")).stdout).not.toContain("Files");
    chmodSync(store, 0o644);
    chmodSync(join(cwd, ".bough"), 0o755);
    const { stdout, code } = await bough(cwd, "doctor");
    expect(code).toBe(0);
    expect(stdout).toMatch(/warn {2}Files +\.bough is accessible to other users \(mode 755\)/);
    expect(stdout).toMatch(/warn {2}Files +\.bough\/bough\.db is accessible to other users \(mode 644\)/);
    expect(stdout).toContain("chmod 600 .bough/bough.db");
  });

  test("folders and files that the command makes are their owner's alone", async () => {
    const cwd = scratch();
    await boughWith(cwd, { env: noKeys, input: "Note: buy milk\nyes\n" }, "chat");
    for (const name of readdirSync(join(cwd, ".bough"))) {
      if (name !== ".gitignore") expect([name, modeOf(join(cwd, ".bough", name))]).toEqual([name, "600"]);
    }
    expect(modeOf(join(cwd, ".bough"))).toBe("700");
  });
});

describe("what steers a terminal", () => {
  const odd = [0x1b, 0x7f, 0x9b, 0x061c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0x202e, 0x2066, 0xfeff];
  const text = String.fromCharCode(...odd);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  const raw = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;

  test("is escaped in JSON, which says the same, and written out for people", () => {
    expect(toJson({ text })).not.toMatch(raw);
    expect(JSON.parse(toJson({ text }))).toEqual({ text });
    expect(visible(text)).not.toMatch(raw);
    expect(visible("\u200b")).toBe("\\u200b");
  });

  test("is in no output of --json and of export, and an export with it comes back as it was", async () => {
    const cwd = scratch();
    await fill(`sqlite:${join(cwd, "a.db")}`, async (sessions) => {
      await sessions.createSession("s", { metadata: { text }, state: { text } });
      await sessions.appendTurn({ sessionId: "s" }, [{ role: "user", content: `Hello ${text}` }]);
    });
    const store = ["--store", "sqlite:a.db"];
    for (const words of [
      ["sessions", "ls", "--json", ...store],
      ["sessions", "show", "s", "--json", ...store],
      ["sessions", "show", "s", ...store],
      ["events", "tail", "s", "--json", ...store],
      ["events", "tail", "s", ...store],
      ["sessions", "export", "s", ...store],
    ]) {
      const { code, stdout } = await bough(cwd, ...words);
      expect(code, words.join(" ")).toBe(0);
      expect(stdout.length).toBeGreaterThan(10);
      expect(stdout, words.join(" ")).not.toMatch(raw);
    }
    await bough(cwd, "sessions", "export", "s", "--output", "s.jsonl", ...store);
    expect((await bough(cwd, "sessions", "import", "s.jsonl", "--store", "sqlite:b.db")).code).toBe(0);
    const both = await Promise.all(
      ["a", "b"].map((name) => bough(cwd, "events", "tail", "s", "--json", "--store", `sqlite:${name}.db`)),
    );
    expect(both[1]?.stdout).toBe(both[0]?.stdout);
  });
});
