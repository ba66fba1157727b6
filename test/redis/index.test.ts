// The lists over all sessions lie apart from the sessions: whatever dies between the two, they show what is there.

import { describe, expect, test } from "vitest";
import { putBytes } from "../../src/testing/content.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import { hostileIds, manualClock } from "../../src/testing/index.ts";
import { facts, freshPrefix, givenMain, idsOf, keysOf, main, opened, raw, runChild, sharedServer } from "./kit.ts";
import { missing } from "./server.ts";

const branch = { id: "main", header: {}, events: [] };

describe.skipIf(missing)("the lists over all sessions", () => {
  const server = sharedServer();

  test("show what a process did that died before it told the index", async () => {
    const prefix = freshPrefix();
    const store = await opened(server().url, { prefix });
    for (const id of ["patched", "claimed", "deleted", "touched", "quiet"]) {
      await store.createSession({ id, metadata: { k: "old" }, state: {}, branch });
    }
    await store.close();
    expect(await runChild("die", server().url, prefix)).toMatchObject({ signal: "SIGKILL", errors: "" });
    const client = await raw(server().url);
    expect(await client.zCard(`{${prefix}}:marks`)).toBe(5);
    const other = await opened(server().url, { prefix });
    const listed = (await other.listSessions()).sessions;
    expect(listed.map(({ id }) => id).sort()).toEqual(["born", "claimed", "patched", "quiet", "touched"]);
    expect(listed[0]).toEqual(await other.getSession("touched"));
    expect(listed.map((each) => each.activeAt)).toEqual(listed.map((each) => each.activeAt).sort((a, b) => b - a));
    expect((await idsOf(other, { k: "new" })).sort()).toEqual(["born", "patched"]);
    expect((await idsOf(other, { k: "old" })).sort()).toEqual(["claimed", "quiet", "touched"]);
    expect(await other.listRuns()).toMatchObject([{ sessionId: "claimed", runId: "r" }]);
    expect((await other.maintain()).problems).toEqual([]);
  });

  test("a mark of a dead process goes when it is old, not before", async () => {
    const prefix = freshPrefix();
    const client = await raw(server().url);
    const store = await opened(server().url, { prefix });
    const marks = `{${prefix}}:marks`;
    await client.zAdd(marks, [
      { score: Date.now(), value: "somebody.1 s" },
      { score: Date.now() - 3_600_000, value: "somebody.2 t" },
    ]);
    expect(await idsOf(store)).toEqual([]);
    expect(await client.zRange(marks, 0, -1)).toEqual(["somebody.1 s"]);
  });

  test("an entry of a session that is not there is not shown, and goes", async () => {
    const prefix = freshPrefix();
    const client = await raw(server().url);
    const store = await opened(server().url, { prefix });
    await givenMain(store);
    await store.close();
    for (const key of await keysOf(client, prefix)) if (key.startsWith(`{${prefix}:`)) await client.del(key);
    const other = await opened(server().url, { prefix });
    expect(await idsOf(other)).toEqual([]);
    expect(await keysOf(client, prefix)).toEqual([`{${prefix}}:format`]);
  });

  test("a lost index is made again by maintain(), which says so", async () => {
    const prefix = freshPrefix();
    const client = await raw(server().url);
    const store = await opened(server().url, { prefix });
    for (const id of ["a", "b{}:%", "*"]) {
      await store.createSession({ id, metadata: { of: id }, state: {}, branch });
    }
    await claimSlot(store, { sessionId: "a", branchId: "main" }, { runId: "r", owner: "o", leaseMs: 1 });
    await store.close();
    for (const key of await keysOf(client, prefix)) if (key.startsWith(`{${prefix}}`)) await client.del(key);
    const other = await opened(server().url, { prefix });
    expect(await idsOf(other)).toEqual([]);
    const { sessions, problems } = await other.maintain();
    expect({ sessions, codes: problems.map(({ code }) => code) }).toEqual({
      sessions: 3,
      codes: ["repaired", "repaired", "repaired"],
    });
    expect((await idsOf(other)).sort()).toEqual(["*", "a", "b{}:%"]);
    expect(await idsOf(other, { of: "b{}:%" })).toEqual(["b{}:%"]);
    expect(await other.listRuns()).toHaveLength(1);
    expect((await other.maintain()).problems).toEqual([]);
  });

  test("keys of a session that is gone are an orphan, and damage is told", async () => {
    const prefix = freshPrefix();
    const client = await raw(server().url);
    const store = await opened(server().url, { prefix });
    await givenMain(store, facts("e", 3));
    await client.hSet(`{${prefix}:gone}:b:1`, "id", "main");
    const other = { sessionId: "s", branchId: "other" };
    await store.createBranch("s", { id: "other", header: {}, events: facts("o", 1) });
    await client.lPop(`{${prefix}:s}:log:1`);
    await store.createSession({ id: "odd", metadata: {}, state: {}, branch });
    await client.set(`{${prefix}:odd}:log:1`, "another program's");
    const { problems } = await store.maintain();
    expect(problems.map(({ code, sessionId }) => [code, sessionId]).sort()).toEqual([
      ["corrupt", "odd"],
      ["corrupt", "s"],
      ["orphan", "gone"],
    ]);
    await expect(store.read(main)).rejects.toMatchObject({ code: "store_corrupt", data: main });
    expect(await store.read(other)).toHaveLength(1);
  });

  test("handles that change sessions at once leave an index that is right", async () => {
    const prefix = freshPrefix();
    const handles = await Promise.all([1, 2, 3].map(() => opened(server().url, { prefix })));
    const ids = ["a", "b", "c", "d"];
    await Promise.all(
      handles.map(async (store, h) => {
        for (let i = 0; i < 30; i++) {
          const id = ids[(i + h) % ids.length]!;
          const metadata = { k: String(i % 3) };
          await store.createSession({ id, metadata, state: {}, branch }).catch(() => {});
          await store.updateSession(id, { metadata: { k: String((i + h) % 3) } }).catch(() => {});
          if (i % 5 === 0) await idsOf(store);
          if (i % 3 === 0) await store.deleteSession(id).catch(() => {});
        }
      }),
    );
    for (const store of handles) await store.close();
    const client = await raw(server().url);
    expect(await client.zCard(`{${prefix}}:marks`)).toBe(0);
    const store = await opened(server().url, { prefix });
    const listed = (await store.listSessions()).sessions;
    for (const id of ids) expect(listed.find((session) => session.id === id)).toEqual(await store.getSession(id));
    for (const k of ["0", "1", "2"]) {
      expect(await idsOf(store, { k })).toEqual(listed.filter(({ metadata }) => metadata.k === k).map(({ id }) => id));
    }
    expect((await store.maintain()).problems).toEqual([]);
  });

  test("many sessions of one moment are paged through", async () => {
    const store = await opened(server().url, { prefix: freshPrefix(), clock: manualClock() });
    const ids = Array.from({ length: 40 }, (_, i) => `s${String(i).padStart(2, "0")}`);
    await Promise.all(ids.map((id) => store.createSession({ id, metadata: {}, state: {}, branch })));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.listSessions({ limit: 3, ...(cursor !== undefined && { cursor }) });
      seen.push(...page.sessions.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(seen).toEqual(ids);
  });
});

describe.skipIf(missing)("what is deleted", () => {
  const server = sharedServer();

  test("leaves no key behind, whatever the ids", async () => {
    const prefix = freshPrefix();
    const client = await raw(server().url);
    const store = await opened(server().url, { prefix });
    for (const id of hostileIds) {
      const ref = { sessionId: id, branchId: id };
      await store.createSession({
        id,
        metadata: { [`k${id}`]: id },
        state: { x: 1 },
        branch: { id, header: { h: id }, events: facts(id, 2) },
      });
      const before = await keysOf(client, prefix);
      const fork = { sessionId: id, branchId: `${id}2` };
      const parent = { branchId: id, seq: 1 };
      await store.createBranch(id, { id: fork.branchId, header: {}, events: facts("f", 1), parent });
      for (const each of [ref, fork]) {
        const { epoch } = await claimSlot(store, each, { runId: id, owner: id, leaseMs: 60_000 });
        await store.saveCheckpoint(each, { id, seq: 1, data: {} });
        await store.segments!.save(each, { to: 2, lines: [id] });
        await putBytes(store, each, { bytes: Buffer.from(id), mediaType: "text/plain" });
        await store.append(each, facts("g", 1), { epoch, release: true });
      }
      await store.deleteBranch(fork);
      const sessions = (await keysOf(client, prefix)).filter((key) => key.startsWith(`{${prefix}:`));
      const added = sessions.filter((key) => !before.includes(key));
      // What the root branch got besides: checkpoints, segments, content.
      expect(added.filter((key) => !/:(cp|segs|seg|refs):1$|:(blobs|uses)$|:chunks:/.test(key))).toEqual([]);
    }
    for (const id of hostileIds) await store.deleteSession(id);
    await store.close();
    expect(await keysOf(client, prefix)).toEqual([`{${prefix}}:format`]);
  });

  test("sessions and prefixes that look alike have no key in common", async () => {
    const client = await raw(server().url);
    const pairs = [
      ["a", "b:c"],
      ["a:b", "c"],
      ["a", "b%3ac"],
      ["a%3ab", "c"],
      ["a", "b}:log:1"],
      ["a", "b}"],
      ["a", "{b"],
    ] as const;
    for (const [i, [prefix, id]] of pairs.entries()) {
      const store = await opened(server().url, { prefix });
      await store.createSession({ id, metadata: { i }, state: {}, branch });
    }
    for (const [i, [prefix, id]] of pairs.entries()) {
      const store = await opened(server().url, { prefix });
      expect(await store.getSession(id)).toMatchObject({ id, metadata: { i } });
      expect((await idsOf(store)).sort()).toEqual(
        pairs
          .filter(([other]) => other === prefix)
          .map(([, each]) => each)
          .sort(),
      );
      expect((await store.maintain()).problems).toEqual([]);
    }
    await client.flushAll();
  });
});
