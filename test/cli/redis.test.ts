import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missing, type Server, startServer } from "../redis/server.ts";
import { bough, fill, fillRich, scratch, snapshot } from "./kit.ts";

describe.skipIf(missing)("bough on Redis", () => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer({ appendonly: "yes", appendfsync: "everysec" });
  });
  afterAll(() => server?.dispose());

  test("copies from SQLite to it and back, with nothing changed", async () => {
    const cwd = scratch();
    await fill(`sqlite:${cwd}/a.db`, (sessions, tick) => fillRich(sessions, tick, "rich"));
    const copy = (from: string, to: string) => bough(cwd, "store", "copy", "--from", from, "--to", to, "--json");
    expect(JSON.parse((await copy("sqlite:a.db", server.url)).stdout)).toMatchObject({ copied: 1, otherTimes: 0 });
    expect(JSON.parse((await copy("sqlite:a.db", server.url)).stdout)).toMatchObject({ copied: 0, otherTimes: 0 });
    expect(JSON.parse((await copy(server.url, "./files")).stdout)).toMatchObject({ copied: 1, verified: true });
    expect(await snapshot(`${cwd}/files`)).toEqual(await snapshot(`sqlite:${cwd}/a.db`));
  });

  test("is not made by those who only look, and the URL says which keys are meant", async () => {
    const cwd = scratch();
    const [one, other] = [`${server.url}?prefix=one`, `${server.url}?prefix=other`];
    const { code, stderr } = await bough(cwd, "store", "check", one);
    expect({ code, stderr }).toEqual({ code: 1, stderr: `error: There is no store at ${one}. (store_unsupported)\n` });
    expect((await bough(cwd, "store", "migrate", one)).stdout).toMatch(/created \(version 4\)\n$/);
    await fill(one, (sessions, tick) => fillRich(sessions, tick, "rich"));
    expect(await bough(cwd, "store", "copy", "--from", one, "--to", other)).toMatchObject({ code: 0 });
    expect(await snapshot(other)).toEqual(await snapshot(one));
    expect((await bough(cwd, "store", "check", other)).stdout).toMatch(/^1 session,/);
  });

  test("says in one line what can be lost", async () => {
    const { code, stderr } = await bough(scratch(), "sessions", "ls", "--store", server.url, "--json");
    expect(code).toBe(0);
    expect(stderr).toMatch(/^warning: A power failure can lose [^\n]+\n$/);
    expect((await bough(scratch(), "doctor", server.url)).stdout).toMatch(/warn {2}Durability {2}A power failure/);
  });
});
