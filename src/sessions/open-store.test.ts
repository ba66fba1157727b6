import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { memoryStore } from "../stores/memory/index.ts";
import { openSessions } from "./index.ts";

describe("the store that an option means", () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "bough-open-"));
  });
  afterAll(() => rm(directory, { recursive: true }));

  test("is memory when nothing is said, and an object as it is", async () => {
    for (const option of [undefined, "memory:"]) {
      const sessions = await openSessions(option);
      expect(sessions.store.kind).toBe("memory");
      await sessions.close();
      await expect(sessions.getSession("s")).rejects.toMatchObject({ code: "store_closed" });
    }
    const store = memoryStore();
    expect((await openSessions(store)).store).toBe(store);
  });

  test("is a directory for a path, and a file for a sqlite URL; what was written is there again", async () => {
    const options = [
      join(directory, "plain"),
      `file:${join(directory, "url")}`,
      `sqlite:${join(directory, "a.db")}`,
      `sqlite://${join(directory, "b.db")}`,
    ];
    for (const option of options) {
      const first = await openSessions(option);
      await first.createSession("s");
      await first.appendTurn({ sessionId: "s" }, [{ role: "user", content: "hello" }]);
      await first.close();
      const second = await openSessions(option);
      expect((await second.loadBranch("s")).messageCount).toBe(1);
      await second.close();
    }
    const names = await readdir(directory);
    expect(names).toEqual(expect.arrayContaining(["plain", "url", "a.db", "b.db"]));
  });

  test("is refused for a scheme nobody serves", async () => {
    for (const store of ["mysql://host/db", "http://host"]) {
      await expect(openSessions(store)).rejects.toMatchObject({ code: "store_unsupported", data: { store } });
    }
  });
});
