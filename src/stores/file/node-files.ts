import fs from "node:fs";
import { promisify } from "node:util";
import { BoughError } from "../../base/errors.ts";
import { whyForeign } from "../../base/foreign.ts";
import { openName } from "../../base/open-name.ts";
import { errnoOf, type Files, isMissing } from "./files.ts";

const datasync = promisify(fs.fdatasync);
const { O_CREAT, O_EXCL, O_RDWR, COPYFILE_EXCL } = fs.constants;
// Windows has no such flag; to make a link there takes rights that few have.
const noFollow = fs.constants.O_NOFOLLOW ?? 0;
const flags = { existing: O_RDWR, create: O_RDWR | O_CREAT, new: O_RDWR | O_CREAT | O_EXCL };

/** The file system of this machine. */
export const nodeFiles: Files = {
  open,
  read: (handle, into, at) => fs.readSync(handle, into, 0, into.length, at),
  write: (handle, bytes, at) => fs.writeSync(handle, bytes, 0, bytes.length, at),
  size: (handle) => fs.fstatSync(handle).size,
  identity,
  openName,
  truncate: (handle, size) => fs.ftruncateSync(handle, size),
  close: (handle) => fs.closeSync(handle),
  datasync,
  makeDirectory,
  checkOwner,
  list,
  rename: (from, to) => fs.renameSync(from, to),
  link,
  unlink: (path) => fs.unlinkSync(path),
  removeTree: (path) => fs.promises.rm(path, { recursive: true, force: true }),
  syncDirectory,
  lock,
};

function identity(path: string): string | undefined {
  const found = fs.statSync(path, { throwIfNoEntry: false });
  return found && `${found.dev}:${found.ino}`;
}

function open(path: string, how: keyof typeof flags): number {
  try {
    return fs.openSync(path, flags[how] | noFollow, 0o600);
  } catch (error) {
    throw errnoOf(error) === "ELOOP" ? refuseLink(path) : error;
  }
}

function refuseLink(path: string): BoughError {
  const sentence = `"${path}" is a symbolic link; a file store does not follow links inside its directory. Remove it, or replace it with the file.`;
  return new BoughError("store_unsupported", sentence, { data: { path } });
}

function checkOwner(path: string): void {
  const why = whyForeign(fs.statSync(path));
  if (why === undefined) return;
  const sentence = `"${path}" ${why}; a file store needs a directory that only its own user can write to.`;
  throw new BoughError("store_unsupported", sentence, { data: { path } });
}

function makeDirectory(path: string): boolean {
  try {
    fs.mkdirSync(path, 0o700);
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

function link(from: string, to: string): boolean {
  try {
    fs.linkSync(from, to);
    return true;
  } catch (error) {
    const code = errnoOf(error);
    if (code === "EEXIST") return false;
    if (code === "ENOENT") throw error;
  }
  // Some file systems have no second names.
  fs.copyFileSync(from, to, COPYFILE_EXCL);
  return true;
}

function list(path: string): string[] {
  try {
    const entries = fs.readdirSync(path, { withFileTypes: true });
    const link = entries.find((entry) => entry.isSymbolicLink());
    if (link) throw refuseLink(`${path}/${link.name}`);
    return entries.map(({ name }) => name);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

async function syncDirectory(path: string): Promise<void> {
  // Windows has no handle for a directory's entries; its file system journals them in order.
  if (process.platform === "win32") return;
  const handle = await fs.promises.open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

// Some kernels give a lock to a process, not to a handle, so two handles of one process exclude each other here.
const lockedHere = new Set<string>();

async function lock(path: string): Promise<(() => void) | undefined> {
  const { tryLock, unlock } = await loadLocks();
  const handle = open(path, "create");
  const key = fs.realpathSync(path);
  if (lockedHere.has(key) || !tryLock(handle)) {
    fs.closeSync(handle);
    return undefined;
  }
  lockedHere.add(key);
  return () => {
    lockedHere.delete(key);
    unlock(handle);
    fs.closeSync(handle);
  };
}

let locks: typeof import("fs-native-extensions") | undefined;

async function loadLocks() {
  try {
    locks ??= await import("fs-native-extensions");
    return locks;
  } catch (cause) {
    throw new BoughError(
      "dependency_missing",
      'The file store needs the package "fs-native-extensions" for its lock: run `npm install fs-native-extensions`.',
      {
        data: { dependency: "fs-native-extensions" },
        cause,
      },
    );
  }
}
