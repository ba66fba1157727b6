import { accessSync, constants, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { storedChoices } from "../../src/projection/permissions.ts";
import { bough, boughWith, fill, fillMany, fillRich, inStore, manifest, scratch, snapshot, start } from "./kit.ts";

const url = "sqlite:bough.db";

async function withRich(): Promise<string> {
  const cwd = scratch();
  await fill(`sqlite:${cwd}/bough.db`, (sessions, tick) => fillRich(sessions, tick, "rich"));
  return cwd;
}

describe("bough", () => {
  test("can be started by its name after a build", () => {
    accessSync(join(import.meta.dirname, "../..", manifest.bin.bough), constants.X_OK);
  });

  test("tells its version", async () => {
    expect(await bough(scratch(), "--version")).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: "" });
  });

  const screens = [
    [],
    ["serve"],
    ["chat"],
    ["store"],
    ["store", "check"],
    ["store", "migrate"],
    ["store", "copy"],
    ["sessions"],
    ["sessions", "ls"],
    ["sessions", "show"],
    ["sessions", "export"],
    ["sessions", "import"],
    ["sessions", "permissions"],
    ["sessions", "rm"],
    ["sessions", "prune"],
    ["interactions"],
    ["interactions", "ls"],
    ["interactions", "answer"],
    ["tasks"],
    ["tasks", "ls"],
    ["tasks", "cancel"],
    ["compactions"],
    ["compactions", "ls"],
    ["compactions", "add"],
    ["compactions", "rm"],
    ["pins"],
    ["pins", "ls"],
    ["pins", "add"],
    ["pins", "rm"],
    ["events"],
    ["events", "tail"],
    ["audit"],
    ["doctor"],
  ];
  test.each(screens.map((words) => [["bough", ...words].join(" "), words] as const))(
    "%s has a help screen that fits a terminal and has no colours in a pipe",
    async (name, words) => {
      const { code, stdout, stderr } = await bough(scratch(), ...words, "--help");
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout.startsWith(`${name}: `)).toBe(true);
      expect(stdout).toContain(`Usage: ${name} `);
      expect(stdout).not.toContain("\u001b");
      for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
    },
  );

  test.each([
    [["frobnicate"], "Unknown command: bough frobnicate."],
    [["store", "frobnicate"], "Unknown command: bough store frobnicate. Commands: check, migrate, copy."],
    [["sessions"], "needs a command"],
    [["sessions", "ls", "--frob"], "Unknown option: --frob."],
    [["sessions", "ls", "extra"], 'Unexpected argument: "extra".'],
    [["sessions", "ls", "--limit", "many"], '--limit must be an integer ≥ 0, not "many".'],
    [["sessions", "show"], "SESSION is missing"],
    [["store", "copy", "--from", "a"], "--to is missing"],
    [["store", "copy", "--from"], "--from needs a value"],
    [["sessions", "prune", "--older-than", "soon"], "such as 30d"],
    [["sessions", "ls"], "No store was given, and ./.bough/bough.db does not exist. Pass --store URL, or"],
    [["store", "check"], "No store was given, and ./.bough/bough.db does not exist. Pass the store's URL, or"],
  ])("ends with 2 and one sentence for %j", async (words, sentence) => {
    const { code, stdout, stderr } = await bough(scratch(), ...words);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(sentence);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  test("ends with 1 and one sentence for a store that can't be opened, and makes none", async () => {
    const cwd = scratch();
    writeFileSync(join(cwd, "text.db"), "not a database, but long enough to be taken for one");
    for (const store of ["sqlite:none.db", "./none", "mysql://u:secret@host/db", "sqlite:text.db"]) {
      const { code, stdout, stderr } = await bough(cwd, "sessions", "ls", "--store", store);
      expect({ store, code, stdout }).toEqual({ store, code: 1, stdout: "" });
      expect(stderr.trim().split("\n")).toHaveLength(1);
      expect(stderr).toMatch(/^error: /);
    }
    const { stderr } = await bough(cwd, "sessions", "ls", "--json", "--store", "mysql://u:secret@host/db");
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "store_unsupported" } });
    expect(stderr).not.toContain("secret");
    expect(readdirSync(cwd)).toEqual(["text.db"]);
  });

  test("shows a stack only when BOUGH_DEBUG asks for it", async () => {
    const cwd = scratch();
    const env = { BOUGH_DEBUG: "1" };
    expect((await bough(cwd, "sessions", "ls", "--store", "x:y")).stderr).not.toContain("    at ");
    expect((await boughWith(cwd, { env }, "sessions", "ls", "--store", "x:y")).stderr).toContain("    at ");
  });

  test("uses BOUGH_STORE, and the usual file when nothing is said", async () => {
    const cwd = await withRich();
    const env = { BOUGH_STORE: url };
    expect((await boughWith(cwd, { env }, "sessions", "ls")).stdout).toContain("rich");
    const copy = await bough(cwd, "store", "copy", "--from", url, "--to", "sqlite:.bough/bough.db");
    expect(copy.code).toBe(0);
    expect((await bough(cwd, "sessions", "ls")).stdout).toContain("rich");
  });
});

