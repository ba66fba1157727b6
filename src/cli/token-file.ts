// The token of a server started here, in a file that only its user can read, so that `bough chat` needs no token on its command
// line, where every user of the machine could read it. One file per port, beside the default store: ./.bough/token-4600.

import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { whyForeign } from "../base/foreign.ts";
import { isLoopback } from "./network.ts";

/** The folder of Bough's files in a working directory. */
export const ownFolder = "./.bough";

/** Creates the folder, accessible to its owner only, and keeps it out of git. */
export function ensureOwnFolder(): void {
  mkdirSync(ownFolder, { recursive: true, mode: 0o700 });
  try {
    writeFileSync(join(ownFolder, ".gitignore"), "*\n", { flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

function tokenPath(port: number | string): string {
  return join(ownFolder, `token-${port}`);
}

/** Writes the token file. `forget` deletes it, unless another server has replaced it since. */
export function keepToken(port: number, token: string): { path: string; forget: () => void } {
  ensureOwnFolder();
  const path = tokenPath(port);
  // Created anew: an existing file may be readable by others, or be a link.
  rmSync(path, { force: true });
  writeFileSync(path, token, { flag: "wx", mode: 0o600 });
  return { path, forget: () => forget(path, token) };
}

function forget(path: string, token: string): void {
  try {
    if (readFileSync(path, "utf8") === token) rmSync(path);
  } catch {
    // It is gone already.
  }
}

/** The token of a local server at this URL, if it was started in this directory. */
export function findToken({ protocol, hostname, port }: URL): string | undefined {
  if (!isLoopback(hostname.replace(/^\[|\]$/g, ""))) return undefined;
  const path = tokenPath(port || (protocol === "https:" ? 443 : 80));
  try {
    const found = lstatSync(path);
    if (!found.isFile() || whyForeign(found) !== undefined) return undefined;
    return readFileSync(path, "utf8").trim() || undefined;
  } catch {
    return undefined;
  }
}
