import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { BranchRef, Store } from "../../src/log/index.ts";
import { getBytes, putBytes } from "../../src/testing/content.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import { facts, freshPath, givenMain, main, opened, raw } from "./kit.ts";

async function rowCounts(path: string): Promise<Record<string, number>> {
  const sql = await raw(path);
  const tables = sql.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
  const count = (name: string) => sql.get<{ n: number }>(`SELECT count(*) AS n FROM ${name}`)!.n;
  return Object.fromEntries(tables.map(({ name }) => [name, count(name)]));
}

const idOf = (text: string) => createHash("sha256").update(text).digest("hex");

async function giveSomethingOfEverything(store: Store, ref: BranchRef): Promise<void> {
  const { branchId } = ref;
  const bytes = new TextEncoder().encode("shared");
  await store.append(ref, facts(`${branchId}-`, 3), { header: { name: branchId } });
  await store.segments!.save(ref, { to: 2, lines: ["a segment"] });
  await store.saveCheckpoint(ref, { id: "c", seq: 1, data: {} });
  await putBytes(store, ref, { bytes, mediaType: "text/plain" });
  await putBytes(store, ref, { bytes: Buffer.from(branchId), mediaType: "text/plain", name: "n" });
  const { epoch } = await claimSlot(store, ref, { runId: "r", owner: "o", leaseMs: 60_000 });
  await store.releaseRun(ref, { epoch });
}

const fork = { sessionId: "s", branchId: "fork" };
const grandchild = { sessionId: "s", branchId: "grandchild" };

test("a deleted branch, a deleted content and a deleted session leave no row behind", async () => {
  const path = await freshPath();
  const store = await opened(path);
  const empty = await rowCounts(path);
  await store.createSession({
    id: "s",
    metadata: { user: "u", tags: ["a"] },
    state: { plan: 1 },
    branch: { id: "main", header: {}, events: facts("e", 2) },
  });
  await giveSomethingOfEverything(store, main);
  const before = await rowCounts(path);
  await store.createBranch("s", { id: "fork", header: {}, events: [], parent: { branchId: "main", seq: 2 } });
  await giveSomethingOfEverything(store, fork);
  await store.createBranch("s", { id: "grandchild", header: {}, events: [], parent: { branchId: "fork", seq: 3 } });
  await giveSomethingOfEverything(store, grandchild);
  expect(await rowCounts(path)).not.toEqual(before);
  await store.deleteBranch(fork, { recursive: true });
  expect(await rowCounts(path)).toEqual(before);
  await store.content!.delete(main, idOf("shared"));
  expect(await rowCounts(path)).toMatchObject({ contents: 1, content_refs: 1 });
  await store.updateSession("s", { metadata: { user: "other", tags: null } });
  expect(await rowCounts(path)).toMatchObject({ session_metadata: 1 });
  await store.deleteSession("s");
  expect(await rowCounts(path)).toEqual({ ...empty, sqlite_sequence: 2 });
  expect((await store.maintain()).problems).toEqual([]);
});

test("a chain of 10,000 forks can be read at both ends and through the middle", async () => {
  const store = await opened(":memory:");
  await givenMain(store, facts("root", 1));
  await store.segments!.save(main, { to: 1, lines: ["the root's"] });
  await putBytes(store, main, { bytes: new Uint8Array([1]), mediaType: "x" });
  const depth = 10_000;
  const parents = ["main", ...Array.from({ length: depth }, (_, i) => `b${i}`)];
  await Promise.all(
    parents.slice(1).map((id, i) =>
      store.createBranch("s", {
        id,
        header: {},
        events: [{ id: `of ${id}`, data: `${i}` }],
        parent: { branchId: parents[i]!, seq: i + 1 },
      }),
    ),
  );
  const last = { sessionId: "s", branchId: parents.at(-1)! };
  const whole = await store.read(last, { limit: 20_000 });
  expect(whole.map(({ seq }) => seq)).toEqual(Array.from({ length: depth + 1 }, (_, i) => i + 1));
  expect(whole.slice(1).map(({ data }) => data)).toEqual(Array.from({ length: depth }, (_, i) => `${i}`));
  expect(await store.read(last, { limit: 5 })).toEqual(whole.slice(0, 5));
  expect(await store.read(last, { after: 5000, limit: 5 })).toEqual(whole.slice(5000, 5005));
  expect(await store.read(last, { limit: 5, reverse: true })).toEqual(whole.slice(-5).reverse());
  expect(await store.segments!.get(last, 9000)).toEqual({ to: 1, lines: ["the root's"] });
  expect(await getBytes(store, last, idOf("\u0001"))).toMatchObject({ bytes: new Uint8Array([1]) });
  expect(await store.content!.list(last)).toHaveLength(1);
  expect(await store.deleteBranch({ sessionId: "s", branchId: "b0" }, { recursive: true })).toHaveLength(depth);
});

