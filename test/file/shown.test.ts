// What people see in the files while sessions are at work: the log, the branch, and the turn that is not closed.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Draft } from "../../src/events/index.ts";
import { openSessions } from "../../src/sessions/index.ts";
import { fileStore } from "../../src/stores/file/index.ts";
import { putBytes } from "../../src/testing/content.ts";
import { claimSlot } from "../../src/testing/contract/kit.ts";
import { checkShown, content, facts, givenFork, givenSession, idOf, linesIn, temporary, unsyncedFiles } from "./kit.ts";

async function given() {
  const directory = temporary();
  const store = await fileStore(directory, { files: unsyncedFiles });
  const sessions = await openSessions(store);
  await sessions.createSession("s");
  const path = (...names: string[]) => join(directory, "sessions/s", ...names);
  const read = (...names: string[]) => JSON.parse(readFileSync(path(...names), "utf8"));
  const branch = (id = "main") => read("branches", id, "branch.json");
  const uncommitted = (id = "main") => read("uncommitted", `${id}.json`);
  /** Whether a turn is shown once everything is in its place. */
  const isShown = async (id = "main") => {
    await store.maintain();
    await checkShown(directory, store, "s");
    return existsSync(path("uncommitted", `${id}.json`));
  };
  return { directory, store, sessions, path, branch, uncommitted, isShown };
}

const main = { sessionId: "s", branchId: "main" };
const says = (text: string) => ({ role: "user", content: text }) as const;
const question = (turnId: string): Draft => ({
  ...{ type: "interaction.opened", id: "question", at: 1, turnId, kind: "permission" },
  request: { toolName: "add", input: {} },
});

describe("events.jsonl and the files beside it", () => {
  test("are JSON Lines: a line is one object with the fact in it and its checksum last", async () => {
    const { sessions, store, path } = await given();
    const turn = await sessions.beginTurn(main, 'Hello,\n\t"you" \u{1f600}', { runId: "r1" });
    await turn.commit({ messages: [{ role: "assistant", content: "Hi" }], state: { greeted: true } });
    await store.saveCheckpoint(main, { id: "c1", seq: 1, data: {} });
    await putBytes(store, main, content("x"));
    const lines = linesIn(path("branches/main/events.jsonl"));
    expect(lines.map(({ data }) => (data as { type: string } | undefined)?.type)).toEqual([
      undefined,
      "branch.created",
      "turn.started",
      "message.added",
      "message.added",
      "state.changed",
      "turn.committed",
    ]);
    expect(lines[0]).toMatchObject({ seq: 0, at: expect.any(Number), branch: { sessionId: "s", branchId: "main" } });
    expect(lines[2]).toMatchObject({ seq: 2, id: turn.turnId, more: 1, data: { runId: "r1" } });
    expect(lines[3]).toMatchObject({
      header: { turn: turn.turnId },
      data: { content: [{ text: 'Hello,\n\t"you" \u{1f600}' }] },
    });
    expect(lines[6]).toMatchObject({ header: { turn: null, messages: 2, state: { greeted: true } } });
    for (const line of lines) expect(Object.keys(line).at(-1)).toBe("crc");
    expect(linesIn(path("branches/main/checkpoints.jsonl"))).toMatchObject([{ save: { id: "c1" } }]);
    expect(linesIn(path("content.jsonl"))).toMatchObject([{ put: { record: { id: idOf("x"), branchId: "main" } } }]);
    await sessions.close();
  });
});

