// bough audit: the log of a server, from the server and from its store.

import { expect, test } from "vitest";
import { bough, boughWith, scratch, start } from "./kit.ts";
import { serveIn } from "./serving.ts";

test("bough audit shows who did what, over a server and from its store", async () => {
  const cwd = scratch();
  const { url, token, ask, started } = await serveIn(cwd);
  expect((await ask("POST", "/sessions", { sessionId: "s" })).status).toBe(201);
  expect((await ask("POST", "/sessions", { sessionId: "s" })).status).toBe(409);
  await fetch(`${url}/sessions/s`, { method: "DELETE" });
  const over = await boughWith(cwd, { env: { BOUGH_TOKEN: token } }, "audit", "--url", url, "--json");
  expect(over).toMatchObject({ code: 0, stderr: "" });
  const records = over.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(records).toMatchObject([
    { action: "createSession", status: 201, sessionId: "s", credential: "token", address: "127.0.0.1" },
    { action: "createSession", status: 409, code: "session_exists" },
    { action: "deleteSession", status: 401, code: "unauthorized" },
  ]);
  const refused = await bough(cwd, "audit", "--url", `${url}/#token=${token}`, "--refused", "--limit", "1");
  expect(refused.stdout).toMatch(/^\d{4}-\d\d-\d\d .*401 unauthorized +deleteSession/);
  expect(refused.stdout.trimEnd().split("\n")).toHaveLength(1);
  started.child.kill("SIGTERM");
  await started.ended;
  const kept = await bough(cwd, "audit", "--action", "createSession", "--json");
  expect(
    kept.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).status),
  ).toEqual([201, 409]);
  expect((await bough(cwd, "sessions", "ls", "--json")).stdout).not.toContain("~audit");
});

test("bough audit --follow shows what comes", async () => {
  const cwd = scratch();
  const { ask } = await serveIn(cwd);
  await ask("POST", "/sessions", { sessionId: "first" });
  const following = start(cwd, ["audit", "--store", "sqlite:./.bough/bough.db", "-f"]);
  await following.says("sessionId=first");
  await ask("POST", "/sessions", { sessionId: "second" });
  await following.says("sessionId=second");
  following.child.kill("SIGINT");
  expect((await following.ended).code).toBe(0);
});

test.each([
  [["--url", "ftp://x"], "http:// or https://"],
  [["--url", "http://127.0.0.1:1", "--store", "memory:"], "--url can't be combined with --store"],
  [["--token", "t"], "--token requires --url"],
  [["--limit", "many"], '--limit must be an integer ≥ 0, not "many".'],
])("bough audit %j is refused with the reason", async (words, reason) => {
  const cwd = scratch();
  await bough(cwd, "store", "migrate", "sqlite:./.bough/bough.db");
  const { code, stderr } = await bough(cwd, "audit", ...words);
  expect(code).toBe(2);
  expect(stderr).toContain(reason);
});
