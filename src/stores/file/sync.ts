import type { Dirty, Disk } from "./disk.ts";
import { isMissing } from "./files.ts";

// Leaves threads of Node's pool of four to the redo log.
const syncsAtOnce = 2;

/** Puts everything that was changed on the disk. What has been removed since needs nothing. */
export async function syncAll(disk: Disk, dirty: Dirty): Promise<void> {
  const files = [...dirty.files];
  const directories = [...dirty.directories];
  await Promise.all(
    Array.from({ length: syncsAtOnce }, async () => {
      for (let path = files.pop(); path !== undefined; path = files.pop()) await syncFile(disk, path);
    }),
  );
  await Promise.all(
    Array.from({ length: syncsAtOnce }, async () => {
      for (let path = directories.pop(); path !== undefined; path = directories.pop()) {
        await disk.files.syncDirectory(disk.absolute(path)).catch(unlessMissing);
      }
    }),
  );
  disk.dropLinked(dirty);
}

async function syncFile(disk: Disk, path: string): Promise<void> {
  try {
    const handle = disk.files.open(disk.absolute(path), "existing");
    try {
      await disk.files.datasync(handle);
    } finally {
      disk.files.close(handle);
    }
  } catch (error) {
    unlessMissing(error);
  }
}

function unlessMissing(error: unknown): void {
  if (!isMissing(error)) throw error;
}