describe("bough store", () => {
  test("check finds nothing wrong with a store that is whole", async () => {
    const cwd = await withRich();
    const checked = await bough(cwd, "store", "check", url);
    expect(checked).toMatchObject({ code: 0, stderr: "" });
    expect(checked.stdout).toMatch(/^1 session, 4 branches, \d+ facts: no problems\n$/);
    const { stdout } = await bough(cwd, "store", "check", url, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, sessions: 1, branches: 4, problems: [] });
  });

  test("check and doctor list what is damaged and end with 1", async () => {
    const cwd = scratch();
    await fill(join(cwd, "files"), (sessions, tick) => fillRich(sessions, tick, "rich"));
    const logs = readdirSync(join(cwd, "files"), { recursive: true, encoding: "utf8" });
    const log = join(cwd, "files", logs.find((name) => name.endsWith("fork/events.jsonl"))!);
    const text = readFileSync(log, "utf8");
    writeFileSync(log, text.replace("On the fork", "On the work"));

    const checked = await bough(cwd, "store", "check", "./files");
    const examined = await bough(cwd, "doctor", "./files");

    expect(checked.code).toBe(1);
    expect(checked.stdout).toMatch(/PROBLEM +SESSION +BRANCH +DETAIL\n/);
    expect(checked.stdout).toMatch(/corrupt +rich +fork/);
    expect(examined.code).toBe(1);
    expect(examined.stdout).toMatch(/FAIL {2}corrupt/);
  });

  test("migrate makes a store, and says when there is nothing to do", async () => {
    const cwd = scratch();
    expect((await bough(cwd, "store", "migrate", "sqlite:new/a.db")).stdout).toMatch(/: created \(version \d+\)\n$/);
    expect((await bough(cwd, "store", "migrate", "sqlite:new/a.db")).stdout).toMatch(/: up to date \(version \d+\)\n$/);
    const { stdout } = await bough(cwd, "store", "migrate", "./files", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ kind: "file", from: 0, to: 2 });
  });
});

