import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock as clock } from "../base/clock.ts";
import { memoryStore } from "../stores/memory/index.ts";
import { openSessions } from "./index.ts";
import { lazyStore } from "./lazy-store.ts";
import { pathOf } from "./open-store.ts";

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

  test("is in the working directory for a path without a root, with slashes before it or not", () => {
    const paths = {
      "sqlite:./a.db": "./a.db",
      "sqlite://./a.db": "./a.db",
      "sqlite://a.db": "a.db",
      "file://dir": "dir",
    };
    for (const [store, path] of Object.entries(paths)) expect(pathOf(store)).toBe(path);
    expect(pathOf("sqlite:///a.db")).toBe("/a.db");
    expect(pathOf("./dir")).toBe("./dir");
  });

  test("is refused when it names no place, or one that can't be opened", async () => {
    for (const store of ["", " ", "file:", "file://", "sqlite:", "sqlite://"]) {
      await expect(openSessions(store)).rejects.toMatchObject({ code: "store_unsupported", data: { store } });
    }
    for (const store of [null, 5, true] as never[]) {
      await expect(openSessions(store)).rejects.toMatchObject({ code: "store_unsupported" });
    }
    const path = join(directory, "no", "such", "a.db");
    const refusal = { code: "store_unsupported", message: expect.stringContaining(path), data: { path } };
    await expect(openSessions(`sqlite:${path}`)).rejects.toMatchObject(refusal);
  });

  test("is refused for a scheme nobody serves", async () => {
    for (const store of ["mysql://host/db", "http://host"]) {
      await expect(openSessions(store)).rejects.toMatchObject({ code: "store_unsupported", data: { store } });
    }
    await expect(openSessions("mysql://ada:S3cret@host/db")).rejects.toMatchObject({
      data: { store: "mysql://ada:***@host/db" },
    });
  });
});

describe("a store that is opened when it is used", () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "bough-lazy-"));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const born = (id: string) => ({ id, metadata: {}, state: {}, branch: { id: "main", header: {}, events: [] } });

  test("leaves no trace before that, and none when it is closed unused", async () => {
    const path = join(directory, "unused.db");
    const store = lazyStore(`sqlite:${path}`, { clock });
    expect(store.kind).toBe("unopened");
    expect(await Promise.resolve(store)).toBe(store);
    await store.close();
    expect(existsSync(path)).toBe(false);
    await expect(store.getSession("s")).rejects.toMatchObject({ code: "store_closed" });
    expect(existsSync(path)).toBe(false);
    await store.close();
  });

  test("is opened once, however many use it at first", async () => {
    const store = lazyStore(join(directory, "shared"), { clock });
    await Promise.all(["a", "b", "c"].map((id) => store.createSession(born(id))));
    expect(store.kind).toBe("file");
    expect((await store.listSessions()).sessions).toHaveLength(3);
    await store.close();
    await expect(store.getSession("a")).rejects.toMatchObject({ code: "store_closed" });
  });

  test("LazyStore-2: asking for content opens it; from then on it has the parts of the store behind it", async () => {
    const store = lazyStore(join(directory, "parts"), { clock });
    const main = { sessionId: "s", branchId: "main" };
    expect([store.segments, store.live]).toEqual([undefined, undefined]);
    await expect(store.content!.list(main)).rejects.toMatchObject({ code: "branch_not_found" });
    expect(store.kind).toBe("file");
    await store.createSession(born("s"));
    await store.segments!.save(main, { to: 0, lines: ["x"] });
    expect(await store.content!.list(main)).toEqual([]);
    expect(store.live).toBeUndefined();
    await store.close();
    await expect(store.content!.list(main)).rejects.toMatchObject({ code: "store_closed" });
  });

  test("says to each who uses it why it can't be opened, and is tried again by the next", async () => {
    const path = join(directory, "taken");
    await writeFile(path, "a file where the directory should be");
    const store = lazyStore(path, { clock });
    const uses = await Promise.allSettled([store.getSession("s"), store.listSessions()]);
    expect(uses.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await rm(path);
    await store.createSession(born("s"));
    expect(await store.getSession("s")).toMatchObject({ id: "s" });
    await store.close();
  });

  test("that can't be opened has nothing to close", async () => {
    const store = lazyStore("mysql://host/db", { clock });
    const use = store.getSession("s");
    const close = store.close();
    await expect(use).rejects.toMatchObject({ code: "store_unsupported" });
    await close;
  });

  test("that is closed while it opens is closed", async () => {
    const path = join(directory, "hasty");
    const store = lazyStore(path, { clock });
    const use = store.createSession(born("s")).catch((error: unknown) => error);
    await store.close();
    await use;
    await expect(store.getSession("s")).rejects.toMatchObject({ code: "store_closed" });
    // Nobody holds the directory any more.
    const next = lazyStore(path, { clock });
    await next.listSessions();
    await next.close();
  });
});
