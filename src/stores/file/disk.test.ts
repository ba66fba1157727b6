import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Disk } from "./disk.ts";
import { nodeFiles } from "./node-files.ts";

test("a file that is not in its place yet is listed and read without writing, also when the disk is full (D5)", () => {
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