describe("bough sessions", () => {
  test("ls pages through sessions, newest first, and finds them by metadata", async () => {
    const cwd = scratch();
    await fillMany(`sqlite:${cwd}/bough.db`, 5);
    const ls = async (...words: string[]) =>
      JSON.parse((await bough(cwd, "sessions", "ls", "--store", url, "--json", ...words)).stdout);
    const first = await ls("--limit", "3");
    const rest = await ls("--limit", "3", "--cursor", first.cursor);
    const ids = [...first.sessions, ...rest.sessions].map(({ id }: { id: string }) => id);
    expect(ids).toEqual(["session-4", "session-3", "session-2", "session-1", "session-0"]);
    expect((await ls("--where", "i=2")).sessions).toMatchObject([{ id: "session-2" }]);
    const { stdout } = await bough(cwd, "sessions", "ls", "--store", url);
    expect(stdout.split("\n")[0]).toMatch(/^SESSION +TITLE +LAST ACTIVITY +CREATED +METADATA$/);
    expect(stdout.split("\n")[1]).toMatch(/^session-4 {2}Hello 4 {2}2023-/);
  });

  test("show draws the tree of branches", async () => {
    const cwd = await withRich();
    const { stdout } = await bough(cwd, "sessions", "show", "rich", "--store", url);
    expect(stdout).toMatch(/\nmain +4 +\d+ .*a turn is open\n {2}fork +3 +.*\n {4}fork of the fork +3 /);
    const { stdout: json } = await bough(cwd, "sessions", "show", "rich", "--store", url, "--json");
    expect(JSON.parse(json).branches).toHaveLength(3);
    const { code, stderr } = await bough(cwd, "sessions", "show", "nobody", "--store", url);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: .*nobody.* \(session_not_found\)\n$/);
  });

  test("show leaves hidden branches out unless all are asked for", async () => {
    const cwd = scratch();
    await fill(`sqlite:${cwd}/bough.db`, async (sessions) => {
      await sessions.createSession("s");
      const main = { sessionId: "s", branchId: "main" };
      const owner = { ...main, turnId: "t", kind: "subagent" };
      await sessions.forkBranch(main, { newBranchId: "secret", owner, visibility: "hidden" });
      await sessions.forkBranch({ ...main, branchId: "secret" }, { newBranchId: "mine" });
    });
    const { stdout } = await bough(cwd, "sessions", "show", "s", "--store", url);
    expect(stdout).toMatch(/\nmain .*\n {2}mine .*\n$/);
    expect(stdout).not.toContain("secret");
    const { stdout: all } = await bough(cwd, "sessions", "show", "s", "--all", "--store", url);
    expect(all).toMatch(/\nmain .*\n {2}secret .* hidden, subagent of main\n {4}mine .*\n$/);
    const idsIn = async (...more: string[]) => {
      const { stdout: json } = await bough(cwd, "sessions", "show", "s", "--json", "--store", url, ...more);
      return JSON.parse(json).branches.map(({ id }: { id: string }) => id);
    };
    expect([await idsIn(), await idsIn("--all")]).toEqual([
      ["main", "mine"],
      ["main", "secret", "mine"],
    ]);
  });

  test("writes out what would steer the terminal", async () => {
    const cwd = scratch();
    await fill(`sqlite:${cwd}/bough.db`, async (sessions) => {
      await sessions.createSession("s", { metadata: { evil: "\u009b31m \u202e" } });
    });
    const { stdout } = await bough(cwd, "sessions", "show", "s", "--store", url);
    expect(stdout).toContain("\\u009b31m \\u202e");
  });

  test("export and import carry whole sessions from store to store", async () => {
    const cwd = await withRich();
    const exported = await bough(cwd, "sessions", "export", "rich", "--store", url, "--output", "rich.jsonl");
    expect(exported).toMatchObject({ code: 0, stdout: "" });
    const lines = readFileSync(join(cwd, "rich.jsonl"), "utf8");
    for (const line of lines.trim().split("\n")) JSON.parse(line);
    const words = ["--trust", "--store", "./files", "--json"];
    const imported = await boughWith(cwd, { input: lines }, "sessions", "import", "-", ...words);
    expect(JSON.parse(imported.stdout)).toMatchObject({ sessions: 1, imported: 1, verified: true, trusted: true });
    expect(await snapshot(`${cwd}/files`)).toEqual(await snapshot(`sqlite:${cwd}/bough.db`));
    const again = await bough(cwd, "sessions", "import", "rich.jsonl", ...words);
    expect(JSON.parse(again.stdout)).toMatchObject({ sessions: 1, imported: 0 });
  });

  test("export overwrites nothing; import refuses what was cut off or changed", async () => {
    const cwd = await withRich();
    const { stdout } = await bough(cwd, "sessions", "export", "rich", "--store", url);
    const file = join(cwd, "rich.jsonl");
    writeFileSync(file, stdout);
    const taken = await bough(cwd, "sessions", "export", "rich", "--store", url, "--output", "rich.jsonl");
    expect(taken).toMatchObject({ code: 2, stderr: expect.stringContaining('"rich.jsonl" can\'t be written') });
    expect(readFileSync(file, "utf8")).toBe(stdout);
    writeFileSync(file, stdout.replace("On the fork", "On the work"));
    const changed = await bough(cwd, "sessions", "import", "rich.jsonl", "--store", "./files");
    expect(changed.stderr).toContain("hash of session");
    writeFileSync(file, stdout.slice(0, stdout.lastIndexOf('{"type":"end"')));
    const cut = await bough(cwd, "sessions", "import", "rich.jsonl", "--store", "./files");
    expect(cut.stderr).toContain("the file is truncated");
    expect([changed.code, cut.code]).toEqual([1, 1]);
    expect((await snapshot(`${cwd}/files`)).sessions).toEqual([]);
  });

  test("permissions lists what is remembered, and revokes it", async () => {
    const cwd = scratch();
    await fill(`sqlite:${cwd}/bough.db`, async (sessions) => {
      const kept = [
        { agentId: "helper", tool: "wipe", decision: "allow", by: "ada", at: 1 },
        { tool: "wipe", decision: "deny", at: 2 },
      ] as const;
      await sessions.createSession("s", { state: storedChoices(kept) });
    });
    const permissions = (...words: string[]) => bough(cwd, "sessions", "permissions", "s", "--store", url, ...words);
    expect((await permissions()).stdout).toMatch(/wipe +helper +allow +1970-01-01 00:00:00Z +ada\nwipe +\(agents/);
    const revoked = await permissions("--revoke", "wipe", "--agent", "helper", "--json");
    expect(JSON.parse(revoked.stdout)).toEqual({ revoked: 1 });
    expect(JSON.parse((await permissions("--json")).stdout)).toEqual({
      permissions: [{ tool: "wipe", decision: "deny", at: 2 }],
    });
    expect((await permissions("--revoke", "wipe")).stdout).toBe("Revoked 1 permission of wipe.\n");
    expect((await permissions()).stdout).toBe("No permissions are remembered in this session.\n");
    expect(await permissions("--agent", "helper")).toMatchObject({ code: 2 });
  });

  test("rm asks for --yes where nobody can be asked, and removes nothing when one of several is missing", async () => {
    const cwd = scratch();
    await fillMany(`sqlite:${cwd}/bough.db`, 3);
    const rm = (...words: string[]) => bough(cwd, "sessions", "rm", "--store", url, ...words);
    const left = async () => (await snapshot(`sqlite:${cwd}/bough.db`)).sessions.map(({ record }) => record.id);
    expect(await rm("session-1")).toMatchObject({ code: 2 });
    expect(await rm("session-1", "nobody", "--yes")).toMatchObject({ code: 1 });
    expect(await left()).toHaveLength(3);
    expect(await rm("session-1", "session-2", "--yes")).toMatchObject({ code: 0, stdout: "Deleted 2 sessions.\n" });
    expect(await left()).toEqual(["session-0"]);
  });

  test("prune removes nothing in a dry run, and what it said afterwards", async () => {
    const cwd = scratch();
    await fillMany(`sqlite:${cwd}/bough.db`, 3);
    await inStore(`sqlite:${cwd}/bough.db`, async (store, clock) => {
      clock.advance(Date.now() - clock.now());
      await store.updateSession("session-1", {});
    });
    const before = await snapshot(`sqlite:${cwd}/bough.db`);
    const prune = (...words: string[]) =>
      bough(cwd, "sessions", "prune", "--older-than", "30d", "--store", url, ...words);
    const dry = await prune("--dry-run", "--json");
    expect(JSON.parse(dry.stdout)).toEqual({ dryRun: true, count: 2, sessionIds: ["session-2", "session-0"] });
    expect(await prune("--dry-run")).toMatchObject({ code: 0, stdout: "session-2\nsession-0\n" });
    expect(await prune()).toMatchObject({ code: 2 });
    expect(await snapshot(`sqlite:${cwd}/bough.db`)).toEqual(before);
    expect(await prune("--yes")).toMatchObject({ code: 0, stdout: "Deleted 2 sessions.\n" });
    expect((await snapshot(`sqlite:${cwd}/bough.db`)).sessions).toEqual(before.sessions.slice(0, 1));
  });
});

