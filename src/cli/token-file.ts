// The token of a server that runs here, in a file that only its user can read: so `bough chat` needs no token on its command
// line, where every user of the machine could read it. One file for each port, beside the usual store: ./.bough/token-4600.

import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { whyForeign } from "../base/foreign.ts";
import { isLoopback } from "./network.ts";

/** The folder of what `bough` keeps in a working directory. */
export const ownFolder = "./.bough";

/** Makes the folder, for its owner only, and keeps it out of repositories. */
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

/** Keeps the token for as long as the server runs; what is returned removes it, unless another server's is there by then. */
export function keepToken(port: number, token: string): { path: string; forget: () => void } {
  ensureOwnFolder();
  const path = tokenPath(port);
  // Made anew: a file that is there may be readable by others, or lead elsewhere.
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

/** The token of the server at a URL of this machine, if it was started in this directory. */
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
