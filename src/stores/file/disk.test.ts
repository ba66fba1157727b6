import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { Disk } from "./disk.ts";
import type { Files } from "./files.ts";
import { nodeFiles } from "./node-files.ts";

function given(files: Files = nodeFiles) {
  const base = mkdtempSync(join(tmpdir(), "bough-disk-"));
  mkdirSync(join(base, "spare"));
  const disk = new Disk(files, base);
  onTestFinished(() => {
    disk.close();
    rmSync(base, { recursive: true });
  });
  const write = (path: string, text: string) =>
    disk.apply([{ kind: "write", path, bytes: Buffer.from(text), passing: true }]);
  const remove = (path: string) => disk.apply([{ kind: "remove", path, passing: true }]);
  const inode = (path: string) => statSync(join(base, path)).ino;
  const text = (path: string) => readFileSync(join(base, path), "utf8");
  const spares = () => readdirSync(join(base, "spare"));
  return { base, disk, write, remove, inode, text, spares };
}

test("a file that comes and goes is in its place at once, and is the same file each time (PassingFiles-2)", () => {
  const { base, disk, write, remove, inode, text, spares } = given();
  write("s/uncommitted/b.json", "a longer text");
  expect(text("s/uncommitted/b.json")).toBe("a longer text");
  const first = inode("s/uncommitted/b.json");
  remove("s/uncommitted/b.json");
  expect([existsSync(join(base, "s/uncommitted/b.json")), spares().length]).toEqual([false, 1]);
  write("t/uncommitted/c.json", "short");
  expect([inode("t/uncommitted/c.json"), text("t/uncommitted/c.json"), spares().length]).toEqual([first, "short", 0]);
  expect(disk.readWhole("t/uncommitted/c.json")?.toString()).toBe("short");
  expect(disk.readWhole("s/uncommitted/b.json")).toBeUndefined();
  // Written again in its place, it is still that file.
  disk.apply([{ kind: "write", path: "t/uncommitted/c.json", bytes: Buffer.from("again") }]);
  expect([inode("t/uncommitted/c.json"), text("t/uncommitted/c.json")]).toEqual([first, "again"]);
});

test("a checkpoint syncs such a file while it is there, and the directories that it left (Disk-2)", () => {
  const { disk, write, remove } = given();
  write("s/uncommitted/b.json", "{}");
  remove("s/uncommitted/b.json");
  write("s/uncommitted/c.json", "{}");
  remove("s/uncommitted/c.json");
  disk.takeDirty();
  write("t/uncommitted/b.json", "{}");
  const { files, directories } = disk.takeDirty();
  expect([...files]).toEqual(["t/uncommitted/b.json"]);
  expect([...directories]).toEqual(expect.arrayContaining(["spare", "t/uncommitted"]));
  remove("t/uncommitted/b.json");
  const after = disk.takeDirty();
  expect([...after.files]).toEqual([]);
  expect([...after.directories].sort()).toEqual(["spare", "t/uncommitted"]);
});

test("spare files are bounded, and gone when a tree was removed or the store is closed (PassingFiles-3)", () => {
  const { base, disk, write, remove, spares } = given();
  mkdirSync(join(base, "trash"));
  const paths = Array.from({ length: 100 }, (_, i) => `s/uncommitted/${i}.json`);
  for (const path of paths) write(path, "secret");
  disk.takeDirty();
  for (const path of paths) remove(path);
  expect([spares().length, readdirSync(join(base, "s/uncommitted"))]).toEqual([64, []]);
  disk.apply([{ kind: "remove-tree", path: "s" }]);
  expect(spares()).toEqual([]);
  write("t/uncommitted/b.json", "{}");
  remove("t/uncommitted/b.json");
  disk.close();
  expect(spares()).toEqual([]);
});

/** So many that whatever comes in the same moment has to wait (PassingFiles-1). */
function givenBurst({ write }: ReturnType<typeof given>): void {
  for (let i = 0; i < 16; i++) write(`s/uncommitted/burst${i}.json`, "{}");
}

test("in a burst, a file gets into its place when it has stayed a moment, not when others have (PassingFiles-1)", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const g = given();
  const inPlace = (name: string) => existsSync(join(g.base, "s/uncommitted", name));
  givenBurst(g);
  g.write("s/uncommitted/stays", "{}");
  expect([inPlace("burst15.json"), inPlace("stays")]).toEqual([true, false]);
  vi.advanceTimersByTime(60);
  for (let i = 0; i < 16; i++) g.write(`s/uncommitted/more${i}.json`, "{}");
  g.write("s/uncommitted/goes", "{}");
  g.write("s/uncommitted/comes", "{}");
  g.remove("s/uncommitted/goes");
  vi.advanceTimersByTime(50);
  expect(["stays", "goes", "comes"].map(inPlace)).toEqual([true, false, false]);
  vi.advanceTimersByTime(50);
  expect(["goes", "comes"].map(inPlace)).toEqual([false, true]);
  expect(vi.getTimerCount()).toBe(0);
  g.write("s/uncommitted/calm", "{}");
  expect(inPlace("calm")).toBe(true);
});

test("a file that is not in its place yet is listed and read without writing, also when the disk is full (Disk-5)", () => {
  let isFull = false;
  const full = () => Object.assign(new Error("full"), { code: "ENOSPC" });
  const g = given({
    ...nodeFiles,
    write(handle, bytes, at) {
      if (isFull) throw full();
      return nodeFiles.write(handle, bytes, at);
    },
  });
  givenBurst(g);
  isFull = true;
  g.write("t/uncommitted/b.json", "{}");
  expect(g.disk.list("t/uncommitted")).toEqual(["b.json"]);
  expect(g.disk.list("t")).toEqual(["uncommitted"]);
  expect(g.disk.list("t/uncommit")).toEqual([]);
  expect(g.disk.readWhole("t/uncommitted/b.json")?.toString()).toBe("{}");
  g.remove("t/uncommitted/b.json");
  expect(g.disk.list("t/uncommitted")).toEqual([]);
});

test("a checkpoint, and a write of the file itself, bring it into its place (PassingFiles-1)", () => {
  const g = given();
  givenBurst(g);
  g.write("t/uncommitted/a.json", "first");
  g.disk.apply([{ kind: "write", path: "t/uncommitted/a.json", bytes: Buffer.from("second") }]);
  expect(g.text("t/uncommitted/a.json")).toBe("second");
  g.write("t/uncommitted/b.json", "{}");
  const { files } = g.disk.takeDirty();
  expect([g.text("t/uncommitted/b.json"), files.has("t/uncommitted/b.json")]).toEqual(["{}", true]);
});