describe("bough events tail", () => {
  test("prints the newest events, or all after a position", async () => {
    const cwd = await withRich();
    const tail = (...words: string[]) => bough(cwd, "events", "tail", "rich", ...words, "--store", url);
    const all = (await tail("main", "--after", "0", "--json")).stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(all.map(({ seq }) => seq)).toEqual(all.map((_, i) => i + 1));
    expect((await tail("main", "--after", String(all.length - 2))).stdout.trim().split("\n")).toHaveLength(2);
    const { stdout } = await tail("fork");
    expect(stdout).toMatch(/ {5}\d {2}2023-.*Z {2}branch\.forked /);
    expect((await tail()).stderr).toContain("specify one");
    expect((await tail("main", "--after", "0")).stdout).toMatch(
      /message\.added {9}\{"role":"user","content":"Question 0/,
    );
  });

  test("follows a branch that another process writes to, until Ctrl-C", async () => {
    const cwd = await withRich();
    const words = ["events", "tail", "rich", "fork", "--follow", "--json", "--store", url];
    const following = start(cwd, words);
    await following.says("On the fork");
    await fill(`sqlite:${cwd}/bough.db`, async (sessions) => {
      await sessions.appendTurn({ sessionId: "rich", branchId: "fork" }, [{ role: "user", content: "Seen from afar" }]);
    });
    await following.says("Seen from afar");
    following.child.kill("SIGINT");
    const { code, stdout, stderr } = await following.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const line of stdout.trim().split("\n")) JSON.parse(line);
  });
});

