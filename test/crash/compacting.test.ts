// A process that compacts is killed around the append: afterwards a compaction is in force or was never made, and what was
// acknowledged is there.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSessions } from "../../src/sessions/index.ts";
import { checkLogs } from "../../src/testing/index.ts";

type Said = { made?: string; taken?: string; forked?: string };

/** What the process acknowledged before it died at the failpoint. */
function killedAt(failpoint: string, kind: string, path: string): Promise<Said[]> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "compacting.mjs"), kind, path], {
    env: { ...process.env, BOUGH_FAILPOINT: failpoint },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (piece) => {
    text += piece;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (_, signal) => {
      expect(signal).toBe("SIGKILL");
      const lines = text.split("\n").filter((line) => line.endsWith("}"));
      resolve(lines.map((line) => JSON.parse(line) as Said));
    });
  });
}

const points = {
  sqlite: ["sqlite.commit.begun", "sqlite.commit.written", "sqlite.commit.done"],
  file: ["file.wal.beforeWrite", "file.wal.halfWritten", "file.wal.written", "file.wal.synced"],
};

describe.each(Object.entries(points))("a process that compacts on %s", (kind, names) => {
  test.each(names)("killed at %s, has compacted or has not", { timeout: 120_000 }, async (name) => {
    const folder = mkdtempSync(join(tmpdir(), "bough-compacting-"));
    try {
      const path = join(folder, kind === "sqlite" ? "bough.db" : "files");
      const said: Said[] = [];
      // Each life begins where the one before died: a few passes on, in the middle of something else.
      for (const pass of [6, 8, 9, 11, 13]) {
        said.push(...(await killedAt(`${name}:${pass}`, kind, path)));
        const sessions = await openSessions(kind === "sqlite" ? `sqlite:${path}` : path);
        try {
          const main = { sessionId: "s", branchId: "main" };
          const facts = await sessions.events(main, { limit: 1000 });
          const written = new Set(facts.filter(({ type }) => type === "history.compacted").map(({ id }) => id));
          const taken = new Set(facts.flatMap((fact) => (fact.type === "history.restored" ? [fact.of] : [])));
          for (const { made } of said) if (made) expect(written.has(made)).toBe(true);
          for (const each of said) if (each.taken) expect(taken.has(each.taken)).toBe(true);
          const branches = await sessions.listBranches("s");
          for (const { forked } of said) if (forked) expect(branches.map(({ id }) => id)).toContain(forked);
          for (const { id } of branches) {
            const scope = { sessionId: "s", branchId: id };
            // A fork is born with its compaction, or is not there.
            if (id !== "main") expect((await sessions.listCompactions(scope))[0]).toMatchObject({ reason: "fork" });
            const branch = await sessions.loadBranch(scope);
            expect(branch.messageCount).toBe(branch.messages.length);
          }
          expect(await checkLogs(sessions.store)).toEqual([]);
        } finally {
          await sessions.close();
        }
      }
      expect(said.length).toBeGreaterThan(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
