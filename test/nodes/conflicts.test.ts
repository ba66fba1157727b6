// Two commands that can't both happen: one succeeds and the other is refused for a reason that says what is the matter, on
// every store and across processes. Commands that can both happen, in some order, do, and nothing of either is lost.

import { type ChildProcess, fork } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { type Agent, createAgent, type Store } from "../../src/index.ts";
import { openStore } from "../../src/sessions/open-store.ts";
import { fileStore } from "../../src/stores/file/index.ts";
import { memoryStore } from "../../src/stores/memory/index.ts";
import { sqliteStore } from "../../src/stores/sqlite/index.ts";
import { checkLogs } from "../../src/testing/index.ts";
import { type Place, presentPlaces } from "./kit/places.ts";
import { type Command, perform, playOf, type Told } from "./kit/race.mjs";

type Racer = (command: Command) => Promise<Told>;

/** A store, and two who give commands to it. */
interface Track {
  readonly store: Store;
  readonly racers: readonly [Racer, Racer];
  close(): Promise<void>;
}

const racerFile = fileURLToPath(new URL("./kit/racer.mjs", import.meta.url));
const rounds = 12;
// Many rounds, each with several round trips.
vi.setConfig({ testTimeout: 60_000 });

function inProcess(agent: Agent): Racer {
  return (command) => perform(agent, command);
}