describe("bough doctor", () => {
  test("says what this machine and a store are like", async () => {
    const cwd = await withRich();
    const well = await bough(cwd, "doctor", url);
    expect(well.code).toBe(0);
    for (const what of ["SQLite", "Store", "Durability", "Contents"]) expect(well.stdout).toContain(`ok    ${what}`);
    expect(well.stdout).toMatch(/(ok|warn) {2,4}Node/);
    const { stdout } = await bough(cwd, "doctor", url, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ ok: true });
  });

  test("ends with 1 and says what to do when a store is held by another process, or is not there", async () => {
    const cwd = scratch();
    await inStore(join(cwd, "files"), async () => {
      const held = await bough(cwd, "doctor", "./files");
      expect(held.code).toBe(1);
      expect(held.stdout).toMatch(/FAIL {2}Store +\.\/files \(store_locked\)\n +→ .*Stop that process/);
    });
    expect(await bough(cwd, "doctor", "sqlite:none.db")).toMatchObject({ code: 1 });
    expect(existsSync(join(cwd, "none.db"))).toBe(false);
  });
});

describe("bough interactions", () => {
  test("lists the questions that wait, and answers one by its id", async () => {
    const cwd = scratch();
    const file = `sqlite:${cwd}/bough.db`;
    await fill(file, async (sessions) => {
      await sessions.createSession("s");
      const turn = await sessions.beginTurn({ sessionId: "s" }, "go");
      const opened = { type: "interaction.opened", at: 1, turnId: turn.turnId } as const;
      const request = { toolName: "deploy", input: {} };
      await turn.append({ ...opened, id: "one", kind: "permission", request, expiresAt: 4_000_000_000_000 });
      await turn.append({ ...opened, id: "two", kind: "clarification", request: { question: "Which?" } });
      await turn.release();
    });
    const store = ["--store", url];
    const listed = await bough(cwd, "interactions", "ls", ...store);
    expect(listed.stdout).toMatch(/one +permission +s +main .*2096-.*deploy/);
    const { interactions } = JSON.parse((await bough(cwd, "interactions", "ls", "--json", ...store)).stdout);
    expect(interactions).toMatchObject([
      { id: "one", expiresAt: 4_000_000_000_000 },
      { id: "two", sessionId: "s" },
    ]);
    expect(await bough(cwd, "interactions", "answer", "one", "perhaps", ...store)).toMatchObject({ code: 2 });
    expect(await bough(cwd, "interactions", "answer", "one", '{"aproved":true}', ...store)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no key "aproved"'),
    });
    expect(await bough(cwd, "interactions", "answer", "one", "y", "--by", "ann", ...store)).toMatchObject({ code: 0 });
    expect(await bough(cwd, "interactions", "answer", "two", "the", "larch", ...store)).toMatchObject({ code: 0 });
    expect(await bough(cwd, "interactions", "answer", "two", "again", ...store)).toMatchObject({ code: 1 });
    const { stdout } = await bough(cwd, "events", "tail", "s", "--json", ...store);
    const answers = stdout.split("\n").filter((line) => line.includes("interaction.answered"));
    expect(answers.map((line) => JSON.parse(line))).toMatchObject([
      { interactionId: "one", answer: { approved: true, choice: "once" }, by: "ann" },
      { interactionId: "two", answer: { answer: "the larch" } },
    ]);
    expect((await bough(cwd, "interactions", "ls", ...store)).stderr).toContain("No open questions.");
  });
});
