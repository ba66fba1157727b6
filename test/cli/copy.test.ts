import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { StoreSnapshot } from "../../src/testing/index.ts";
import { bough, fill, fillMany, fillRich, inStore, scratch, snapshot, start } from "./kit.ts";

/** Everything but run slots, which are not copied. */
const withoutRuns = ({ sessions }: StoreSnapshot) => sessions;

async function richStore(url: string): Promise<void> {
  await fill(url, async (sessions, tick) => {
    await fillRich(sessions, tick, "rich");
    tick();
    await sessions.createSession("plain");
    tick();
    await fillRich(sessions, tick, "ünïcode / ..");
  });
}

describe("bough store copy", () => {
  test("keeps everything, byte for byte, from SQLite to files and back", async () => {
    const cwd = scratch();
    await richStore(`sqlite:${cwd}/a.db`);
    const before = await snapshot(`sqlite:${cwd}/a.db`);

    const there = await bough(cwd, "store", "copy", "--from", "sqlite:a.db", "--to", "./files");
    const back = await bough(cwd, "store", "copy", "--from", "./files", "--to", "sqlite:b.db");

    expect(there).toMatchObject({ code: 0 });
    expect(there.stdout).toMatch(
      /^Copied and verified: 3 sessions, 9 branches, \d+ facts, 2 checkpoints, 4 contents\.\n$/,
    );
    expect(back).toMatchObject({ code: 0 });
    expect(withoutRuns(await snapshot(`${cwd}/files`))).toEqual(withoutRuns(before));
    expect(withoutRuns(await snapshot(`sqlite:${cwd}/b.db`))).toEqual(withoutRuns(before));
  });

  test("copies sessions whose first branch is gone, and sessions without any", async () => {
    const cwd = scratch();
    await inStore(`sqlite:${cwd}/a.db`, async (store, clock) => {
      for (const id of ["headless", "empty"]) {
        clock.advance(1000);
        const branch = { id: "main", header: {}, events: [] };
        await store.createSession({ id, metadata: {}, state: {}, branch });
        clock.advance(1000);
        if (id === "headless") await store.createBranch(id, { id: "later", header: { a: null }, events: [] });
        clock.advance(1000);
        await store.deleteBranch({ sessionId: id, branchId: "main" });
      }
    });
    expect(await bough(cwd, "store", "copy", "--from", "sqlite:a.db", "--to", "./files")).toMatchObject({ code: 0 });
    expect(await snapshot(`${cwd}/files`)).toEqual(await snapshot(`sqlite:${cwd}/a.db`));
  });

  test("copies only the sessions that are named", async () => {
    const cwd = scratch();
    await richStore(`sqlite:${cwd}/a.db`);
    const copy = await bough(
      cwd,
      "store",
      "copy",
      "--from",
      "sqlite:a.db",
      "--to",
      "./b",
      "--sessions",
      "plain",
      "--json",
    );
    expect(JSON.parse(copy.stdout)).toMatchObject({ sessions: 1, copied: 1, verified: true, otherTimes: 0 });
    expect((await snapshot(`${cwd}/b`)).sessions.map(({ record }) => record.id)).toEqual(["plain"]);
    const missing = await bough(cwd, "store", "copy", "--from", "sqlite:a.db", "--to", "./b", "--sessions", "nobody");
    expect(missing).toMatchObject({ code: 1, stdout: "" });
    expect(missing.stderr).toContain('There is no session "nobody"');
  });

  test.each(["SIGKILL", "SIGINT"] as const)(
    "goes on after %s in the middle, and verifies all of it",
    async (signal) => {
      const cwd = scratch();
      await fillMany(`sqlite:${cwd}/a.db`, 200);
      const words = ["store", "copy", "--from", "sqlite:a.db", "--to", "./files"];
      const first = start(cwd, words);
      await first.says("copied 20 of 200 sessions");
      first.child.kill(signal);
      const stopped = await first.ended;
      expect(stopped.stdout).toBe("");
      if (signal === "SIGINT") {
        expect(stopped.code).toBe(130);
        expect(stopped.stderr).toContain("Stopped. Run the same command again to continue.");
      }

      const again = await bough(cwd, ...words, "--json");

      const report = JSON.parse(again.stdout);
      expect(again.code).toBe(0);
      expect(report).toMatchObject({ verified: true, sessions: 200, branches: 400, otherTimes: 0 });
      expect(report.copied).toBeGreaterThan(0);
      expect(report.copied).toBeLessThanOrEqual(180);
      expect(await snapshot(`${cwd}/files`)).toEqual(await snapshot(`sqlite:${cwd}/a.db`));
    },
  );

  test("writes nothing when all is there, and follows a source that went on", async () => {
    const cwd = scratch();
    await richStore(`sqlite:${cwd}/a.db`);
    const copy = () => bough(cwd, "store", "copy", "--from", "sqlite:a.db", "--to", "./files", "--json");
    expect(JSON.parse((await copy()).stdout)).toMatchObject({ sessions: 3, copied: 3 });
    expect(JSON.parse((await copy()).stdout)).toMatchObject({ sessions: 3, copied: 0 });
    await fill(`sqlite:${cwd}/a.db`, async (sessions, tick) => {
      for (let i = 0; i < 100; i++) tick();
      await sessions.appendTurn({ sessionId: "rich", branchId: "fork" }, [{ role: "user", content: "More" }]);
      tick();
      await sessions.updateSession("plain", { metadata: { now: "named" } });
    });
    expect(JSON.parse((await copy()).stdout)).toMatchObject({ sessions: 3, copied: 2 });
    expect(await snapshot(`${cwd}/files`)).toEqual(await snapshot(`sqlite:${cwd}/a.db`));
  });

  test.each([
    ["facts there that the source lacks", "sqlite:b.db", 'branch "main" ends at'],
    ["other facts under the same numbers", "sqlite:both.db", "fact "],
  ])("refuses %s, and leaves them alone", async (_, changed, why) => {
    const cwd = scratch();
    await richStore(`sqlite:${cwd}/a.db`);
    const differ = async (url: string, content: string) =>
      fill(url, async (sessions) => {
        await sessions.appendTurn({ sessionId: "plain" }, [{ role: "user", content }]);
      });
    await differ(`sqlite:${cwd}/a.db`, "In both");
    await bough(cwd, "store", "copy", "--from", "sqlite:a.db", "--to", "sqlite:b.db");
    await differ(`sqlite:${cwd}/b.db`, "Only here");
    if (changed === "sqlite:both.db") await differ(`sqlite:${cwd}/a.db`, "Only there");
    const before = await snapshot(`sqlite:${cwd}/b.db`);

    const refused = await bough(cwd, "store", "copy", "--from", "sqlite:a.db", "--to", "sqlite:b.db");

    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain('Session "plain" already exists in the target and differs');
    expect(refused.stderr).toContain(why);
    expect(await snapshot(`sqlite:${cwd}/b.db`)).toEqual(before);
  });

  test("refuses a session on which a run works", async () => {
    const cwd = scratch();
    await fill(`sqlite:${cwd}/a.db`, async (sessions) => {
      await sessions.createSession("busy");
      const leaseMs = Date.now();
      await sessions.beginTurn({ sessionId: "busy" }, "Working", { leaseMs });
    });
    const refused = await bough(cwd, "store", "copy", "--from", "sqlite:a.db", "--to", "./files");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain('Session "busy" has an active run on branch');
  });

  test("refuses to copy a store onto itself, from memory, and from where there is none", async () => {
    const cwd = scratch();
    mkdirSync(join(cwd, "folder"));
    const copy = (from: string, to: string) => bough(cwd, "store", "copy", "--from", from, "--to", to);
    expect(await copy("./x", `file:${cwd}/x`)).toMatchObject({ code: 2 });
    expect(await copy("memory:", "./x")).toMatchObject({ code: 2 });
    expect((await copy("sqlite:none.db", "./x")).stderr).toContain("There is no store at");
    expect((await copy("./folder", "./x")).stderr).toContain("There is no store at");
  });
});
