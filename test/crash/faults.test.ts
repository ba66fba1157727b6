// Disks that fail for real: one that is full, and one whose syncs fail. Nothing acknowledged is lost, the handle says
// clearly that it writes no more, and opening the store again is all it takes once the cause is gone.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { pathIn, temporaryFolder } from "./kit/campaign.mjs";
import { needsStrace, strace } from "./kit/strace.ts";
import { Subject } from "./kit/subject.mjs";

const names = ["file", "sqlite"];
const seed = "faults";

/**
 * Every refusal of the store is one sentence that says what to do, and nothing that was begun after the first was told is
 * acknowledged. What was under way then may have been synced: content goes to the disk beside the log.
 */
function expectReadOnly({ history }: Subject): void {
  const [first] = history.refusals;
  expect(first, "the store took every write").toBeDefined();
  expect(new Set(history.refusals.map(({ code }) => code))).toEqual(new Set(["store_read_only"]));
  expect(new Set(history.refusals.map(({ message }) => message)).size).toBe(1);
  expect(first!.message).toMatch(/reopen|open/i);
  const later = history.writes.filter(({ line, status }) => line > first!.end && status === "acked");
  expect(later, "acknowledged after the store had failed").toEqual([]);
}

async function expectUsable(subject: Subject): Promise<void> {
  expect(await subject.check()).toEqual([]);
  expect(await subject.write({ ops: 40 })).toMatchObject({ wasClosed: true });
  expect(subject.history.refusals).toEqual([]);
  expect(await subject.check()).toEqual([]);
}

describe.each(names)("the %s store on a disk that is full", (name) => {
  test("stops writing, loses nothing, and goes on when it is opened again with space", async ({ skip }) => {
    const disk = mountTmpfs("700k", skip);
    try {
      const subject = new Subject({ name, path: pathIn(disk, name), seed });
      expect(await subject.write({ ops: 500 })).toMatchObject({ wasClosed: true, failure: undefined });
      expectReadOnly(subject);
      const { wasClosed, failure } = await subject.write({ openOnly: true, mayFail: true });
      if (!wasClosed) expect(failure).toMatchObject({ failed: expect.stringMatching(/^store_/) });
      execFileSync("mount", ["-o", "remount,size=64m", disk]);
      await expectUsable(subject);
    } finally {
      unmount(disk);
    }
  });
});

describe.each(names)("the %s store on a disk whose sync fails", (name) => {
  // Once: a second sync that succeeds proves nothing. From then on: the disk is gone.
  test.for(["5", "12", "9+"])("stops writing and loses nothing (sync %s)", async (when, { skip }) => {
    needsStrace(skip);
    const folder = temporaryFolder();
    try {
      const subject = new Subject({ name, path: pathIn(folder, name), seed: `${seed}${when}` });
      await subject.write({ ops: 20 });
      const prefix = strace(`inject=fsync,fdatasync:error=EIO:when=${when}`);
      const end = await subject.write({ ops: 150, prefix });
      expect(end).toMatchObject({ wasClosed: true, failure: undefined });
      expectReadOnly(subject);
      await expectUsable(subject);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

function mountTmpfs(size: string, skip: (notice: string) => never): string {
  const disk = mkdtempSync(join(tmpdir(), "bough-full-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", disk], { stdio: "pipe" });
    return disk;
  } catch (error) {
    rmSync(disk, { recursive: true });
    const notice = `NO DISK WAS FILLED: a small file system can't be mounted here (${(error as Error).message.trim()}).`;
    console.warn(notice);
    return skip(notice);
  }
}

function unmount(disk: string): void {
  execFileSync("umount", ["-l", disk]);
  rmSync(disk, { recursive: true });
}