describe("branch.json", () => {
  test("is there as soon as its branch is, whatever happens to the process then", async () => {
    const { sessions, branch } = await given();
    await sessions.forkBranch(main, { newBranchId: "fork" });
    expect([branch("main").header, branch("fork").header]).toMatchObject([{ messages: 0 }, { fork: { messages: 0 } }]);
    await sessions.close();
  });

  test("shows the header, the state, and where the messages are, own and inherited", async () => {
    const { sessions, store, branch, isShown } = await given();
    await sessions.appendTurn(main, [says("Hello")], { state: { plan: "one" } });
    await sessions.updateBranch(main, { name: "First", tags: ["a"], metadata: { team: "x" } });
    await sessions.forkBranch(main, { newBranchId: "Fork 1" });
    await store.segments!.save(main, { to: 3, lines: ['{"format":1}'] });
    await isShown();
    expect(branch()).toMatchObject({
      header: { name: "First", tags: ["a"], metadata: { team: "x" }, messages: 1, state: { plan: "one" } },
      log: { file: "events.jsonl" },
      segments: [{ file: expect.stringMatching(/^segments\/3-[0-9a-f]{8}\.jsonl$/), to: 3 }],
    });
    const fork = branch("=46ork=201");
    expect(fork).toMatchObject({
      ...{ branchId: "Fork 1", header: { messages: 1, fork: { messages: 1 }, state: { plan: "one" } } },
      ...{ parent: { branchId: "main" }, seq: fork.parent.seq + 1, inherits: "../main/events.jsonl" },
    });
    await sessions.close();
  });

  test("shows the length of a state that is too long for it", async () => {
    const { sessions, branch, isShown } = await given();
    const state = { text: "x".repeat(3000) };
    await sessions.appendTurn(main, [says("Hello")], { state });
    await isShown();
    expect(branch().header.state).toBe(JSON.stringify(state).length);
    await sessions.appendTurn(main, [says("Hello")], { state: { text: null, a: 1 } });
    await isShown();
    expect(branch().header.state).toEqual({ a: 1 });
    await sessions.appendTurn(main, [says("Hello")], { state: { a: null } });
    await isShown();
    expect(branch().header).not.toHaveProperty("state");
    await sessions.close();
  });

  test("is written between checkpoints, and not once an append", async () => {
    const directory = temporary();
    let writes = 0;
    const opened = new Set<number>();
    const store = await fileStore(directory, {
      files: {
        ...unsyncedFiles,
        open(path, how) {
          const handle = unsyncedFiles.open(path, how);
          if (path.endsWith("/branch.json")) opened.add(handle);
          else opened.delete(handle);
          return handle;
        },
        write(handle, bytes, at) {
          if (opened.has(handle)) writes += 1;
          return unsyncedFiles.write(handle, bytes, at);
        },
      },
    });
    const ref = await givenSession(store);
    const began = performance.now();
    for (let i = 1; i <= 500; i++) await store.append(ref, [{ id: `e${i}`, data: "{}" }], { header: { i } });
    const shown = () => JSON.parse(readFileSync(join(directory, "sessions/s/branches/main/branch.json"), "utf8"));
    const isCurrent = () =>
      existsSync(join(directory, "sessions/s/branches/main/branch.json")) && shown().header.i === 500;
    while (!isCurrent()) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(writes).toBeLessThanOrEqual(2 + (performance.now() - began) / 250);
    expect(shown()).toMatchObject({ seq: 500 });
    await store.close();
  });
});

