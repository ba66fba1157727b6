import { closeSync, mkdtempSync, openSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { onlyHandle, openName } from "./open-name.ts";

function given() {
  const directory = mkdtempSync(join(realpathSync(tmpdir()), "bough-open-name-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "file");
  writeFileSync(path, "x");
  const open = () => {
    const handle = openSync(path, "r");
    onTestFinished(() => closeSync(handle));
    return handle;
  };
  return { path, open };
}

test.runIf(process.platform === "linux")("an open file has its path for a name until it is moved or replaced", () => {
  const { path, open } = given();
  const handle = open();
  expect(openName(handle)).toBe(path);
  renameSync(path, `${path}.away`);
  expect(openName(handle)).toBe(`${path}.away`);
  renameSync(`${path}.away`, path);
  expect(openName(handle)).toBe(path);
  writeFileSync(`${path}.other`, "y");
  renameSync(`${path}.other`, path);
  expect(openName(handle)).not.toBe(path);
});

test.runIf(process.platform === "linux")("a file's handle is found if it is the only one", () => {
  const { path, open } = given();
  expect(onlyHandle(path)).toBeUndefined();
  const handle = open();
  expect(onlyHandle(path)).toBe(handle);
  open();
  expect(onlyHandle(path)).toBeUndefined();
});

test("a number that is no handle has no name", () => {
  expect(openName(987_654)).toBeUndefined();
});
