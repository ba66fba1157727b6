// What the file store's own tests share: a directory, file systems that fail or count, and a store with something in it.

import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { crc32 } from "node:zlib";
import { expect, onTestFinished } from "vitest";
import { BoughError } from "../../src/base/errors.ts";
import type { BranchRef, NewEvent, Store } from "../../src/log/index.ts";
import type { Files } from "../../src/stores/file/index.ts";
import { nameOf } from "../../src/stores/file/names.ts";
import { nodeFiles } from "../../src/stores/file/node-files.ts";

/** A directory that goes when the test is over. */
export function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), "bough-file-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A copy of a store's directory, as it lies there now. */
export function copyOf(directory: string): string {
  const copy = temporary();
  cpSync(directory, copy, { recursive: true });
  return copy;
}

/** Every file below a directory, with "/" between steps. */
export function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(directory, name)).isFile())
    .map((name) => relative(".", name).replaceAll("\\", "/"))
    .sort();
}

export function facts(prefix: string, n: number, text = "x"): NewEvent[] {
  return Array.from({ length: n }, (_, i) => ({ id: `${prefix}${i + 1}`, data: JSON.stringify({ n: i + 1, text }) }));
}

export async function givenSession(store: Store, id = "s", events: NewEvent[] = []): Promise<BranchRef> {
  await store.createSession({ id, metadata: {}, state: {}, branch: { id: "main", header: {}, events } });
  return { sessionId: id, branchId: "main" };
}

export async function givenFork(store: Store, from: BranchRef, id: string, seq: number, events: NewEvent[] = []) {
  const parent = { branchId: from.branchId, seq };
  await store.createBranch(from.sessionId, { id, header: {}, events, parent });
  return { sessionId: from.sessionId, branchId: id };
}

export const logOf = ({ sessionId, branchId }: BranchRef) => `sessions/${sessionId}/branches/${branchId}/events.jsonl`;

export const content = (text: string) => ({ bytes: new TextEncoder().encode(text), mediaType: "text/plain" });

/** The id of content with this text. */
export const idOf = (text: string) => createHash("sha256").update(text).digest("hex");

/** Whether the promise was refused with this code; any other failure is thrown. */
export async function isRefused(promise: Promise<unknown>, code: BoughError["code"]): Promise<boolean> {
  try {
    await promise;
    return false;
  } catch (error) {
    if (BoughError.is(error, code)) return true;
    throw error;
  }
}

/** What is called on a file system to change it. */
export const changing = [
  "open",
  "write",
  "truncate",
  "datasync",
  "makeDirectory",
  "rename",
  "link",
  "unlink",
  "removeTree",
  "syncDirectory",
] as const;

export type Changing = (typeof changing)[number];

/** A file system that asks before every change; what is returned is thrown, a number shortens a write to that many bytes. */
export function interceptedFiles(before: (call: Changing, path: string | number) => Error | number | undefined): Files {
  const files = { ...nodeFiles };
  for (const call of changing) {
    const real = nodeFiles[call] as (...args: unknown[]) => unknown;
    const wrapped = (...args: unknown[]) => {
      // A file that is there is opened to be read as well.
      if (call === "open" && args[1] === "existing") return real(...args);
      const verdict = before(call, args[0] as string | number);
      if (verdict instanceof Error) {
        if (call === "datasync" || call === "syncDirectory" || call === "removeTree") return Promise.reject(verdict);
        throw verdict;
      }
      if (call === "write" && typeof verdict === "number") {
        return real(args[0], (args[1] as Uint8Array).subarray(0, verdict), args[2]);
      }
      return real(...args);
    };
    Object.assign(files, { [call]: wrapped });
  }
  return files;
}

export function failure(code: "EIO" | "ENOSPC"): Error {
  return Object.assign(new Error(`${code}: injected`), { code });
}

/** A file system that counts the bytes it reads. */
export function countingFiles(): { files: Files; read: { bytes: number } } {
  const read = { bytes: 0 };
  const files: Files = {
    ...nodeFiles,
    read(handle, into, at) {
      const got = nodeFiles.read(handle, into, at);
      read.bytes += got;
      return got;
    },
  };
  return { files, read };
}

/** A file system that does not wait for the disk, for tests in which no power is lost. */
export const unsyncedFiles: Files = { ...nodeFiles, datasync: async () => {}, syncDirectory: async () => {} };

/** The objects in a file of JSON Lines; every checksum must be that of the lines up to it. */
export function linesIn(path: string): Record<string, unknown>[] {
  const text = readFileSync(path, "utf8");
  expect(text.endsWith("\n")).toBe(true);
  let crc = 0;
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => {
      const parsed = JSON.parse(line);
      crc = crc32(line.slice(0, line.lastIndexOf(',"crc":"')), crc);
      expect(parsed.crc).toBe(crc.toString(16).padStart(8, "0"));
      return parsed;
    });
}

/** Compares what the files of a session's branches show with what the store knows. */
export async function checkShown(directory: string, store: Store, sessionId: string): Promise<void> {
  const session = join(directory, "sessions", sessionId);
  const runs = await store.listRuns({ sessionId });
  for (const record of await store.listBranches(sessionId)) {
    const { branchId, header, parent } = record;
    const name = nameOf(branchId);
    const folder = join(session, "branches", name);
    const lines = linesIn(join(folder, "events.jsonl"));
    const base = parent?.seq ?? 0;
    expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, i) => base + i));
    expect(lines.slice(1).map(({ id }) => id)).toEqual((await store.read(record, { after: base })).map(({ id }) => id));
    const shown = JSON.parse(readFileSync(join(folder, "branch.json"), "utf8"));
    const bytes = statSync(join(folder, "events.jsonl")).size;
    expect(shown).toMatchObject({ ...record, log: { file: "events.jsonl", bytes } });
    const file = join(session, "uncommitted", `${name}.json`);
    const claim = runs.find((run) => run.branchId === branchId);
    expect(existsSync(file), `${file} with ${JSON.stringify([header, claim])}`).toBe(!!header.turn || !!claim);
    if (existsSync(file)) checkTurn(file, header, claim);
  }
}

function checkTurn(file: string, header: Record<string, unknown>, claim: object | undefined): void {
  const { turn, questions, runs, ...shown } = JSON.parse(readFileSync(file, "utf8"));
  expect([turn?.id, questions?.map(({ id }: { id: string }) => id) ?? []]).toEqual([header.turn, header.asks ?? []]);
  if (claim) expect(claim).toMatchObject({ ...shown.claim, expiresAt: expect.any(Number) });
  else expect(shown).not.toHaveProperty("claim");
  if (!turn) return;
  const log = join(file, "..", shown.log);
  const lines = linesIn(log);
  for (const { id, seq } of [turn, ...questions]) expect(lines.find((line) => line.seq === seq)).toMatchObject({ id });
  const batch = readFileSync(log).subarray(turn.byte).toString().split("\n");
  expect(JSON.parse(batch[0]!).seq).toBeLessThanOrEqual(turn.seq);
  expect(batch.map((line) => line && JSON.parse(line)).find((line) => line.at)).toMatchObject({ at: turn.startedAt });
  expect(runs).not.toEqual([]);
}