/** Two agents here, with a handle each where the store can have more than one. */
async function handles(open: () => Promise<Store>, count: 1 | 2, folder: string): Promise<Track> {
  const stores = count === 1 ? [await open()] : [await open(), await open()];
  const agents = [0, 1].map((i) =>
    createAgent({ ...playOf(), store: stores[i % stores.length]!, owner: `racer ${i}` }),
  );
  return {
    store: stores[0]!,
    racers: [inProcess(agents[0]!), inProcess(agents[1]!)],
    async close() {
      for (const agent of agents) await agent.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function processes({ url, stop }: Place, folder: string): Promise<Track> {
  const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
  if (!existsSync(built)) throw new Error("These tests run the built package: npm run build first.");
  const store = await openStore(url, { clock: systemClock });
  const children = await Promise.all([racer(url), racer(url)]);
  return {
    store,
    racers: [children[0]!.race, children[1]!.race],
    async close() {
      const gone = children.map(({ child }) => new Promise((resolve) => child.once("exit", resolve)));
      for (const { child } of children) child.disconnect();
      await Promise.all(gone);
      await store.close();
      await stop?.();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function racer(url: string): Promise<{ child: ChildProcess; race: Racer }> {
  const child = fork(racerFile, [url]);
  const waiting = new Map<number, (told: Told) => void>();
  let asked = 0;
  await new Promise<void>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`A racer ended with ${code}.`)));
    child.on("message", ({ ready, id, outcome }: { ready?: true; id: number; outcome: Told }) => {
      if (ready) resolve();
      else waiting.get(id)!(outcome);
    });
  });
  const race: Racer = (command) =>
    new Promise((resolve) => {
      asked += 1;
      waiting.set(asked, resolve);
      child.send({ id: asked, command });
    });
  return { child, race };
}

const tracks: Record<string, (folder: string) => Promise<Track>> = {
  memory: (folder) => handles(async () => memoryStore(), 1, folder),
  file: (folder) => handles(() => fileStore(join(folder, "files")), 1, folder),
  "sqlite, two handles": (folder) => handles(() => sqliteStore(join(folder, "bough.db")), 2, folder),
  ...Object.fromEntries(
    presentPlaces().map(([kind, open]) => [
      `${kind}, two processes`,
      async (folder: string) => processes(await open(folder), folder),
    ]),
  ),
};

describe.each(Object.keys(tracks))("on %s", (name) => {
  let track: Track;
  let sessions: Agent;

  beforeAll(async () => {
    track = await tracks[name]!(await mkdtemp(join(tmpdir(), "bough-conflicts-")));
    sessions = createAgent({ ...playOf(), store: track.store });
  });
  afterAll(() => track.close());

  /** Lets both commands loose at once, round after round, each on a session of its own with a branch "b". */
  async function race(
    commands: (sessionId: string) => readonly [Command, Command],
    judge: (told: readonly [Told, Told], sessionId: string) => void | Promise<void>,
  ): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      const { id } = await sessions.createSession();
      await sessions.createBranch(id, { branchId: "b" });
      await sessions.appendTurn({ sessionId: id, branchId: "b" }, [{ role: "user", content: "Hi", id: "m" }]);
      const [one, two] = commands(id);
      // Either may be first to be asked.
      const [first, second] = round % 2 === 0 ? track.racers : ([...track.racers].reverse() as [Racer, Racer]);
      const told = round % 2 === 0 ? [first(one), second(two)] : [second(two), first(one)].reverse();
      await judge((await Promise.all(told)) as [Told, Told], id);
    }
    expect(await checkLogs(track.store)).toEqual([]);
  }

  const codes = (told: readonly Told[]) => told.map(({ ok, code }) => (ok ? "ok" : code));

  test("a session is deleted, or a run begins on it", async () => {
    await race(
      (sessionId) => [
        ["deleteSession", sessionId],
        ["run", "Go", { sessionId, branchId: "b" }],
      ],
      async (told, sessionId) => {
        expect([
          ["ok", "session_not_found"],
          ["ok", "branch_not_found"],
          ["run_active", "ok"],
        ]).toContainEqual(codes(told));
        expect((await track.store.getSession(sessionId)) === undefined).toBe(told[0].ok === true);
      },
    );
  });

  test("a session is deleted, or updated before that", async () => {
    await race(
      (sessionId) => [
        ["deleteSession", sessionId],
        ["updateSession", sessionId, { metadata: { a: 1 } }],
      ],
      async (told, sessionId) => {
        expect(told[0].ok).toBe(true);
        expect(["ok", "session_not_found"]).toContain(codes(told)[1]);
        expect(await track.store.getSession(sessionId)).toBeUndefined();
      },
    );
  });

  test("a branch is deleted, or a run begins on it", async () => {
    await race(
      (sessionId) => [
        ["deleteBranch", { sessionId, branchId: "b" }],
        ["run", "Go", { sessionId, branchId: "b" }],
      ],
      (told) => {
        expect([
          ["ok", "branch_not_found"],
          ["run_active", "ok"],
        ]).toContainEqual(codes(told));
      },
    );
  });

  test("a branch is deleted, or forked", async () => {
    await race(
      (sessionId) => [
        ["deleteBranch", { sessionId, branchId: "b" }],
        ["forkBranch", { sessionId, branchId: "b" }, { newBranchId: "c" }],
      ],
      (told) => {
        expect([
          ["ok", "branch_not_found"],
          ["branch_has_children", "ok"],
        ]).toContainEqual(codes(told));
      },
    );
  });

  test("a branch is deleted with the hidden forks that are being made, or is not there to fork", async () => {
    await race(
      (sessionId) => {
        const owner = { sessionId, branchId: "b", turnId: "t", kind: "subagent" };
        return [
          ["deleteBranch", { sessionId, branchId: "b" }],
          ["forkBranch", { sessionId, branchId: "b" }, { newBranchId: "c", owner, visibility: "hidden" }],
        ];
      },
      async (told, sessionId) => {
        expect(told[0].ok, told[0].code).toBe(true);
        expect(["ok", "branch_not_found"]).toContain(codes(told)[1]);
        expect((await track.store.listBranches(sessionId)).map(({ branchId }) => branchId)).toEqual(["main"]);
      },
    );
  });

  test("a branch is deleted, or written on before that", async () => {
    await race(
      (sessionId) => [
        ["deleteBranch", { sessionId, branchId: "b" }],
        ["appendTurn", { sessionId, branchId: "b" }, [{ role: "user", content: "More" }]],
      ],
      async (told, sessionId) => {
        expect(told[0].ok).toBe(true);
        expect(["ok", "branch_not_found"]).toContain(codes(told)[1]);
        expect(await track.store.getBranch({ sessionId, branchId: "b" })).toBeUndefined();
      },
    );
  });

  test("a session is deleted, or a branch of it made or written before that", async () => {
    const others: ((sessionId: string) => Command)[] = [
      (sessionId) => ["appendTurn", { sessionId, branchId: "b" }, [{ role: "user", content: "More" }]],
      (sessionId) => ["forkBranch", { sessionId, branchId: "b" }, { newBranchId: "c" }],
      (sessionId) => ["updateBranch", { sessionId, branchId: "b" }, { metadata: { a: 1 } }],
    ];
    for (const other of others) {
      await race(
        (sessionId) => [["deleteSession", sessionId], other(sessionId)],
        async (told, sessionId) => {
          expect(told[0].ok, told[0].code).toBe(true);
          expect(["ok", "session_not_found", "branch_not_found"]).toContain(codes(told)[1]);
          expect(await track.store.getSession(sessionId)).toBeUndefined();
        },
      );
    }
  });

  test("what is deleted twice is deleted once", async () => {
    await race(
      (sessionId) => [
        ["deleteBranch", { sessionId, branchId: "b" }],
        ["deleteBranch", { sessionId, branchId: "b" }],
      ],
      (told) => expect(codes(told).toSorted()).toEqual(["branch_not_found", "ok"]),
    );
    await race(
      (sessionId) => [
        ["deleteSession", sessionId],
        ["deleteSession", sessionId],
      ],
      (told) => expect(codes(told).toSorted()).toEqual(["ok", "session_not_found"]),
    );
  });

  test("a branch is deleted with all that was forked from it, or is not there to fork", async () => {
    await race(
      (sessionId) => [
        ["deleteBranch", { sessionId, branchId: "b" }, { recursive: true }],
        ["forkBranch", { sessionId, branchId: "b" }, { newBranchId: "c" }],
      ],
      async (told, sessionId) => {
        expect(told[0].ok, told[0].code).toBe(true);
        expect(["ok", "branch_not_found"]).toContain(codes(told)[1]);
        expect((await track.store.listBranches(sessionId)).map(({ branchId }) => branchId)).toEqual(["main"]);
      },
    );
  });

  test("a branch is reverted before a run begins on it, or refuses to be", async () => {
    await race(
      (sessionId) => [
        ["revertBranch", { sessionId, branchId: "b" }, { toSeq: 1 }],
        ["run", "Go", { sessionId, branchId: "b" }],
      ],
      async (told, sessionId) => {
        expect([
          ["ok", "ok"],
          ["run_active", "ok"],
          ["ok", "run_active"],
        ]).toContainEqual(codes(told));
        const events = await track.store.read({ sessionId, branchId: "b" });
        const types = events.map(({ data }) => (JSON.parse(data) as { type: string }).type);
        expect(types.filter((type) => type === "branch.reverted")).toHaveLength(told[0].ok ? 1 : 0);
        // A turn that has begun is not pulled from under its run.
        expect(types.lastIndexOf("branch.reverted")).toBeLessThan(types.lastIndexOf("turn.started"));
      },
    );
  });

  test("while a run works, its branch and its session can't be deleted, nor the branch reverted; the rest can", async () => {
    const { id: sessionId } = await sessions.createSession();
    await sessions.createBranch(sessionId, { branchId: "b" });
    await sessions.createBranch(sessionId, { branchId: "free" });
    const [one, other] = track.racers;
    expect(await one(["run", "Go", { sessionId, branchId: "b" }])).toEqual({ ok: true });
    const refused: Command[] = [
      ["deleteBranch", { sessionId, branchId: "b" }],
      ["deleteSession", sessionId],
      ["revertBranch", { sessionId, branchId: "b" }, { toSeq: 1 }],
      ["run", "Me too", { sessionId, branchId: "b" }],
    ];
    for (const command of refused) expect(await other(command), command[0]).toEqual({ code: "run_active" });
    const done: Command[] = [
      ["updateSession", sessionId, { metadata: { a: 1 } }],
      ["updateBranch", { sessionId, branchId: "b" }, { metadata: { a: 1 } }],
      ["forkBranch", { sessionId, branchId: "b" }, { newBranchId: "c" }],
      ["deleteBranch", { sessionId, branchId: "c" }],
      ["deleteBranch", { sessionId, branchId: "free" }],
    ];
    for (const command of done) expect(await other(command), command[0]).toEqual({ ok: true });
  });

  test("two runs: one begins and the other is refused", async () => {
    await race(
      (sessionId) => [
        ["run", "One", { sessionId, branchId: "b" }],
        ["run", "Two", { sessionId, branchId: "b" }],
      ],
      (told) => expect(codes(told).toSorted()).toEqual(["ok", "run_active"]),
    );
  });

  test("two patches of one version of a session: one is refused; without a version nothing is lost", async () => {
    await race(
      (sessionId) => [
        ["updateSession", sessionId, { metadata: { a: 1 } }, { expectedVersion: 1 }],
        ["updateSession", sessionId, { metadata: { b: 2 } }, { expectedVersion: 1 }],
      ],
      (told) => expect(codes(told).toSorted()).toEqual(["ok", "version_conflict"]),
    );
    await race(
      (sessionId) => [
        ["updateSession", sessionId, { metadata: { a: 1 } }],
        ["updateSession", sessionId, { metadata: { b: 2 } }],
      ],
      async (told, sessionId) => {
        expect(codes(told)).toEqual(["ok", "ok"]);
        expect((await track.store.getSession(sessionId))!.metadata).toEqual({ a: 1, b: 2 });
      },
    );
  });

  test("two patches of a branch are both there", async () => {
    await race(
      (sessionId) => [
        ["updateBranch", { sessionId, branchId: "b" }, { metadata: { a: 1 } }],
        ["updateBranch", { sessionId, branchId: "b" }, { metadata: { b: 2 } }],
      ],
      async (told, sessionId) => {
        expect(codes(told)).toEqual(["ok", "ok"]);
        const { metadata } = (await track.store.getBranch({ sessionId, branchId: "b" }))!.header;
        expect(metadata).toEqual({ a: 1, b: 2 });
      },
    );
  });

  test("two branches or sessions of one name: one is refused", async () => {
    await race(
      (sessionId) => [
        ["createBranch", sessionId, { branchId: "c" }],
        ["forkBranch", { sessionId, branchId: "b" }, { newBranchId: "c" }],
      ],
      (told) => expect(codes(told).toSorted()).toEqual(["branch_exists", "ok"]),
    );
    await race(
      (sessionId) => [
        ["createSession", `${sessionId}-again`],
        ["createSession", `${sessionId}-again`],
      ],
      (told) => expect(codes(told).toSorted()).toEqual(["ok", "session_exists"]),
    );
  });
});
