import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { Disk } from "./disk.ts";
import { nodeFiles } from "./node-files.ts";

test("a file that is not in its place yet is listed and read without writing, also when the disk is full (Disk-5)", () => {
  const base = mkdtempSync(join(tmpdir(), "bough-disk-"));
  const full = () => {
    throw Object.assign(new Error("full"), { code: "ENOSPC" });
  };
  const disk = new Disk({ ...nodeFiles, write: full }, base);
  onTestFinished(() => {
    disk.close();
    rmSync(base, { recursive: true });
  });
  disk.apply([{ kind: "write", path: "s/claims/b.json", bytes: Buffer.from("{}"), later: true }]);
  expect(disk.list("s/claims")).toEqual(["b.json"]);
  expect(disk.list("s")).toEqual(["claims"]);
  expect(disk.list("s/claim")).toEqual([]);
  expect(disk.readWhole("s/claims/b.json")?.toString()).toBe("{}");
  disk.apply([{ kind: "remove", path: "s/claims/b.json" }]);
  expect(disk.list("s/claims")).toEqual([]);
});

test("a file gets into its place when it has stayed a moment, not when others have (Disk-5)", () => {
  vi.useFakeTimers();
  const base = mkdtempSync(join(tmpdir(), "bough-disk-"));
  const disk = new Disk(nodeFiles, base);
  onTestFinished(() => {
    disk.close();
    rmSync(base, { recursive: true });
    vi.useRealTimers();
  });
  const claim = (name: string) =>
    disk.apply([{ kind: "write", path: `claims/${name}`, bytes: Buffer.from(name), later: true }]);
  const inPlace = (name: string) => existsSync(join(base, "claims", name));
  claim("stays");
  vi.advanceTimersByTime(240);
  claim("goes");
  vi.advanceTimersByTime(20);
  disk.apply([{ kind: "remove", path: "claims/goes" }]);
  claim("comes");
  vi.advanceTimersByTime(250);
  expect(["stays", "goes", "comes"].map(inPlace)).toEqual([true, false, false]);
  vi.advanceTimersByTime(250);
  expect(inPlace("comes")).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});