test("a fork at a point that its parent inherited reads through both", async () => {
  const store = await opened(":memory:");
  await givenMain(store, facts("e", 5));
  await store.createBranch("s", {
    id: "fork",
    header: {},
    events: facts("f", 2),
    parent: { branchId: "main", seq: 4 },
  });
  const parent = { branchId: "fork", seq: 2 };
  await store.createBranch("s", { id: "grandchild", header: {}, events: facts("g", 2), parent });
  const ids = async (reverse: boolean) => (await store.read(grandchild, { reverse })).map(({ id }) => id);
  expect(await ids(false)).toEqual(["e0", "e1", "g0", "g1"]);
  expect(await ids(true)).toEqual(["g1", "g0", "e1", "e0"]);
});

test("text comes back as it was, even what SQLite's text can't hold", async () => {
  const path = await freshPath();
  const store = await opened(path);
  const texts = ["", "\0", "a\0b", "a\0c", "\ud800", "x\udfffy", "\u{1f600}", "\u2028'\"\\"];
  const metadata = Object.fromEntries(texts.map((text) => [text, text]));
  const branch = { id: "main", header: metadata, events: texts.map((data, i) => ({ id: `e${i}`, data })) };
  await store.createSession({ id: "s", metadata, state: metadata, branch });
  for (const [to, data] of texts.entries()) await store.segments!.save(main, { to, lines: [data] });
  for (const text of texts)
    await putBytes(store, main, { bytes: Buffer.from(JSON.stringify(text)), mediaType: text, name: text });
  await store.close();
  const again = await opened(path);
  expect((await again.read(main)).map(({ data }) => data)).toEqual(texts);
  for (const [to, data] of texts.entries()) expect(await again.segments!.get(main, to)).toEqual({ to, lines: [data] });
  expect(await again.getSession("s")).toMatchObject({ metadata, state: metadata });
  const contents = await again.content!.list(main);
  expect(contents.map(({ name }) => name).sort()).toEqual([...texts].sort());
  for (const text of texts) {
    expect((await again.listSessions({ metadata: { [text]: text } })).sessions).toHaveLength(1);
    expect((await again.listSessions({ metadata: { [text]: "\ufffd" } })).sessions).toHaveLength(0);
  }
});

test("a branch stays listed after its run, and many idle ones go when somebody looks; those that run stay", async () => {
  const claim = { runId: "r", owner: "o", leaseMs: 60_000 };
  const path = await freshPath();
  const store = await opened(path);
  const idle = Array.from({ length: 70 }, (_, i) => ({ sessionId: `s${i}`, branchId: "main" }));
  for (const ref of [main, ...idle]) {
    await store.createSession({
      id: ref.sessionId,
      metadata: {},
      state: {},
      branch: { id: "main", header: {}, events: [] },
    });
    const { epoch } = await claimSlot(store, ref, claim);
    if (ref !== main) await store.append(ref, facts("e", 1), { epoch, release: true });
  }
  const look = await raw(path);
  const listed = () => look.get<{ n: number }>("SELECT count(*) AS n FROM branches WHERE listed IS NOT NULL")!.n;
  expect(listed()).toBe(71);
  expect(await store.listRuns()).toMatchObject([main]);
  expect(await store.listRuns({ sessionId: "s3" })).toEqual([]);
  // Behind the write that takes them off the list.
  await store.append(main, facts("f", 1));
  expect(listed()).toBe(1);
  expect(await store.listRuns()).toMatchObject([main]);
  await store.append(idle[3]!, facts("g", 1), { claim });
  expect(await store.listRuns()).toMatchObject([main, idle[3]]);
});
