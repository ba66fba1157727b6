import { resolve } from "node:path";
import { type Clock, systemClock } from "../../base/clock.ts";
import { BoughError } from "../../base/errors.ts";
import { checkOptions, optionKeys } from "../../base/options.ts";
import type { Store, StoreProblem } from "../../log/index.ts";
import { Disk } from "./disk.ts";
import type { Files } from "./files.ts";
import { Identity } from "./identity.ts";
import { paths } from "./layout.ts";
import { nodeFiles } from "./node-files.ts";
import { openingFailed, replay } from "./replay.ts";
import { FileStore } from "./store.ts";

export type { Files } from "./files.ts";

/** Options of `fileStore`. */
export interface FileStoreOptions {
  /** The clock (default: the system's). */
  readonly clock?: Clock;
  /** The file system (default: this machine's). */
  readonly files?: Files;
}

const optionNames = optionKeys<FileStoreOptions>({ clock: true, files: true });

/**
 * Opens, or creates, a store in a directory: readable files, safe against process death and power loss, owned by one
 * process at a time. `store_locked` if another process has it open, `store_too_new` if a newer version wrote it,
 * `store_unsupported` if its format is older than the first release, or if another user could change the directory.
 */
export async function fileStore(directory: string, options: FileStoreOptions = {}): Promise<Store> {
  checkOptions("The options of fileStore", options, optionNames);
  const { clock = systemClock, files = nodeFiles } = options;
  const base = resolve(directory);
  const disk = new Disk(files, base);
  let unlock: (() => void) | undefined;
  try {
    await disk.ensureBase();
    files.checkOwner(base);
    unlock = await files.lock(disk.absolute(paths.lock));
    if (!unlock) throw locked(base);
    return await open(disk, clock, unlock);
  } catch (error) {
    disk.close();
    unlock?.();
    throw BoughError.is(error) ? error : openingFailed(base, error);
  }
}

async function open(disk: Disk, clock: Clock, unlock: () => void): Promise<Store> {
  const problems: StoreProblem[] = [];
  const identity = await Identity.open(disk);
  await disk.emptyTrash();
  for (const name of disk.list(paths.spare)) disk.remove(`${paths.spare}/${name}`);
  await replay(disk, problems);
  await disk.emptyTrash();
  for (const name of disk.list(paths.incoming)) disk.remove(`${paths.incoming}/${name}`);
  return new FileStore(disk, identity, clock, problems, unlock);
}

function locked(path: string): BoughError {
  return new BoughError(
    "store_locked",
    `The store in ${path} is already open; only one process can open it at a time.`,
    {
      data: { path },
    },
  );
}
