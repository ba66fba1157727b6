// The subpaths of the package as package.json promises them, read from what was built: what users get, not what we wrote.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const house = new URL("../../", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("package.json", house), "utf8"));

export interface Subpath {
  /** What users import: `bough`, `bough/events`. */
  name: string;
  /** The module it leads to, as a URL and as a path. */
  url: string;
  path: string;
}

export const subpaths: Subpath[] = Object.entries<string | { default: string }>(manifest.exports).flatMap(
  ([key, target]) => {
    if (typeof target === "string") return [];
    const url = new URL(target.default, house);
    return [{ name: key.replace(/^\./, manifest.name), url: url.href, path: fileURLToPath(url) }];
  },
);

/** The names a subpath has at run time, sorted. Types leave no trace there. */
export async function runtimeNames({ name, url, path }: Subpath): Promise<string[]> {
  if (!existsSync(path)) throw new Error(`${name} is not built: ${path} is missing. Run npm run build.`);
  return Object.keys(await import(/* @vite-ignore */ url)).sort();
}
