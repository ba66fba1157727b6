import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Disk } from "./disk.ts";
import { nodeFiles } from "./node-files.ts";

function given() {
  const base = mkdtempSync(join(tmpdir(), "bough-disk-"));
  mkdirSync(join(base, "spare"));
  const disk = new Disk(nodeFiles, base);
  onTestFinished(() => {
    disk.close();
    rmSync(base, { recursive: true });
  });
  const write = (path: string, text: string) =>
    disk.apply([{ kind: "write", path, bytes: Buffer.from(text), spare: true }]);
  const remove = (path: string) => disk.apply([{ kind: "remove", path, spare: true }]);
  const inode = (path: string) => statSync(join(base, path)).ino;
  const text = (path: string) => readFileSync(join(base, path), "utf8");
  const spares = () => readdirSync(join(base, "spare"));
  return { base, disk, write, remove, inode, text, spares };
}

test("a file that comes and goes is in its place at once, and is the same file each time (Disk-5)", () => {
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

test("a checkpoint syncs such a file while it is there, and the directories that it left (Disk-2, Disk-5)", () => {
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

test("spare files are bounded, and gone when a tree was removed or the store is closed (Disk-5)", () => {
  const { base, disk, write, remove, spares } = given();
  mkdirSync(join(base, "trash"));
  const paths = Array.from({ length: 100 }, (_, i) => `s/uncommitted/${i}.json`);
  for (const path of paths) write(path, "secret");
  for (const path of paths) remove(path);
  expect([spares().length, readdirSync(join(base, "s/uncommitted"))]).toEqual([64, []]);
  disk.apply([{ kind: "remove-tree", path: "s" }]);
  expect(spares()).toEqual([]);
  write("t/uncommitted/b.json", "{}");
  remove("t/uncommitted/b.json");
  disk.close();
  expect(spares()).toEqual([]);
});
