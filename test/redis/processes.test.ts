import { describe, expect, test, vi } from "vitest";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import { facts, freshPrefix, givenMain, main, opened, raw, runChild, sharedServer } from "./kit.ts";
import { missing } from "./server.ts";

describe.skipIf(missing)("processes on one server", () => {
  const server = sharedServer();

  test("append to one branch at once without a gap or a loss, and a watcher hears of it", async () => {
    const prefix = freshPrefix();
    const store = await opened(server().url, { prefix });
    await givenMain(store);
    const heard = store.watch(main, 0, new AbortController().signal);
    const ended = await Promise.all(["a", "b"].map((name) => runChild("append", server().url, prefix, name, "60")));
    await heard;
    for (const each of ended) expect(each).toMatchObject({ code: 0, errors: "" });
    const log = await store.read(main, { limit: 10_000 });
    expect(log.map(({ seq }) => seq)).toEqual(Array.from({ length: 2 * 60 * 2 }, (_, i) => i + 1));
    for (const { first, ids } of ended.flatMap(({ lines }) => lines)) {
      expect(log.slice(first - 1, first - 1 + ids.length).map(({ id }) => id)).toEqual(ids);
    }
  });

  test("a claim taken over by one handle fences the other's epoch out", async () => {
    const prefix = freshPrefix();
    const [one, two] = [await opened(server().url, { prefix }), await opened(server().url, { prefix })];
    await givenMain(one);
    const old = await claimSlot(one, main, { runId: "r1", owner: "one", leaseMs: 60_000 });
    const taken = await claimSlot(two, main, { runId: "r2", owner: "two", leaseMs: 60_000, over: old.epoch });
    expect(taken.epoch).toBeGreaterThan(old.epoch);
    const late = one.append(main, facts("old", 1), { epoch: old.epoch });
    await expect(late).rejects.toMatchObject({ code: "epoch_stale" });
    expect(await two.append(main, facts("new", 1), { epoch: taken.epoch })).toEqual({ first: 3, last: 3 });
    expect(await one.read(main)).toHaveLength(3);
  });

  test("databases of one server don't hear each other's live texts, although their sessions are called alike", async () => {
    const prefix = freshPrefix();
    const [one, two, other, another] = await Promise.all(
      ["/0", "/0", "/1", "/1"].map((path) => opened(`${server().url}${path}`, { prefix })),
    );
    const heard: string[] = [];
    const hear = (name: string) => (text: string) => heard.push(`${name} ${text}`);
    await two!.live!.hear(main, hear("two"), new AbortController().signal);
    await other!.live!.hear(main, hear("other"), new AbortController().signal);
    await one!.live!.send(main, "of 0");
    await another!.live!.send(main, "of 1");
    await vi.waitFor(() => expect(heard).toEqual(expect.arrayContaining(["two of 0", "other of 1"])));
    expect(heard).toHaveLength(2);
  });

  test("an epoch of a deleted session does not write to one created again under its id", async () => {
    const store = await opened(server().url, { prefix: freshPrefix() });
    await givenMain(store);
    const old = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 0 });
    await store.deleteSession("s");
    await givenMain(store);
    const late = store.append(main, facts("old", 1), { epoch: old.epoch });
    await expect(late).rejects.toMatchObject({ code: "epoch_stale" });
    const { epoch } = await claimSlot(store, main, { runId: "r", owner: "o", leaseMs: 0 });
    expect(epoch).toBeGreaterThan(old.epoch);
  });
});

describe.skipIf(missing)("a server in cluster mode", () => {
  const server = sharedServer({ "cluster-enabled": "yes" });

  // A cluster refuses a script that touches keys of two slots, so whatever works here keeps to one.
  test("every operation keeps to the keys of one session, or to those of the index", async () => {
    const { url } = server();
    const client = await raw(url);
    await client.sendCommand(["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    while (!String(await client.sendCommand(["CLUSTER", "INFO"])).includes("cluster_state:ok")) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const store = await opened(url);
    for (const id of ["s", "t"]) {
      const branch = { id: "main", header: { h: 1 }, events: facts("e", 3) };
      await store.createSession({ id, metadata: { of: id }, state: { a: 1 }, branch });
      const ref = { sessionId: id, branchId: "main" };
      const fork = { sessionId: id, branchId: "fork" };
      await store.createBranch(id, { id: "fork", header: {}, events: [], parent: { branchId: "main", seq: 2 } });
      const { claim } = await store.append(fork, facts("f", 1), { claim: { runId: "r", owner: "o", leaseMs: 60_000 } });
      await store.renewRun(fork, { epoch: claim!.epoch, leaseMs: 1000 });
      await store.saveCheckpoint(fork, { id: "c", seq: 1, data: {} });
      await store.segments!.save(ref, { to: 2, lines: ["x"] });
      const stored = await putBytes(store, ref, { bytes: new Uint8Array(3), mediaType: "a/b", seq: 2 });
      await store.updateSession(id, { metadata: { more: "x" } });
      expect(await store.read(fork)).toHaveLength(3);
      expect(await store.segments!.get(fork, 9)).toEqual({ to: 2, lines: ["x"] });
      expect((await getBytes(store, fork, stored.id))!.bytes).toHaveLength(3);
    }
    expect(await store.listRuns()).toHaveLength(2);
    expect((await store.listSessions({ metadata: { of: "t", more: "x" } })).sessions).toHaveLength(1);
    for (const { sessionId, branchId, epoch } of await store.listRuns()) {
      expect(await store.releaseRun({ sessionId, branchId }, { epoch })).toBe(true);
    }
    expect(await store.deleteBranch({ sessionId: "s", branchId: "main" }, { recursive: true })).toEqual([
      "main",
      "fork",
    ]);
    expect(await store.maintain()).toEqual({ sessions: 2, branches: 2, events: 4, problems: [] });
    await store.deleteSession("s");
    expect((await store.listSessions()).sessions.map(({ id }) => id)).toEqual(["t"]);
  });
});
