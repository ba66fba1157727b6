import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { misuse } from "./command.ts";

/** The size of a file that can be read; otherwise says why it can't. */
export async function checkFile(path: string): Promise<number> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw misuse(`"${path}" is not a file.`);
    await access(path, constants.R_OK);
    return found.size;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") throw misuse(`There is no file "${path}".`);
    if (code === "EACCES") throw misuse(`"${path}" may not be read.`);
    throw error;
  }
}
