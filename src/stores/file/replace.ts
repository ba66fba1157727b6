import { dirname } from "node:path";
import { failpoint } from "../../base/failpoint.ts";
import { breathe, type Files, isMissing } from "./files.ts";
import { temporarySuffix } from "./layout.ts";

/** Writes all bytes, however few the file system takes at a time; throws when it takes none. */
export function writeAll(files: Files, handle: number, bytes: Uint8Array, at: number): void {
  for (let done = 0; done < bytes.length; ) {
    const written = files.write(handle, bytes.subarray(done), at + done);
    if (written <= 0) throw Object.assign(new Error("The file system wrote nothing."), { code: "ENOSPC" });
    done += written;
  }
}

const pieceSize = 1024 * 1024;

/** A new file whose bytes are on the disk; its name is only after the directory is synced too. */
async function writeSynced(files: Files, path: string, bytes: Uint8Array): Promise<void> {
  removeLeftover(files, path);
  const handle = files.open(path, "new");
  try {
    for (let at = 0; at < bytes.length; at += pieceSize) {
      if (at > 0) await breathe();
      writeAll(files, handle, bytes.subarray(at, at + pieceSize), at);
    }
    failpoint("file.replace.written");
    await files.datasync(handle);
  } finally {
    files.close(handle);
  }
  failpoint("file.replace.synced");
}

/** What a crash left there, or a link that would lead the bytes elsewhere. */
function removeLeftover(files: Files, path: string): void {
  try {
    files.unlink(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Replaces a file so that, whatever happens, it is wholly the old one or wholly the new one. */
export async function atomicReplace(files: Files, path: string, bytes: Uint8Array): Promise<void> {
  const temporary = path + temporarySuffix;
  await writeSynced(files, temporary, bytes);
  files.rename(temporary, path);
  failpoint("file.replace.renamed");
  await files.syncDirectory(dirname(path));
}
