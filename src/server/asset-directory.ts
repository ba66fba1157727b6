// Reads a directory of assets completely, in advance: requests are looked up in memory, so that no path, link
// or race leads anywhere else.
//   AssetDirectory-1. Names that begin with a dot are left out, with everything below them.
//   AssetDirectory-2. A link counts as its target, if that is a file of the same directory that AssetDirectory-1 does not leave out. Any other is refused.

import type * as Fs from "node:fs";
import type * as Path from "node:path";
import { BoughError } from "../base/errors.ts";
import { nodeModule } from "../base/node.ts";

const mostFiles = 10_000;
const mostBytes = 256 * 1024 * 1024;

/** File contents by path, with "/" as the separator. */
export function readAssetDirectory(directory: string): readonly (readonly [string, Uint8Array])[] {
  const { fs, path } = node();
  let root: string;
  try {
    root = fs.realpathSync(directory);
  } catch (cause) {
    throw new BoughError("invalid_argument", `The assets directory "${directory}" does not exist.`, { cause });
  }
  const found: [string, Uint8Array][] = [];
  let bytes = 0;
  const add = (name: string, file: string) => {
    const content = fs.readFileSync(file);
    bytes += content.length;
    if (found.length === mostFiles || bytes > mostBytes) {
      throw refuse(
        `The assets directory "${directory}" has more than ${mostFiles} files or ${mostBytes} bytes. Assets are held in memory, so serve larger ones elsewhere.`,
      );
    }
    found.push([name, content]);
  };
  const walk = (folder: string, above: string) => {
    for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
      if (entry.name.startsWith(".")) continue;
      const [name, file] = [above + entry.name, path.join(folder, entry.name)];
      if (entry.isDirectory()) walk(file, `${name}/`);
      else if (entry.isFile()) add(name, file);
      else if (entry.isSymbolicLink()) add(name, linkTarget(file, name));
    }
  };
  /** AssetDirectory-2. */
  const linkTarget = (file: string, name: string): string => {
    const target = fs.realpathSync(file);
    const parts = path.relative(root, target).split(path.sep);
    if (parts.some((part) => part.startsWith(".")) || path.isAbsolute(parts.join(path.sep))) {
      throw refuse(`The asset "${name}" is a link to a file outside the assets directory, or to a hidden one.`);
    }
    if (!fs.statSync(target).isFile()) throw refuse(`The asset "${name}" is a link to something that is not a file.`);
    return target;
  };
  walk(root, "");
  return found;
}

/** Loaded only if needed, so that a server without an assets directory runs without Node. */
function node(): { readonly fs: typeof Fs; readonly path: typeof Path } {
  const fs = nodeModule<typeof Fs>("node:fs");
  const path = nodeModule<typeof Path>("node:path");
  if (!fs || !path)
    throw refuse("A directory of assets needs Node. On other platforms, pass the files' contents by path.");
  return { fs, path };
}

function refuse(sentence: string): BoughError {
  return new BoughError("invalid_argument", sentence);
}