describe("uncommitted/{branch}.json", () => {
  test("shows a turn from its first fact until it closes, with its questions and runs", async () => {
    const { directory, sessions, path, uncommitted, isShown } = await given();
    const turn = await sessions.beginTurn(main, "Hello", { runId: "r1" });
    expect(uncommitted().turn.id).toBe(turn.turnId);
    expect(await isShown()).toBe(true);
    const { startedAt } = uncommitted().turn;
    expect(uncommitted()).toMatchObject({
      turn: { id: turn.turnId, seq: 2 },
      questions: [],
      runs: [{ runId: "r1" }],
      claim: { runId: "r1", epoch: turn.claim.epoch },
    });
    await turn.append(question(turn.turnId));
    expect(await isShown()).toBe(true);
    expect(uncommitted().questions).toEqual([{ id: "question", seq: 4 }]);
    await turn.release();
    expect(await isShown()).toBe(true);
    expect(uncommitted()).not.toHaveProperty("claim");
    // Another process finds it and goes on.
    await sessions.close();
    const again = await openSessions(directory);
    await again.answer(main, "question", { approved: true });
    expect(uncommitted()).toMatchObject({ turn: { id: turn.turnId, seq: 2, startedAt }, questions: [] });
    const resumed = await again.resumeTurn(main, { runId: "r2" });
    expect(uncommitted()).toMatchObject({ claim: { runId: "r2" }, runs: [{ runId: "r1" }, { runId: "r2" }] });
    await resumed.commit();
    expect(existsSync(path("uncommitted/main.json"))).toBe(false);
    await again.close();
  });

  test("is one file a branch: closing a turn leaves that of another branch", async () => {
    const { sessions, uncommitted, isShown } = await given();
    await sessions.forkBranch(main, { newBranchId: "side" });
    const side = { sessionId: "s", branchId: "side" };
    const [one, two] = [await sessions.beginTurn(main, "One"), await sessions.beginTurn(side, "Two")];
    expect([await isShown(), await isShown("side")]).toEqual([true, true]);
    expect([uncommitted().turn.id, uncommitted("side").turn.id]).toEqual([one.turnId, two.turnId]);
    await one.commit();
    expect([await isShown(), await isShown("side")]).toEqual([false, true]);
    await two.end({ status: "interrupted" });
    expect(await isShown("side")).toBe(false);
    await sessions.close();
  });

  test("goes with its branch and its session", async () => {
    const { sessions, store, path, isShown } = await given();
    await sessions.forkBranch(main, { newBranchId: "side" });
    for (const branchId of ["main", "side"]) await (await sessions.beginTurn({ ...main, branchId }, "Hi")).release();
    expect(await isShown("side")).toBe(true);
    await store.deleteBranch({ ...main, branchId: "side" });
    expect([await isShown(), await isShown("side")]).toEqual([true, false]);
    await store.deleteSession("s");
    expect(existsSync(path())).toBe(false);
    await sessions.close();
  });

  test("a damaged one is reported and comes back with the next run; the turn itself is in the log", async () => {
    const { directory, sessions, path, uncommitted } = await given();
    const turn = await sessions.beginTurn(main, "Hello", { runId: "r1" });
    await turn.release();
    await sessions.close();
    writeFileSync(path("uncommitted/main.json"), "{}");
    const store = await fileStore(directory);
    const again = await openSessions(store);
    const resumed = await again.resumeTurn(main, { runId: "r2" });
    expect(resumed.turnId).toBe(turn.turnId);
    expect((await store.maintain()).problems).toMatchObject([{ code: "repaired", sessionId: "s" }]);
    expect(uncommitted()).toMatchObject({ turn: { id: turn.turnId, seq: 2 }, runs: [{ runId: "r2" }] });
    await resumed.commit();
    await again.close();
    expect(existsSync(path("uncommitted/main.json"))).toBe(false);
  });

  test("shows the newest runs of a turn, and a turn that a new branch begins with", async () => {
    const directory = temporary();
    const store = await fileStore(directory, { files: unsyncedFiles });
    const ref = await givenSession(store, "s", facts("e", 1));
    await store.append(ref, facts("t", 1), { header: { turn: "t1" } });
    for (let i = 1; i <= 30; i++) {
      const { epoch } = await claimSlot(store, ref, { runId: `r${i}`, owner: "o", leaseMs: 1 });
      await store.releaseRun(ref, { epoch });
    }
    await store.createBranch("s", { id: "copy", header: { turn: "t1" }, events: facts("t", 1) });
    await givenFork(store, ref, "fork", 1);
    await store.maintain();
    const read = (name: string) => JSON.parse(readFileSync(join(directory, "sessions/s/uncommitted", name), "utf8"));
    expect(read("main.json").runs.map(({ runId }: { runId: string }) => runId)).toEqual(
      Array.from({ length: 20 }, (_, i) => `r${i + 11}`),
    );
    expect(read("copy.json")).toMatchObject({ turn: { id: "t1", seq: 1, byte: 0 }, runs: [] });
    expect(existsSync(join(directory, "sessions/s/uncommitted/fork.json"))).toBe(false);
    await store.close();
  });
});
